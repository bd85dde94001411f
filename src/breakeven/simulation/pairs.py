"""Two runs of the same arrivals held against each other, request by request, with an interval that knows requests are not independent."""

from __future__ import annotations

import numpy as np
from scipy import special

from breakeven.simulation.arrays import Floats
from breakeven.simulation.result import Paired

BATCHES = 20
"""Between 10 and 30 leave enough freedom and long enough batches (Schmeiser 1982, Operations Research 30(3))."""
FEWEST_BATCHES = 5
LEAST_PAIRS = 20
CONFIDENCE = 0.90


def paired(off: Floats, on: Floats, *, time: bool = True) -> Paired | None:
    """Ratio of the means and mean difference of pairs, with 90 % intervals by batch means; None without a pair.

    Requests near each other share their queue, so pairs are cut in order of arrival into at most 20 batches, whose means are nearly
    independent; what dependence of neighbours is left (their lag-1 correlation r, where positive) widens the variance by
    (1 + r)/(1 − r). Of the ratio R = Σa/Σb the residuals a − R·b of each batch are taken (delta method). Student's t with
    batches − 1 degrees of freedom.

    >>> one = paired(np.full(40, 2.0), np.full(40, 1.0))
    >>> (one.gain, one.low, one.high, one.difference, one.pairs, one.batches)
    (2.0, 2.0, 2.0, -1.0, 40, 20)
    """
    both = ~np.isnan(off) & ~np.isnan(on)
    a, b = off[both], on[both]
    if not len(a):
        return None
    better, worse = (a, b) if time else (b, a)
    difference = float(np.mean(b - a))
    gain = _ratio(float(better.mean()), float(worse.mean()))
    batches = min(BATCHES, len(a) // 2)
    if len(a) < LEAST_PAIRS or batches < FEWEST_BATCHES or not np.isfinite(gain):
        return Paired(
            gain=gain, low=None, high=None, difference=difference, difference_low=None, difference_high=None, pairs=len(a), batches=0
        )
    residuals = _means(better - gain * worse, batches) / (float(worse.mean()) or 1.0)
    half, half_difference = _half(residuals), _half(_means(b - a, batches))
    return Paired(
        gain=gain,
        low=max(0.0, gain - half),
        high=gain + half,
        difference=difference,
        difference_low=difference - half_difference,
        difference_high=difference + half_difference,
        pairs=len(a),
        batches=batches,
    )


def _ratio(better: float, worse: float) -> float:
    """Both nothing is no difference."""
    if worse == 0.0:
        return 1.0 if better == 0.0 else float("inf")
    return better / worse


def _means(values: Floats, batches: int) -> Floats:
    """Means of consecutive batches, whose lengths differ by one at most."""
    edges = np.linspace(0, len(values), batches + 1).astype(np.int64)
    return np.add.reduceat(values, edges[:-1]) / np.diff(edges)


def _half(means: Floats) -> float:
    """Half of the 90 % interval of the mean of batch means."""
    count, centred = len(means), means - means.mean()
    variance = float(centred @ centred) / (count - 1)
    if variance == 0.0:
        return 0.0
    lag = float(centred[:-1] @ centred[1:]) / float(centred @ centred)
    r = min(max(lag + 1.0 / count, 0.0), 0.9)
    t = float(special.stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    return float(t * (variance * (1.0 + r) / (1.0 - r) / count) ** 0.5)
