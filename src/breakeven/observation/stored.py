"""Series of a metrics store to series of quantities: whose they are, when they were really read, and which of them are one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from breakeven.adapter import AVERAGED, QUANTITIES
from breakeven.exposition.derived import RULES, Rule
from breakeven.observation import page
from breakeven.observation.gauges import held_at
from breakeven.observation.page import Part
from breakeven.observation.timeline import Series
from breakeven.stats import Array

WHERE = ("cluster", "namespace", "pod", "instance")
"""Labels that tell replicas apart, whichever of them are there."""
TWINS = ("prometheus_replica", "__replica__", "receive_replica")
"""Labels of servers that scraped the same engine: their series are copies."""
HALF_MS = 0.0005
"""A store counts in whole milliseconds: what lies no further from a time that was asked for is of that time."""
EXPORTED = "exported_"
"""Put before an engine's own label where the target has one of that name."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A series as the store has it."""

    labels: Mapping[str, str]
    times: Array
    values: Array
    part: Part = ""
    le: float | None = None
    """Of what was taken out of a native histogram."""
    not_numbers: int = 0
    """Samples that were left out, since they were no numbers."""
    began_before: bool = False
    """Whether the first of them was, so that it may have been counted before its first reading."""


@dataclass(frozen=True, kw_only=True)
class _Piece:
    series: Series
    order: int
    copy: tuple[str, ...]
    began_before: bool


