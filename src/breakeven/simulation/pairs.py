"""Two runs of the same arrivals held against each other, request by request, with an interval that knows requests are not independent."""

from __future__ import annotations

import numpy as np
from scipy import special
from scipy.stats import rankdata

from breakeven.simulation.arrays import Floats
from breakeven.simulation.result import Paired

BATCHES = (8, 16)
"""About 10 leave enough freedom (Schmeiser 1982, Operations Research 30(3)); of two cuts the fewer, longer batches see a longer memory."""
LEAST_PAIRS = 20
CORRELATION_TIMES = 100
"""Of a run that has an interval: on queues, shorter runs have too narrow ones, and those whose memory looks short the narrowest."""
WIDER = 30
"""Widens by 1 + 30·τ/n: the variance is too small just in short runs whose queues stayed short. Found on M/M/1 at loads of 0.5 to 0.9."""
CELLS = 2**17
"""Autocovariances are of means of neighbours where a run is longer."""
CONFIDENCE = 0.90


def paired(off: Floats, on: Floats, *, time: bool = True) -> Paired | None:
    """Ratio of the means and mean difference of pairs, with 90 % intervals by batch means; None without a pair.

    Requests near each other share their queue, so pairs are cut in order of arrival into 8 and 16 batches; what dependence of
    neighbouring means is left (their lag-1 correlation r, where positive) widens the variance by (1 + r)/(1 − r), and the wider of
    the two holds, widened by 1 + 30·τ/n for n pairs of correlation time τ. Of the ratio R = Σa/Σb the residuals a − R·b of each batch
    are taken (delta method), and its interval is even in ln R. Student's t with batches − 1 degrees of freedom. A run shorter than 100
    of its own correlation times has no interval.

    >>> one = paired(np.full(40, 2.0), np.full(40, 1.0))
    >>> (one.gain, one.low, one.high, one.difference, one.pairs, one.batches)
    (2.0, 2.0, 2.0, -1.0, 40, 16)
    """
    both = ~np.isnan(off) & ~np.isnan(on)
    a, b = off[both], on[both]
    if not len(a):
        return None
    better, worse = (a, b) if time else (b, a)
    difference = float(np.mean(b - a))
    gain = _ratio(float(better.mean()), float(worse.mean()))
    memory = _memory(a, b)
    if len(a) < LEAST_PAIRS or not np.isfinite(gain) or memory * CORRELATION_TIMES > 1.0:
        return Paired(
            gain=gain, low=None, high=None, difference=difference, difference_low=None, difference_high=None, pairs=len(a), batches=0
        )
    wider = 1.0 + WIDER * memory
    half = wider * _half(better - gain * worse) / (float(worse.mean()) or 1.0)
    half_difference, factor = wider * _half(b - a), float(np.exp(half / gain)) if gain else 1.0
    return Paired(
        gain=gain,
        low=gain / factor,
        high=gain * factor,
        difference=difference,
        difference_low=difference - half_difference,
        difference_high=difference + half_difference,
        pairs=len(a),
        batches=min(BATCHES[-1], len(a) // 2),
    )


def _ratio(better: float, worse: float) -> float:
    """Both nothing is no difference."""
    if worse == 0.0:
        return 1.0 if better == 0.0 else float("inf")
    return better / worse


def _memory(a: Floats, b: Floats) -> float:
    """The slower run's correlation time over the pairs; 0 where all pairs differ by the same, which no length makes surer."""
    return 0.0 if np.ptp(b - a) == 0.0 else max(correlation_time(a), correlation_time(b)) / len(a)


def correlation_time(values: Floats) -> float:
    """τ = 1 + 2·Σ ρ_k of the values' ranks, in values, 1 at least: so many of them tell as much as one that is independent.

    Σ by the initial monotone sequence (Geyer 1992, Statistical Science 7(4)): sums of neighbouring ρ as long as they are positive, none
    above the one before. Ranks, since one rare long queue would decide the variance, and a run without one would seem to forget at once.

    >>> round(correlation_time(np.repeat(np.random.default_rng(0).random(2000), 10)))
    10
    """
    bundle = -(-len(values) // CELLS)
    ranks = rankdata(values)[: len(values) // bundle * bundle].reshape(-1, bundle).mean(axis=1)
    centred = ranks - ranks.mean()
    power = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    covariance = np.fft.irfft(power)[: len(centred) // 2 * 2]
    if covariance[0] <= 0.0:
        return 1.0
    sums = covariance[0::2] + covariance[1::2]
    kept = np.minimum.accumulate(sums[: int(np.argmax(sums <= 0.0)) if (sums <= 0.0).any() else None])
    return float(max(bundle * (2.0 * kept.sum() / covariance[0] - 1.0), 1.0))


def _means(values: Floats, batches: int) -> Floats:
    """Means of consecutive batches, whose lengths differ by one at most."""
    edges = np.linspace(0, len(values), batches + 1).astype(np.int64)
    return np.add.reduceat(values, edges[:-1]) / np.diff(edges)


def _half(values: Floats) -> float:
    """Half of the 90 % interval of the mean of values in their order: the wider over the numbers of batches."""
    return max(_half_of(_means(values, min(batches, len(values) // 2))) for batches in BATCHES)


def _half_of(means: Floats) -> float:
    """Half of the 90 % interval of the mean of batch means."""
    count, centred = len(means), means - means.mean()
    variance = float(centred @ centred) / (count - 1)
    if variance == 0.0:
        return 0.0
    lag = float(centred[:-1] @ centred[1:]) / float(centred @ centred)
    r = min(max(lag + 1.0 / count, 0.0), 0.9)
    t = float(special.stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    return float(t * (variance * (1.0 + r) / (1.0 - r) / count) ** 0.5)
