"""A metrics history on a Prometheus server: what it kept of running engines, as a timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.observation import matrix, page, prometheus
from breakeven.observation.prometheus import Server
from breakeven.observation.stored import Stored, fresh, own, places_of, replicas, series_of, twins, where
from breakeven.observation.timeline import Series, Timeline
from breakeven.stats import Array

MOST_SERIES = 20_000
GAP = 4.0
"""Readings further apart than so many steps have a gap between them."""
MATCHER = r"""[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)"""
SELECTOR = re.compile(rf"\{{\s*((?:{MATCHER})(?:\s*,\s*(?:{MATCHER}))*)?\s*,?\s*\}}")
MOMENTS = (1.0, 0.5, 0.25, 0.75, 0.1)
"""Where in a range it is looked how often an engine was scraped: it need not have run all the time."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which part of a history."""

    match: str
    """Matchers of labels, in braces."""
    start_s: float
    end_s: float
    step_s: float | None = None
    """None: from the range, and not finer than the engine was scraped."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the store has under the matchers."""

    engine: str
    adapters: tuple[str, ...]
    inner: str
    labels: Sequence[Mapping[str, str]]
    sources: Mapping[tuple[str, ...], str]
    notes: tuple[Message, ...]


def read(server: Server, asked: Asked) -> Timeline:
    """What a server kept of the engines of one model, over a range: refused where it is of several, or of none that is known."""
    found = _look(server, asked)
    clock = _clock_names(found)
    moments = (asked.start_s + part * (asked.end_s - asked.start_s) for part in MOMENTS)
    interval = matrix.interval_of(server, matrix.selector(clock[:1], found.inner), moments)
    step = matrix.step_of(asked.end_s - asked.start_s, len(found.labels), interval, asked.step_s)
    grid = matrix.grid_of(asked.start_s, asked.end_s, step)
    stamps, notes = _stamps(server, found, grid, clock)
    series = series_of(_stored(server, found, grid, stamps), found.adapters, found.sources)
    if not series:
        raise InputError("history_empty", server=server.name, match=asked.match)
    said = (*found.notes, *notes, *_coarse(step, interval), *prometheus.warned(server))
    return _timeline(found.engine, series, grid, max(step, interval or 0.0), said)


def matchers(match: str) -> str:
    """The matchers within the braces, to stand beside ours.

    >>> matchers('{job="vllm", pod=~"a.*",}')
    'job="vllm", pod=~"a.*"'
    """
    form = SELECTOR.fullmatch(match.strip())
    if form is None:
        raise InputError("history_match", value=match[:80])
    return form[1] or ""


def _look(server: Server, asked: Asked) -> _Found:
    inner = matchers(asked.match)
    span = {"start": f"{asked.start_s:.3f}", "end": f"{asked.end_s:.3f}"}
    names = prometheus.label_values(server, "__name__", match=f"{{{inner}}}" if inner else '{__name__!=""}', **span)
    adapters = _adapters(server, asked, names)
    wanted = sorted(name for name in names if any(place.adapter in adapters for place in places_of(name)))
    labels: list[dict[str, str]] = []
    for some in matrix.groups(wanted):
        labels += prometheus.series(server, match=matrix.selector(some, inner), limit=MOST_SERIES + 1, **span)
        if len(labels) > MOST_SERIES:
            raise InputError("history_series", server=server.name, most=MOST_SERIES)
    return _of_one_model(server, asked, adapters, inner, labels)


def _adapters(server: Server, asked: Asked, names: Sequence[str]) -> tuple[str, ...]:
    """The adapter of the engine whose names are there, and those of devices."""
    there = set(names)
    read = {place.adapter for name in names for place in places_of(name)}
    mine = [name for name in sorted(read) if not (marks := page.adapter(name).marks) or there.intersection(marks)]
    engines = [name for name in mine if page.adapter(name).role == "engine"]
    if len(engines) > 1:
        raise InputError("history_engines", names=", ".join(engines), match=asked.match)
    if not names:
        raise InputError("history_empty", server=server.name, match=asked.match)
    if not engines:
        raise InputError("history_unknown", match=asked.match, names=", ".join(sorted(names)[:5]), count=len(names))
    return (*engines, *(name for name in mine if page.adapter(name).role == "device"))