def own(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels as the engine gave them."""
    return {**labels, **{name.removeprefix(EXPORTED): value for name, value in labels.items() if name.startswith(EXPORTED)}}


def twins(some: Sequence[Mapping[str, str]]) -> tuple[str, str] | None:
    """The label of copies and the value to keep, where two servers scraped the same engines."""
    for name in TWINS:
        count = {value: sum(labels.get(name) == value for labels in some) for value in {labels.get(name, "") for labels in some} - {""}}
        if len(count) > 1:
            return name, max(sorted(count), key=lambda value: count[value])
    return None


def where(labels: Mapping[str, str]) -> tuple[str, ...]:
    """What a series says of where it is from."""
    return tuple(labels.get(name, "") for name in WHERE)


def replicas(some: Iterable[Mapping[str, str]]) -> dict[tuple[str, ...], str]:
    """Names of replicas by the labels that tell them apart: the pod's, or the instance's address; all of them where that is not enough."""
    keys = sorted({where(labels) for labels in some})
    short = {key: "/".join(filter(None, key[:3])) if key[2] else key[3] for key in keys}
    names = list(short.values())
    return {key: name if names.count(name) == 1 else " ".join(filter(None, key)) for key, name in short.items()}


def spots_of(grid: Array, times: Array) -> NDArray[np.intp]:
    """Where on the grid the times of an answer lie.

    >>> spots_of(np.arange(3) * 0.1 + 1796040000.0, np.array([1796040000.1, 1796040000.2])).tolist()
    [1, 2]
    """
    return np.asarray(np.minimum(np.searchsorted(grid, times - HALF_MS), len(grid) - 1))


def fresh(stored: Stored, grid: Array, stamps: Array) -> Stored:
    """Readings at the times of their scrapes, each once: what a store repeats after the last scrape is no reading.

    ``stamps`` are the times of the scrapes that the readings at ``grid`` are of.
    """
    spots = spots_of(grid, stored.times)
    times = np.where(np.abs(grid[spots] - stored.times) <= HALF_MS, stamps[spots], stored.times)
    latest = np.maximum.accumulate(times)
    new = np.concatenate((np.ones(min(len(times), 1), dtype=bool), latest[1:] > latest[:-1])) & ~np.isnan(stored.values)
    return replace(stored, times=times[new], values=stored.values[new])


def places_of(name: str) -> tuple[page.Place, ...]:
    """What a stored name may tell; a histogram's own name has all of it where it is a native one."""
    return page.places().get(name) or tuple(replace(one, part="") for one in page.places().get(f"{name}_count", ()))


def told_by(labels: Mapping[str, str], adapters: Sequence[str]) -> set[page.Key]:
    """What a series tells."""
    found = (page.key(place, own(labels)) for place in places_of(labels["__name__"]) if place.adapter in adapters)
    return {one for one in found if one is not None}


def series_of(some: Iterable[Stored], adapters: Sequence[str], sources: Mapping[tuple[str, ...], str]) -> tuple[Series, ...]:
    """Series of quantities: those of a rank that only other labels tell apart become one, and of several names the best is taken."""
    groups: dict[tuple[object, ...], list[_Piece]] = {}
    for one in some:
        for place in places_of(one.labels["__name__"]):
            piece = _piece(one, place, sources) if place.adapter in adapters else None
            if piece is not None:
                s = piece.series
                key = (s.quantity, s.source, place.adapter, piece.order, s.rank, s.split, s.part, s.le, *sorted(s.labels.items()))
                groups.setdefault(key, []).append(piece)
    return with_derived(tuple(_best([_one(group) for group in groups.values()])))


def with_derived(some: Sequence[Series]) -> tuple[Series, ...]:
    """With what follows from two quantities of a rank, at the times both were read."""
    plain = [one for one in some if not one.split and not one.part]
    found = {(one.quantity, one.source, one.rank): one for one in plain}
    told = {(one.quantity, one.source) for one in some}
    made: list[Series] = []
    for rule in RULES:
        new = [
            _derived(rule, first, second)
            for (quantity, source, rank), first in found.items()
            if quantity == rule.first and (rule.quantity, source) not in told
            if (second := found.get((rule.second, source, rank))) is not None
        ]
        found |= {(one.quantity, one.source, one.rank): one for one in new}
        told |= {(one.quantity, one.source) for one in new}
        made += new
    return (*some, *(one for one in made if one.times.size))


def _derived(rule: Rule, first: Series, second: Series) -> Series:
    times, here, there = np.intersect1d(first.times, second.times, return_indices=True)
    values = np.asarray(rule.made(first.values[here], second.values[there]), dtype=float)
    return replace(first, quantity=rule.quantity, times=times, values=values)


def _piece(one: Stored, place: page.Place, sources: Mapping[tuple[str, ...], str]) -> _Piece | None:
    labels, kind = own(one.labels), QUANTITIES[place.quantity]
    key = page.key(place, labels)
    part = place.part or one.part
    if key is None or (kind == "histogram") != bool(part):
        return None
    scale = place.alias.scale
    series = Series(
        quantity=place.quantity,
        source=sources[where(one.labels)],
        rank=key.rank,
        split=key.split,
        part=part,
        le=key.le if one.le is None else one.le * scale,
        alias=place.alias,
        times=one.times,
        values=one.values if part in ("count", "bucket") or scale == 1.0 else one.values * scale,
        labels=labels if kind == "info" else {},
    )
    copy = tuple(labels.get(name, "") for name in page.adapter(place.adapter).copy_labels)
    return _Piece(series=series, order=place.order, copy=copy, began_before=one.began_before)


def _one(group: Sequence[_Piece]) -> _Piece:
    """Series that only other labels tell apart, as one: added up, or averaged; each is held until its next reading."""
    first_copy = min((piece.copy for piece in group), key=lambda copy: [(len(value), value) for value in copy])
    group = [piece for piece in group if piece.copy == first_copy]
    first = group[0].series
    if len(group) == 1 or QUANTITIES[first.quantity] == "info":
        return group[-1]
    times = np.unique(np.concatenate([piece.series.times for piece in group]))
    rows = np.stack([_held(piece, times) for piece in group])
    known = ~np.isnan(rows)
    total = np.where(known, rows, 0.0).sum(axis=0)
    if first.quantity in AVERAGED:
        total = total / np.maximum(known.sum(axis=0), 1)
    return replace(group[0], series=replace(first, times=times, values=total))


def _held(piece: _Piece, times: Array) -> Array:
    """A part of a sum over time: what was no number at first stands at its first reading, since it has not risen from nothing there."""
    held = held_at(piece.series, times)
    return np.where(np.isnan(held), piece.series.values[0], held) if piece.began_before and piece.series.values.size else held


def _best(pieces: Sequence[_Piece]) -> Iterable[Series]:
    """Of a quantity's names the best that a replica has; another only at times it is not there: names change when engines are upgraded."""
    spans: dict[tuple[str, str], list[tuple[float, float]]] = {}
    found: list[Series] = []
    for order in sorted({piece.order for piece in pieces}):
        mine = [piece.series for piece in pieces if piece.order == order]
        cut = [series for one in mine if (series := _outside(one, spans.get((one.quantity, one.source), ()))) is not None]
        for one in cut:
            spans.setdefault((one.quantity, one.source), []).append((float(one.times[0]), float(one.times[-1])))
        found += cut
    return found


def _outside(series: Series, spans: Iterable[tuple[float, float]]) -> Series | None:
    keep = np.ones(len(series.times), dtype=bool)
    for low, high in spans:
        keep &= (series.times < low) | (series.times > high)
    return replace(series, times=series.times[keep], values=series.values[keep]) if keep.any() else None
