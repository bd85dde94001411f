"""Histograms of metrics: merged over series, means from sum and count, quantiles inside buckets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Counts up to bounds (cumulative, the last bound may be infinite), and the sum of what was observed."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float
    count: float
    unlike: bool = False
    """Whether series with different bounds were merged."""

    @property
    def mean(self) -> float | None:
        """Sum over count: exact, whatever the buckets; None of nothing."""
        return self.total / self.count if self.count > 0.0 else None


def histogram(buckets: Iterable[tuple[float, float]], total: float, count: float) -> Histogram:
    """A histogram of (bound, count up to it); counts that fall with the bound are the artefact of a reading in between, and are lifted.

    >>> histogram([(2.0, 3.0), (1.0, 4.0)], 5.0, 4.0).counts
    (4.0, 4.0)
    """
    ordered = sorted(buckets)
    counts = np.maximum.accumulate(np.array([value for _, value in ordered])) if ordered else np.zeros(0)
    return Histogram(bounds=tuple(bound for bound, _ in ordered), counts=tuple(map(float, counts)), total=total, count=count)


def merged(some: Sequence[Histogram]) -> Histogram:
    """Histograms added; over unlike bounds on their union, where one that lacks a bound counts what lies under its next lower.

    C(x) = Σ_j C_j(max bound of j ≤ x): never more than was observed up to x, so that no quantile is told too small.

    >>> merged([histogram([(1.0, 1.0), (4.0, 3.0)], 6.0, 3.0), histogram([(2.0, 5.0), (4.0, 5.0)], 7.0, 5.0)]).counts
    (1.0, 6.0, 8.0)
    """
    with_buckets = [one for one in some if one.bounds]
    bounds = sorted({bound for one in with_buckets for bound in one.bounds})
    counts = sum((_at(one, bounds) for one in with_buckets), np.zeros(len(bounds)))
    return Histogram(
        bounds=tuple(bounds),
        counts=tuple(float(value) for value in counts),
        total=sum(one.total for one in some),
        count=sum(one.count for one in some),
        unlike=len({one.bounds for one in with_buckets}) > 1,
    )


def _at(one: Histogram, bounds: Sequence[float]) -> Array:
    places = np.searchsorted(np.array(one.bounds), np.array(bounds), side="right")
    return np.concatenate([[0.0], np.array(one.counts)])[places]


def quantile(one: Histogram, q: float) -> float | None:
    """The value that a share q is within, straight inside its bucket; None beyond the last bucket that is bounded, or of nothing.

    x = a + (b − a)·(q·n − C(a))/(C(b) − C(a)), and at most mean/(1 − q); the first bucket begins at 0 where its bound is above 0.
    Unit: that of the bounds. Source: ``histogram_quantile`` of the Prometheus documentation (2024), except that it answers the last bound
    where we answer None; the limit is Markov's inequality, which tells queues of microseconds in a first bucket of 0.3 s from 0.15 s.

    >>> h = histogram([(1.0, 2.0), (2.0, 6.0), (inf, 8.0)], 14.0, 8.0)
    >>> quantile(h, 0.5), quantile(h, 0.75), quantile(h, 0.9)
    (1.5, 2.0, None)
    >>> quantile(histogram([(0.25, 8.0), (inf, 8.0)], 0.125, 8.0), 0.5)
    0.03125
    """
    if not one.bounds or one.count <= 0.0:
        return None
    wanted = q * max(one.count, one.counts[-1])
    place = int(np.searchsorted(np.array(one.counts), wanted))
    if place >= len(one.bounds) or not isfinite(one.bounds[place]):
        return None
    high, before = one.bounds[place], one.counts[place - 1] if place else 0.0
    low = one.bounds[place - 1] if place else min(0.0, high)
    inside = one.counts[place] - before
    straight = low + (high - low) * (wanted - before) / inside if inside > 0.0 else high
    return straight if one.mean is None or low < 0.0 or q >= 1.0 else max(low, min(straight, one.mean / (1.0 - q)))


def second_moment(one: Histogram) -> float | None:
    """E[X²] from bucket middles, scaled so that their mean is the exact one; None where most lies beyond the bounded buckets.

    E[X²] ≈ Σ_j n_j·m_j² · (mean/Σ_j n_j·m_j)²: the buckets give the shape, sum and count the size.

    >>> second_moment(histogram([(10.0, 4.0), (20.0, 8.0)], 80.0, 8.0))
    125.0
    """
    bounded = [(bound, count) for bound, count in zip(one.bounds, one.counts, strict=True) if isfinite(bound)]
    if not bounded or one.mean is None or bounded[-1][1] < one.count / 2:
        return None
    edges = np.array([0.0, *(bound for bound, _ in bounded)])
    share = np.diff(np.array([0.0, *(count for _, count in bounded)]))
    middles = (edges[:-1] + edges[1:]) / 2
    mean = float(share @ middles / share.sum())
    return float(share @ middles**2 / share.sum()) * (one.mean / mean) ** 2 if mean > 0.0 else None


def grouped(parts: Iterable[tuple[tuple[str, str, str], str, float | None, float]]) -> list[Histogram]:
    """Histograms from (whose, part, bound, increase): one for each series that is told apart."""
    found: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    buckets: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for whose, part, bound, value in parts:
        if part == "bucket":
            buckets[whose].append((inf if bound is None else bound, value))
        else:
            found[whose][part] = found[whose].get(part, 0.0) + value
    whole = {whose: max((value for bound, value in some if bound == inf), default=0.0) for whose, some in buckets.items()}
    return [
        histogram(buckets.get(whose, ()), found[whose].get("sum", 0.0), found[whose].get("count", whole.get(whose, 0.0)))
        for whose in dict.fromkeys([*found, *buckets])
    ]