def _of_one_model(server: Server, asked: Asked, adapters: tuple[str, ...], inner: str, labels: Sequence[Mapping[str, str]]) -> _Found:
    notes: list[Message] = []
    copies = twins(labels)
    if copies is not None:
        name, kept = copies
        labels = [one for one in labels if one.get(name, kept) == kept]
        inner = ", ".join(part for part in (inner, f'{name}=~"{re.escape(kept)}|"') if part)
        notes.append(Message("history.twins", {"label": name, "kept": kept}))
    if not labels:
        raise InputError("history_empty", server=server.name, match=asked.match)
    engine = page.adapter(adapters[0])
    models = sorted({name for one in labels if (name := own(one).get(engine.model_label, ""))})
    if len(models) > 1:
        raise InputError("history_models", count=len(models), names=", ".join(models[:8]), label=engine.model_label, match=asked.match)
    sources = replicas(labels)
    if any(not any(key) for key in sources):
        notes.append(Message("history.no_instance"))
    return _Found(engine=engine.engine, adapters=adapters, inner=inner, labels=labels, sources=sources, notes=tuple(notes))


def _clock_names(found: _Found) -> list[str]:
    """Names of the engine's metrics, first those that most replicas have, and of these those of the fewest series."""
    by_name: dict[str, list[tuple[str, ...]]] = {}
    for one in found.labels:
        if any(place.adapter == found.adapters[0] for place in places_of(one["__name__"])):
            by_name.setdefault(one["__name__"], []).append(where(one))
    return sorted(by_name, key=lambda name: (-len(set(by_name[name])), len(by_name[name]), name))


def _stamps(server: Server, found: _Found, grid: Array, names: Sequence[str]) -> tuple[dict[str, Array], tuple[Message, ...]]:
    """When each replica was scraped, at the times of the grid: all its metrics are at once, so that one of them tells."""
    rows: dict[str, Array] = {}
    count = sum(one["__name__"] == names[0] for one in found.labels)
    try:
        for one in matrix.gathered(server, f"timestamp({matrix.selector(names[:1], found.inner)})", grid, count):
            source = found.sources.get(where(one.labels))
            if source is not None:
                row = rows.setdefault(source, grid.copy())
                row[np.minimum(np.searchsorted(grid, one.times), len(grid) - 1)] = one.values
    except InputError:
        return {}, (Message("history.no_stamps", {"lookback": matrix.LOOKBACK_S}),)
    return rows, ()


def _stored(server: Server, found: _Found, grid: Array, stamps: Mapping[str, Array]) -> Iterator[Stored]:
    names = sorted({one["__name__"] for one in found.labels})
    for some in matrix.groups(names):
        count = sum(one["__name__"] in some for one in found.labels)
        for one in matrix.gathered(server, matrix.selector(some, found.inner), grid, count):
            source = found.sources.get(where(one.labels))
            if source is not None and (kept := fresh(one, grid, stamps.get(source, grid))).times.size:
                yield kept


def _coarse(step: float, interval: float | None) -> tuple[Message, ...]:
    return (Message("history.coarse", {"step": step, "interval": interval}),) if interval is not None and step > 1.5 * interval else ()


def _timeline(engine: str, series: tuple[Series, ...], grid: Array, every: float, notes: tuple[Message, ...]) -> Timeline:
    """The timeline, and what is missing in it: a time without any reading is one that was missed."""
    times = np.unique(np.concatenate([one.times for one in series]))
    apart = np.diff(times)
    wide = apart[apart > GAP * every]
    if wide.size:
        notes = (*notes, Message("history.gaps", {"count": wide.size, "longest": float(wide.max()), "total": float(wide.sum())}))
    return Timeline(
        engine=engine,
        series=series,
        start_s=float(times[0]),
        end_s=float(times[-1]),
        readings=len(np.unique(np.round(times / every))),
        every_s=every,
        missed=int(np.round(np.maximum(apart / every - 1.0, 0.0)[apart > 1.5 * every].sum())),
        notes=notes,
    )
