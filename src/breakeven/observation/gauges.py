"""Levels from gauges: what is read now and then, weighted by the time each reading stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from breakeven.observation.timeline import Series
from breakeven.stats import Array

Together = Literal["sum", "mean"]
LONGEST = 2.0
"""Over the usual time between readings: a reading stands for no longer, whatever was lost after it."""
Q95 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True, kw_only=True)
class Level:
    """Readings of a level with their weights: of one replica, the replicas one after the other."""

    times: Array
    values: Array
    weights: Array
    """Seconds each stands for."""
    independent: float
    """How many readings that do not resemble their neighbours they are worth."""
    metrics: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Mean over time."""
        return float(self.values @ self.weights / self.weights.sum())

    @property
    def mean_above_zero(self) -> float | None:
        """Mean over the time in which it was not 0; None where it always was."""
        above = self.values > 0.0
        return float(self.values[above] @ self.weights[above] / self.weights[above].sum()) if above.any() else None

    @property
    def share_above_zero(self) -> float:
        """Share of the time in which it was not 0."""
        return float(self.weights[self.values > 0.0].sum() / self.weights.sum())

    @property
    def half_width(self) -> float:
        """Half of the 90 % interval of the mean: 1.645·sd/√(independent readings). It tells of luck, not of what no reading saw."""
        variance = float((self.values - self.mean) ** 2 @ self.weights / self.weights.sum())
        return float(Q95 * np.sqrt(variance / max(self.independent - 1.0, 1.0)))

    def distribution(self, step: float = 1.0) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Values, rounded to the step, and the share of the time at each."""
        rounded = np.round(np.round(self.values / step) * step, 9)
        values, places = np.unique(rounded, return_inverse=True)
        shares = np.bincount(places, weights=self.weights) / self.weights.sum()
        return tuple(map(float, values)), tuple(map(float, shares))


def durations(times: Array) -> Array:
    """Seconds that each reading stands for: half of the way to its neighbours, a lost stretch left out. Unit: s.

    >>> durations(np.array([0.0, 2.0, 4.0, 60.0, 62.0])).tolist()
    [1.0, 2.0, 3.0, 3.0, 1.0]
    """
    if times.size < 2:
        return np.ones(times.size)
    gaps = np.diff(times)
    gaps = np.minimum(gaps, LONGEST * float(np.median(gaps)))
    return np.asarray(np.concatenate([gaps, [0.0]]) / 2 + np.concatenate([[0.0], gaps]) / 2)


def independent_readings(values: Array) -> float:
    """How many independent readings a series is worth: n·(1 − ρ)/(1 + ρ), ρ the correlation of neighbours, at least 1.

    Source: the effective size of a first-order autoregressive sample (Bayley and Hammersley 1946). Unit: 1.

    >>> round(independent_readings(np.array([0.0, 1.0] * 50)))
    100
    >>> independent_readings(np.repeat([0.0, 1.0], 50)) < 3
    True
    """
    n = values.size
    away = values - values.mean() if n else values
    power = float(away @ away)
    if n < 3 or power <= 0.0:
        return float(n)
    rho = min(max(float(away[1:] @ away[:-1]) / power, 0.0), 1.0)
    return max(n * (1.0 - rho) / (1.0 + rho), 1.0)


def level(some: Sequence[Series], together: Together = "sum", blocks: Mapping[tuple[str, str], float] | None = None) -> Level | None:
    """The level of a quantity: ranks of a replica summed, or averaged by their blocks; replicas pooled over time. None without readings."""
    found = [_replica(replica, together, blocks or {}) for replica in by_source(some).values()]
    if not found:
        return None
    return Level(
        times=np.concatenate([times for times, _ in found]),
        values=np.concatenate([values for _, values in found]),
        weights=np.concatenate([durations(times) for times, _ in found]),
        independent=sum(independent_readings(values) for _, values in found),
        metrics=tuple(dict.fromkeys(one.alias.family for one in some)),
    )


def by_source(some: Sequence[Series]) -> dict[str, list[Series]]:
    """Series by the replica they are of; without readings they are left out."""
    found: dict[str, list[Series]] = {}
    for one in some:
        if one.times.size:
            found.setdefault(one.source, []).append(one)
    return found


def _replica(some: Sequence[Series], together: Together, blocks: Mapping[tuple[str, str], float]) -> tuple[Array, Array]:
    """Times and values of one replica; a rank that was not read just then has the value it had before."""
    times = np.unique(np.concatenate([one.times for one in some]))
    held = np.stack([held_at(one, times) for one in some])
    if together == "sum":
        return times, np.nansum(held, axis=0)
    known = [blocks.get((one.source, one.rank), 0.0) for one in some]
    weight = np.array(known if all(known) else [1.0] * len(some))[:, None] * ~np.isnan(held)
    return times, np.asarray(np.nansum(held * weight, axis=0) / weight.sum(axis=0))


def held_at(series: Series, times: Array) -> Array:
    """Its last reading at some moments; NaN before the first."""
    places = np.searchsorted(series.times, times, side="right") - 1
    return np.where(places < 0, np.nan, series.values[np.maximum(places, 0)])
