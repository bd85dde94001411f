"""Figures from estimators: the best one that can be made, and all others beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from breakeven.spec.evidence import Figure, Sure


def figure(
    value: float | None, sure: Sure, how: str, metrics: Sequence[str] = (), *, within: float | None = None, half: float | None = None
) -> Figure | None:
    """A figure; None without a finite value. ``within`` is a relative half-width, ``half`` an absolute one."""
    if value is None or not isfinite(value):
        return None
    width = half if within is None else abs(value) * within
    low, high = (None, None) if width is None else (max(value - width, 0.0), value + width)
    return Figure(value=value, sure=sure, how=how, metrics=tuple(dict.fromkeys(metrics)), low=low, high=high)


def known(some: Iterable[Figure | None]) -> tuple[Figure, ...]:
    """Those that could be made, in their order."""
    return tuple(one for one in some if one is not None)


def ratio(over: float | None, under: float | None) -> float | None:
    """One over the other; None where either is not known, or of nothing."""
    return over / under if over is not None and under else None
