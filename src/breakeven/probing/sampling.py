"""A work repeated within a budget of seconds: how fast it was at best, in the middle, and how far repetitions lie apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from breakeven.probing.backend import Work

REPEATS = 25
FEWEST = 3
LEAST_S = 0.02
"""A repetition lasts at least this long: works that are shorter are done several times in one, since clocks and launches cost some µs."""
MOST_AT_ONCE = 4096
Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Seconds of one work."""

    best_s: float
    median_s: float
    spread: float
    """(longest − shortest)/median of the repetitions."""
    repeats: int


def sampled(work: Work, wait: Work, budget_s: float, clock: Clock = perf_counter) -> Sampled:
    """Seconds of a work after one that is not counted: up to 25 repetitions, three at least, no further one beyond the budget."""
    began = clock()
    _timed(work, wait, 1, clock)
    once = max(_timed(work, wait, 1, clock), 1e-9)
    together = min(max(int(LEAST_S / once), 1), MOST_AT_ONCE)
    found: list[float] = []
    while len(found) < REPEATS and (len(found) < FEWEST or clock() - began < budget_s):
        found.append(_timed(work, wait, together, clock) / together)
    middle = median(found)
    return Sampled(best_s=min(found), median_s=middle, spread=(max(found) - min(found)) / middle, repeats=len(found))


def _timed(work: Work, wait: Work, times: int, clock: Clock) -> float:
    began = clock()
    for _ in range(times):
        work()
    wait()
    return clock() - began
