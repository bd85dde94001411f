"""How requests arrive: their rate over time, and how far from Poisson they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from breakeven.errors import InputError
from breakeven.stats import Array

WINDOWS_S = (1.0, 10.0, 60.0, 600.0, 3600.0)
"""Windows over which counts are compared with Poisson."""
FEWEST_WINDOWS = 12
"""Fewer counts say nothing of their variance: its interval would be wider than a factor of two."""
FEWEST_REQUESTS = 2
MOST_WINDOWS = 10_000_000
SHOWN = 60
"""Windows of the rate over time, unless their length is given."""
Kind = Literal["regular", "poisson", "bursty"]
Z95 = 1.96


@dataclass(frozen=True, kw_only=True)
class Dispersion:
    """The index of dispersion of counts over one length of window: variance over mean, 1 for Poisson arrivals."""

    window_s: float
    windows: int
    index: float
    low: float
    high: float
    """Poisson arrivals give an index between these in 95 % of such counts."""

    @property
    def kind(self) -> Kind:
        """Whether Poisson arrivals could look like this."""
        return "regular" if self.index < self.low else "bursty" if self.index > self.high else "poisson"


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """The arrivals of a trace: rates in requests a second."""

    span_s: float
    rate: float
    window_s: float
    counts: tuple[int, ...]
    """Requests in each window, the last of which is as long as the others."""
    variation: float | None
    """Standard deviation of the times between arrivals over their mean: 1 for Poisson; None for fewer than three requests."""
    at_once: float
    """Share of requests that arrive at the very time of the one before."""
    dispersions: tuple[Dispersion, ...]

    @property
    def rates(self) -> Array:
        """Requests a second in each window."""
        return np.asarray(self.counts) / self.window_s


def counts_in(arrival_s: Array, span_s: float, window_s: float) -> Array:
    """Arrivals in each whole window; those of a last, shorter one are left out.

    >>> counts_in(np.array([0.0, 1.0, 1.5, 3.9, 4.2]), 4.2, 2.0).tolist()
    [3.0, 1.0]
    """
    windows = max(int(span_s / window_s + 1e-9), 1)
    places = (arrival_s / window_s).astype(np.int64)
    return np.bincount(places[places < windows], minlength=windows).astype(float)


def dispersion(counts: Array, window_s: float) -> Dispersion:
    """Variance over mean of counts, and between which values Poisson arrivals would have it: (n − 1)·index is χ² of n − 1 degrees.

    The quantiles of χ² are Wilson and Hilferty's (1931): ν·(1 − 2/(9ν) + z·√(2/(9ν)))³.

    >>> found = dispersion(np.array([2.0, 4.0, 6.0, 0.0]), 60.0)
    >>> round(found.index, 3)
    2.222
    """
    free = len(counts) - 1
    index = float(counts.var(ddof=1) / counts.mean())
    part = 2.0 / (9.0 * free)
    low, high = ((1.0 - part + z * part**0.5) ** 3 for z in (-Z95, Z95))
    return Dispersion(window_s=window_s, windows=len(counts), index=index, low=max(low, 0.0), high=high)


def dispersions(arrival_s: Array, span_s: float) -> tuple[Dispersion, ...]:
    """The index over every length of window of which there are enough."""
    windows = (w for w in WINDOWS_S if FEWEST_WINDOWS <= span_s / w <= MOST_WINDOWS)
    return tuple(dispersion(counts_in(arrival_s, span_s, window), window) for window in windows)


def even_window(span_s: float) -> float:
    """A window of a round length of which there are no more than are shown; of what is shorter than any, the whole.

    >>> even_window(3500.0), even_window(86_400.0), even_window(0.05)
    (60.0, 1800.0, 0.05)
    """
    steps = (0.1, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 6 * 3600.0, 86_400.0)
    return min(next((step for step in steps if span_s / step <= SHOWN), span_s / SHOWN), span_s)


def arrivals_of(arrival_s: Array, window_s: float | None = None) -> Arrivals | None:
    """The arrivals of times in order, from 0; None where there is no time between the first and the last."""
    if len(arrival_s) < FEWEST_REQUESTS or arrival_s[-1] <= 0.0:
        return None
    span = float(arrival_s[-1])
    window = even_window(span) if window_s is None else window_s
    if not 0.0 < window <= span or span / window > MOST_WINDOWS:
        raise InputError("window_outside", path="--window", value=window, least=span / MOST_WINDOWS, span=span)
    between = np.diff(arrival_s)
    return Arrivals(
        span_s=span,
        rate=len(between) / span,
        window_s=window,
        counts=tuple(int(count) for count in counts_in(arrival_s, span, window)),
        variation=float(between.std() / between.mean()) if len(between) > 1 else None,
        at_once=float(np.mean(between == 0.0)),
        dispersions=dispersions(arrival_s, span),
    )
