"""Break-evens and the intervals on which a lever pays, along any axis."""

from __future__ import annotations

import numpy as np

from breakeven.advice import Axis, Boundary, BreakEven, Metric
from breakeven.axes import Grid, grid, move
from breakeven.draws import MEDIAN, Draws
from breakeven.evaluator import Point, evaluate
from breakeven.judge import NOTHING, Arms, gain_draws, noise_of, quantile
from breakeven.stats import Array

SOME = 1e-6
"""At a threshold of 0 a gain has still to be one: no change never pays."""
BETWEEN = 5
"""Further points between two neighbours of a grid where the curve crosses a level between them."""


def gain_along(arms: Arms, axis: Axis, values: Array, metric: Metric, draws: Draws) -> Array | None:
    """Gain at each value. Shape (values, draws); (values,) in the median world. The error of the lever rides along."""
    shape = (len(values), draws.size) if draws.size else values.shape
    if arms.off is arms.on:
        # Two equal arms gain nothing, wherever there is a point at all: one value tells of all of them.
        one = _gain_at(arms, axis, float(values[0]), metric, MEDIAN)
        return None if one is None else np.ones(shape)
    if axis == "draft_tokens":
        # Without the lever nothing is drafted, however much: one point is all of them.
        off = evaluate(arms.off, draws, exact=not draws.size) if arms.off.engine.speculative is None else None
        rows = [_gain_at(arms, axis, float(value), metric, draws, off) for value in values]
        return None if any(row is None for row in rows) else np.array(rows)
    found = _gain_at(arms, axis, values[:, None] if draws.size else values, metric, draws)
    return None if found is None else np.broadcast_to(found, shape)


def _gain_at(arms: Arms, axis: Axis, value: Array | float, metric: Metric, draws: Draws, point_off: Point | None = None) -> Array | None:
    """The curve itself is exact; its draws, which only say how far a crossing may lie off, take the open loop's fast form."""
    exact = not draws.size
    a = point_off or evaluate(move(arms.off, axis, value), draws, exact=exact)
    if arms.off is arms.on:
        return gain_draws(a, a, metric)
    b = evaluate(move(arms.on, axis, value), draws, noise=noise_of(arms.lever, arms.sigma, draws), exact=exact)
    return gain_draws(a, b, metric)


def crossings(values: Array, gain: Array, level: float, *, logarithmic: bool) -> Array:
    """Where a curve crosses a level, by interpolation between neighbours (on the axis' own scale); the ends of a stretch on it count."""
    x = np.log(values) if logarithmic else values
    y = np.clip(gain, 0.0, 1e6) - level
    at = np.flatnonzero((y[:-1] >= 0) != (y[1:] >= 0))
    found = x[at] + (x[at + 1] - x[at]) * (-y[at]) / (y[at + 1] - y[at])
    return np.exp(found) if logarithmic else found


def break_evens(values: Array, gain: Array, *, logarithmic: bool) -> Array:
    """Where gain = 1 with a loss on one side and a gain on the other; what stays within half a per cent of 1 has no side.

    >>> break_evens(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.9, 1.1, 1.002, 0.998]), logarithmic=False)
    array([1.5])
    """
    sided = np.flatnonzero(np.abs(gain - 1.0) > NOTHING)
    lose = gain[sided] < 1.0
    turns = np.flatnonzero(lose[1:] != lose[:-1])
    found = []
    for left, right in zip(sided[turns], sided[turns + 1], strict=True):
        part = slice(left, right + 1)
        found.append(crossings(values[part], gain[part], 1.0, logarithmic=logarithmic)[0])
    return np.array(found)


def _sharpened(arms: Arms, where: Grid, metric: Metric, gain: Array, levels: tuple[float, ...]) -> tuple[Array, Array]:
    """The curve with more points between those where it crosses a level: between two of them it need not be straight."""
    if where.axis == "draft_tokens":
        return where.values, gain
    above = np.array([gain >= level for level in levels])
    cells = np.flatnonzero((above[:, 1:] != above[:, :-1]).any(axis=0))
    if not len(cells):
        return where.values, gain
    spaced = np.geomspace if where.logarithmic else np.linspace
    between = np.concatenate([spaced(where.values[i], where.values[i + 1], BETWEEN + 2)[1:-1] for i in cells])
    more = gain_along(arms, where.axis, between, metric, MEDIAN)
    if more is None:
        return where.values, gain
    values = np.concatenate([where.values, between])
    order = np.argsort(values, kind="stable")
    return values[order], np.concatenate([gain, more])[order]


