"""A lever's own error from pairs that were left out: the sigma under which nine tenths of them lie in their 90 % intervals.

An interval is ± 1.645·√(s² + σ²): s is what the draws already have (acceptance, sheets, kernels that are not named), σ the lever's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.draws import Draws
from breakeven.evaluator import Noise
from breakeven.measured.pair import Pair
from breakeven.stats import Q95, Array

FEWEST_GROUPS = 3
"""Groups from which on a row of the table stands on its own; below it takes what the lever's rows need together."""
LEAST, MOST = 0.01, 2.0
SHARE = 0.9


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A left-out pair: its error, what the draws spread already, and the sigma the lever would take of the table in force."""

    lever: str
    row: str
    """Row of the lever's table, or the regime where a lever takes several rows together."""
    group: str
    error: float
    drawn: float
    stated: float
    """Of the prior's table, before its share."""
    share: float = 1.0
    """Of what was measured, the part that the error applies to."""
    floor: float = 0.0
    """An error that is there beside it."""


def drawn(pair: Pair, draws: Draws) -> float:
    """Standard deviation of ln gain in the draws without the lever's own error, from its 5 and 95 % quantiles."""
    found = np.log(np.asarray(pair.gain(draws, Noise()), dtype=float))
    if found.size == 1:
        return 0.0
    low, high = np.quantile(found, [0.05, 0.95])
    return float(high - low) / (2.0 * Q95)


def covering(misses: Sequence[Miss]) -> float:
    """The sigma of rows that err alike (bisection); rows of one group count as they go together."""
    error, spread, floor, share = (np.array([getattr(miss, name) for miss in misses]) for name in ("error", "drawn", "floor", "share"))
    weight = _weight(misses)

    def covered(sigma: float) -> float:
        inside = np.abs(error) <= Q95 * np.sqrt(spread**2 + floor**2 + (sigma * share) ** 2)
        return float((weight * inside).sum() / weight.sum())

    return _least(covered)


def factor(misses: Sequence[Miss]) -> float:
    """The factor on the stated sigmas that rows of several kinds need together."""
    names = ("error", "drawn", "floor", "share", "stated")
    error, spread, floor, share, stated = (np.array([getattr(miss, name) for miss in misses]) for name in names)
    weight = _weight(misses)

    def covered(times: float) -> float:
        inside = np.abs(error) <= Q95 * np.sqrt(spread**2 + floor**2 + (times * stated * share) ** 2)
        return float((weight * inside).sum() / weight.sum())

    return _least(covered, high=20.0)


def _least(covered: Callable[[float], float], high: float = MOST) -> float:
    low = LEAST
    if covered(low) >= SHARE:
        return low
    for _ in range(40):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if covered(middle) >= SHARE else (middle, high)
    return high


def _weight(misses: Sequence[Miss]) -> Array:
    """What a row of a group counts: 1/(1 + (n − 1)·ρ), the design effect of n rows that go together (Kish 1965, section 5.4)."""
    groups = [miss.group for miss in misses]
    counts = {group: groups.count(group) for group in set(groups)}
    together = _together(misses)
    return np.array([1.0 / (1.0 + (counts[group] - 1) * together) for group in groups])


def _together(misses: Sequence[Miss]) -> float:
    """ρ: the share of the errors' variance that is common to a group; 1 where no group has two rows."""
    by_group: dict[str, list[float]] = {}
    for miss in misses:
        by_group.setdefault(miss.group, []).append(miss.error)
    several = [np.var(errors, ddof=1) for errors in by_group.values() if len(errors) > 1]
    if not several or len(by_group) < FEWEST_GROUPS:
        return 1.0
    within = float(np.mean(several))
    between = float(np.var([np.mean(errors) for errors in by_group.values()], ddof=1))
    return between / (between + within) if between + within > 0.0 else 1.0


def sigma_for(miss: Miss, others: Sequence[Miss]) -> float:
    """The sigma of a row of the table by other groups: its own rows where they are enough, else the stated one times the lever's factor."""
    lever = [other for other in others if other.lever == miss.lever]
    own = [other for other in lever if other.row == miss.row]
    if len({other.group for other in own}) >= FEWEST_GROUPS:
        return covering(own)
    return miss.stated * (factor(lever) if len({other.group for other in lever}) >= FEWEST_GROUPS else 1.0)


def left_out_sigmas(misses: Sequence[Miss]) -> Array:
    """For every pair the sigma that the other groups tell."""
    known: dict[tuple[str, str, str, float], float] = {}
    for miss in misses:
        key = (miss.lever, miss.row, miss.group, miss.stated)
        if key not in known:
            known[key] = sigma_for(miss, [other for other in misses if other.group != miss.group])
    return np.array([known[miss.lever, miss.row, miss.group, miss.stated] for miss in misses])
