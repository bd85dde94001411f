"""A long observation in equal windows: the load over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from breakeven.observation import increases
from breakeven.observation.increases import Rise
from breakeven.observation.opened import GAP
from breakeven.observation.quantities import Quantities
from breakeven.observation.timeline import Series
from breakeven.spec.evidence import Windowed
from breakeven.stats import Array

LONG_S = 600.0
"""From here on an observation has windows."""
SHORTEST_S = 60.0
MOST = 288
"""Windows at most: five minutes each over a day."""
READINGS = 4
"""Times between readings that a window is made of at least."""


def windows(q: Quantities) -> Windowed | None:
    """Requests that arrived, output tokens and mean sequences of each whole window; None where the observation is short.

    Arrived is what began to be answered, and what more waited at a window's end than at its beginning: an overload shows in the queue.
    """
    span = q.timeline.end_s - q.timeline.start_s
    if span < LONG_S:
        return None
    length = max(SHORTEST_S, READINGS * q.timeline.every_s, span / MOST)
    if length > span:
        return None
    edges: Array = np.asarray(q.timeline.start_s + length * np.arange(int(span / length + 1e-9) + 1), dtype=float)
    begun = _parts(q, "ttft", "count") or _parts(q, "requests_finished", "") or _parts(q, "e2e", "count")
    return Windowed(
        window_s=length,
        requests=_arrived(q, begun, edges),
        output_tokens=_counts(_parts(q, "output_tokens", ""), edges),
        running=_running(q, edges),
        observed=_observed(q, edges),
    )


def _parts(q: Quantities, quantity: str, part: str) -> list[Rise]:
    return [one for one in q.rises.get(quantity, ()) if one.series.part == part]


def _counts(some: Sequence[Rise], edges: Array) -> tuple[float, ...]:
    return tuple(map(float, np.diff(increases.gained_at(some, edges))))


def _arrived(q: Quantities, begun: Sequence[Rise], edges: Array) -> tuple[float, ...]:
    if not begun:
        return ()
    within = ("waiting",) if begun[0].series.quantity == "ttft" else ("waiting", "running")
    held = sum((_held(one, edges) for name in within for one in q.series.get(name, ())), np.zeros(edges.size))
    return tuple(map(float, np.maximum(np.diff(increases.gained_at(begun, edges) + held), 0.0)))


def _held(series: Series, edges: Array) -> Array:
    """A gauge at some moments; nothing where its replica was not read about then."""
    places = np.searchsorted(series.times, edges, side="right") - 1
    limit = GAP * float(np.median(np.diff(series.times))) if series.times.size > 1 else 0.0
    known = (places >= 0) & (edges - series.times[np.maximum(places, 0)] <= limit)
    return np.where(known, series.values[np.maximum(places, 0)], 0.0)


def _observed(q: Quantities, edges: Array) -> tuple[float, ...]:
    """Share of each window that lies between readings not too far apart, of any replica."""
    times = np.unique(np.concatenate(list(q.read_at.values())))
    between = np.diff(times)
    near = np.where(between <= GAP * q.timeline.every_s, between, 0.0)
    seen = np.interp(edges, times, np.concatenate([[0.0], np.cumsum(near)]))
    return tuple(map(float, np.minimum(np.diff(seen) / np.diff(edges), 1.0)))


def _running(q: Quantities, edges: Array) -> tuple[float, ...]:
    """Of one replica: by latencies, else by the gauge's readings in the window, straight over windows without any."""
    waited, each = _parts(q, "itl", "sum"), float(edges[1] - edges[0])
    if waited and any(one.total for one in waited):
        replicas = q.replica_seconds / q.seconds if q.seconds else float(q.replicas)
        return tuple(value / (each * replicas) for value in _counts(waited, edges))
    level = q.level("running")
    if level is None:
        return ()
    places = np.clip(np.searchsorted(edges, level.times, side="right") - 1, 0, edges.size - 2)
    weight = np.bincount(places, weights=level.weights, minlength=edges.size - 1)
    held = np.bincount(places, weights=level.weights * level.values, minlength=edges.size - 1)
    known = weight > 0.0
    middles = (edges[:-1] + edges[1:]) / 2
    return tuple(map(float, np.interp(middles, middles[known], held[known] / weight[known])))
