"""How a trace's rate varies: windows counted, chance taken out, like windows grouped, and what overloads leave behind tabled."""

from __future__ import annotations

import numpy as np

from breakeven.spec.evidence import Windowed
from breakeven.spec.workload import ArrivalRates
from breakeven.stats import Array

SHORTEST_WINDOW_S = 60.0
"""Longer than most requests stay, so that each window has an operating point of its own."""
WINDOW_REQUESTS = 100.0
"""Requests a window has on average: of fewer, the counts vary by chance more than they tell."""
MOST_WINDOWS = 2000
FEWEST_WINDOWS = 8
GROUPS = 8
OBSERVED = 0.5
"""A window of which less was observed is left out."""
QUIETEST = 1e-4
"""A window without a request is taken to have this of the mean rate."""
LEVELS = 33


def window_of(span_s: float, requests: int) -> float:
    """Seconds of a window: a minute, or as long as it takes to see 100 requests, and no more than 2,000 of them.

    >>> window_of(3600.0, 20_000), window_of(86_400.0, 8640), window_of(30 * 86_400.0, 10**7)
    (60.0, 1000.0, 1296.0)
    """
    return max(SHORTEST_WINDOW_S, WINDOW_REQUESTS * span_s / requests, span_s / MOST_WINDOWS)


def windows_of(arrival_s: Array, window_s: float | None = None) -> tuple[Array, float] | None:
    """Each window's rate over the mean rate, in order, without what is chance, and a window's seconds; None for too few windows.

    Where windows vary no more than by chance all are alike.
    """
    span = float(arrival_s[-1]) if len(arrival_s) else 0.0
    window = window_of(span, max(len(arrival_s), 1)) if window_s is None else max(window_s, span / MOST_WINDOWS)
    windows = int(span / window + 1e-9)
    if windows < (FEWEST_WINDOWS if window_s is None else 2):
        return None
    counts = np.bincount(np.minimum((arrival_s / (span / windows)).astype(np.int64), windows - 1), minlength=windows).astype(float)
    found = factors_of(counts)
    return np.ones(windows) if found is None else found, span / windows


def arrival_rates(arrival_s: Array) -> ArrivalRates | None:
    """Groups of windows by their rate; None where windows vary no more than by chance, or there are too few of them.

    Counts in a window vary by chance, which the operating point has in it already: the deviations are shrunk by √(1 − 1/D), D the index
    of dispersion, which leaves the variance that Poisson arrivals at these rates would not explain.
    """
    counted = windows_of(arrival_s)
    if counted is None or float(np.ptp(counted[0])) == 0.0:
        return None
    return _grouped(*counted)


def _grouped(found: Array, window: float) -> ArrivalRates:
    windows = len(found)
    split = np.array_split(np.sort(found), min(GROUPS, windows))
    return ArrivalRates(
        factors=tuple(float(part.mean()) for part in split),
        weights=tuple(len(part) / windows for part in split),
        window_s=window,
        windows=windows,
        spill=spill(found, window),
    )


def arrival_rates_of_windows(counted: Windowed) -> ArrivalRates | None:
    """The same from windows that were counted already: those of requests, else of tokens; None where they vary no more than by chance.

    Windows that were not observed for the better part are left out. Of tokens it is not known how many requests they are of, and so not
    what is chance in them: they are taken as they are.

    >>> from breakeven.spec.evidence import Windowed
    >>> found = arrival_rates_of_windows(Windowed(window_s=60.0, requests=(10.0, 200.0) * 4, output_tokens=()))
    >>> found.windows, round(min(found.factors), 2), round(max(found.factors), 2)
    (8, 0.1, 1.9)
    """
    counts = np.array(counted.requests or counted.output_tokens)
    seen = np.array(counted.observed) if counted.observed else np.ones(len(counts))
    kept = seen >= OBSERVED
    if int(kept.sum()) < FEWEST_WINDOWS or not counts[kept].any():
        return None
    rates = counts[kept] / seen[kept]
    found = factors_of(rates) if counted.requests else np.maximum(rates / rates.mean(), QUIETEST)
    return None if found is None else _grouped(np.asarray(found / found.mean()), counted.window_s)


def factors_of(counts: Array) -> Array | None:
    """Rates of windows over their mean, without what is chance; None where chance explains them (within its 95 % band)."""
    mean, free = counts.mean(), len(counts) - 1
    index = counts.var(ddof=1) / mean
    if index <= 1.0 + 1.645 * (2.0 / free) ** 0.5:
        return None
    found = np.maximum(1.0 + (counts / mean - 1.0) * (1.0 - 1.0 / index) ** 0.5, QUIETEST)
    return np.asarray(found / found.mean())


def spill(factors: Array, window_s: float) -> tuple[tuple[float, float], ...]:
    """Mean wait of a request (s) for what windows above λ_max leave behind, at λ_max over the mean rate from 1 to the busiest window's.

    The queue as a fluid: from window to window q' = max(0, q + f − r), in requests of a mean window; by Little's law the mean wait is its
    mean over time times the window's length.

    >>> [(level, round(wait, 3)) for level, wait in spill(np.array([2.0, 0.0]), 60.0)[::16]]
    [(1.0, 30.0), (1.5, 10.0), (2.0, 0.0)]
    """
    levels = np.linspace(1.0, float(factors.max()), LEVELS)
    queue, area = np.zeros(LEVELS), np.zeros(LEVELS)
    for factor in factors:
        change = factor - levels
        after = np.maximum(queue + change, 0.0)
        emptied = np.where(change < 0.0, queue / np.maximum(-change, 1e-12), 1.0)
        area += np.where(queue + change >= 0.0, (queue + after) / 2.0, queue / 2.0 * np.minimum(emptied, 1.0))
        queue = after
    return tuple((float(level), float(wait)) for level, wait in zip(levels, window_s * area / len(factors), strict=True))
