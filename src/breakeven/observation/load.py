"""The load over time: what arrived and was made in equal windows, where the observation is long enough to have some."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from breakeven.observation.timeline import Series, Timeline
from breakeven.origin.arrival_rates import FEWEST_WINDOWS, window_of
from breakeven.spec.evidence import Windowed
from breakeven.stats import Array

READINGS_A_WINDOW = 4.0
"""Of fewer, what is told at a window's edges is as uncertain as what is in it."""
GAP = 4.0
"""Readings further apart than so many times what was asked for: what was between is not known."""


def windowed(timeline: Timeline) -> Windowed | None:
    """Requests, generated tokens and sequences running in equal windows; None where the observation is too short, or tells neither.

    Requests are those that arrived: those that ended, and what more was running or waiting at a window's end than at its beginning.
    """
    by_quantity: dict[str, list[Series]] = {}
    for one in timeline.series:
        if one.times.size:
            by_quantity.setdefault(one.quantity, []).append(one)
    span = timeline.end_s - timeline.start_s
    ended = [*by_quantity.get("requests_finished", ()), *by_quantity.get("requests_failed", ())] or _counts(by_quantity.get("e2e", ()))
    made = by_quantity.get("output_tokens", [])
    if span <= 0.0 or not (ended or made):
        return None
    finished = sum(float(_gained(one)[-1]) for one in ended)
    window = max(window_of(span, max(int(finished), 1)) if ended else 60.0, READINGS_A_WINDOW * timeline.every_s)
    count = int(span / window + 1e-9)
    if count < FEWEST_WINDOWS:
        return None
    edges = np.linspace(timeline.start_s, timeline.end_s, count + 1)
    inside = [*by_quantity.get("running", ()), *by_quantity.get("waiting", ())]
    within = _level(inside, edges, timeline.every_s)
    arrived = np.maximum(np.diff(_total(ended, edges) + within), 0.0) if ended else np.zeros(0)
    return Windowed(
        window_s=span / count,
        requests=tuple(map(float, arrived)),
        output_tokens=tuple(map(float, np.diff(_total(made, edges)))),
        running=tuple(map(float, _means(by_quantity.get("running", ()), edges, timeline.every_s))),
        observed=tuple(map(float, _observed([*ended, *made], edges, timeline.every_s))),
    )


def _counts(some: Iterable[Series]) -> list[Series]:
    return [one for one in some if one.part == "count"]


def _gained(series: Series) -> Array:
    """What a counter rose by since its first reading: a fall is a restart, after which all it shows is new."""
    change = np.diff(series.values)
    return np.concatenate(([0.0], np.cumsum(np.where(change < 0.0, series.values[1:], change))))


def _total(some: Iterable[Series], edges: Array) -> Array:
    return np.asarray(sum((np.interp(edges, one.times, _gained(one)) for one in some), np.zeros(len(edges))))


def _level(some: Iterable[Series], edges: Array, every: float) -> Array:
    """Sums of gauges at some moments: the reading before, as long as it is not older than a gap."""
    found = np.zeros(len(edges))
    for one in some:
        spots = np.searchsorted(one.times, edges, side="right") - 1
        known = (spots >= 0) & (edges - one.times[np.maximum(spots, 0)] <= GAP * every)
        found += np.where(known, one.values[np.maximum(spots, 0)], 0.0)
    return found


def _means(some: Sequence[Series], edges: Array, every: float) -> Array:
    """Mean over each window of what is running, all replicas together."""
    if not some:
        return np.zeros(0)
    area = np.zeros(len(edges))
    for one in some:
        lasting = np.append(np.minimum(np.diff(one.times), GAP * every), every)
        so_far = np.concatenate(([0.0], np.cumsum(one.values * lasting)))
        area += np.interp(edges, np.append(one.times, one.times[-1] + every), so_far)
    return np.asarray(np.diff(area) / np.diff(edges))


def _observed(some: Sequence[Series], edges: Array, every: float) -> Array:
    """Share of each window that lies between readings that are not too far apart."""
    times = np.unique(np.concatenate([one.times for one in some]))
    between = np.diff(times)
    so_far = np.concatenate(([0.0], np.cumsum(np.where(between <= GAP * every, between, 0.0))))
    return np.asarray(np.minimum(np.diff(np.interp(edges, times, so_far)) / np.diff(edges), 1.0))