def pays_on(values: Array, gain: Array, level: float, *, logarithmic: bool) -> tuple[tuple[float | None, float | None], ...]:
    """Intervals with gain ≥ level; None where one runs on past what was looked at."""
    edges: list[float | None] = [float(place) for place in crossings(values, gain, level, logarithmic=logarithmic)]
    if gain[0] >= level:
        edges.insert(0, None)
    if len(edges) % 2:
        edges.append(None)
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def _spread(at: float, values: Array, gain: Array, *, rising: bool, logarithmic: bool) -> BreakEven:
    """A median crossing with its interval: the nearest crossing of each draw; a draw without one lies beyond the range.

    On which side follows from where the draw stands at the crossing, and from whether the curve rises through it.
    """
    x = np.log(values) if logarithmic else values
    here = np.log(at) if logarithmic else at
    y = np.clip(gain, 0.0, 1e6) - 1.0
    change = (y[:-1] >= 0) != (y[1:] >= 0)
    slope = np.where(change, y[1:] - y[:-1], 1.0)
    place = np.where(change, x[:-1, None] + (x[1:] - x[:-1])[:, None] * (-y[:-1]) / slope, np.inf)
    nearest = np.take_along_axis(place, np.abs(np.where(np.isfinite(place), place, 1e30) - here).argmin(axis=0)[None], axis=0)[0]
    beyond = np.where((y[np.abs(x - here).argmin()] < 0) == rising, np.inf, -np.inf)
    nearest = np.where(np.isfinite(nearest), nearest, beyond)
    low, high = quantile(nearest, 0.05), quantile(nearest, 0.95)
    ends = (min(low, here), max(high, here))
    low_end, high_end = (None if not np.isfinite(end) else float(np.exp(end) if logarithmic else end) for end in ends)
    return BreakEven(value=at, low=low_end, high=high_end)


def _rises(at: float, values: Array, gain: Array) -> bool:
    """Whether the curve is below 1 before the crossing."""
    return bool(gain[max(int(np.searchsorted(values, at)) - 1, 0)] < 1.0)


def metric_on(axis: Axis, objective: Metric, arms: Arms) -> Metric:
    """The metric a boundary is drawn in: the objective, or time per token where the workload has no requests to wait for."""
    if axis == "batch" and objective == "throughput":
        return "throughput"
    if objective in ("e2e", "ttft") and arms.point_on.e2e_s is None:
        return "tpot"
    return objective


def boundary(arms: Arms, axis: Axis, objective: Metric, threshold: float, draws: Draws, *, spread: bool = True) -> Boundary | None:
    """A lever along one axis: break-evens with their intervals, and where it pays at the median."""
    where = grid(arms, axis)
    if where is None:
        return None
    metric = metric_on(axis, objective, arms)
    middle = gain_along(arms, axis, where.values, metric, MEDIAN)
    if middle is None:
        return None
    level = 1.0 + max(threshold, SOME)
    values, fine = _sharpened(arms, where, metric, middle, (1.0, level))
    even = break_evens(values, fine, logarithmic=where.logarithmic)
    wide = gain_along(arms, axis, where.values, metric, draws) if spread and len(even) else None
    found = tuple(
        BreakEven(value=float(at), low=None, high=None)
        if wide is None
        else _spread(float(at), where.values, wide, rising=_rises(float(at), values, fine), logarithmic=where.logarithmic)
        for at in even
    )
    return Boundary(
        axis=axis,
        metric=metric,
        break_even=found,
        pays_on=pays_on(values, fine, level, logarithmic=where.logarithmic),
        looked_at=(float(where.values[0]), float(where.values[-1])),
        here=where.here,
    )


def boundaries(arms: Arms, axes: tuple[Axis, ...], objective: Metric, threshold: float, draws: Draws) -> tuple[Boundary, ...]:
    """A lever along every axis that means something for it."""
    found = (boundary(arms, axis, objective, threshold, draws) for axis in axes)
    return tuple(b for b in found if b is not None)
