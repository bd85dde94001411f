"""A metrics history on a Prometheus server: what it kept of running engines, as a timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven.errors import InputError
from breakeven.exposition.whose import chosen, on_page
from breakeven.messages import Message
from breakeven.observation import matrix, page, prometheus
from breakeven.observation.opened import GAP
from breakeven.observation.prometheus import Server
from breakeven.observation.stored import Stored, fresh, own, places_of, replicas, series_of, spots_of, told_by, twins, where
from breakeven.observation.timeline import Series, Timeline
from breakeven.stats import Array

MOST_SERIES = 20_000
MATCHER = r"""[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)"""
SELECTOR = re.compile(rf"\{{\s*((?:{MATCHER})(?:\s*,\s*(?:{MATCHER}))*)?\s*,?\s*\}}")
FARTHEST_S = 86_400.0
"""How old a value may be that a server repeats, whatever its lookback is: beyond it no time of a scrape was told."""
MOMENTS = (1.0, 0.5, 0.25, 0.75, 0.1)
"""Where in a range it is looked how often an engine was scraped: it need not have run all the time."""


@dataclass(frozen=True, kw_only=True)
class HistoryQuery:
    """Which part of a history."""

    match: str
    """Matchers of labels, in braces."""
    start_s: float
    end_s: float
    step_s: float | None = None
    """None: from the range, and not finer than the engine was scraped."""
    engine: str = ""
    model: str = ""
    """Which of several, where the matchers leave several."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the store has under the matchers."""

    engine: str
    adapters: tuple[str, ...]
    inner: str
    labels: Sequence[Mapping[str, str]]
    sources: Mapping[tuple[str, ...], str]
    notes: tuple[Message, ...]


def read(server: Server, asked: HistoryQuery) -> Timeline:
    """What a server kept of the engines of one model, over a range: refused where it is of several, or of none that is known."""
    found = _look(server, asked)
    clock = _clock_names(found)
    moments = (asked.start_s + part * (asked.end_s - asked.start_s) for part in MOMENTS)
    interval = matrix.interval_of(server, matrix.selector(clock[:1], found.inner), moments)
    step = matrix.step_of(asked.end_s - asked.start_s, len(found.labels), interval, asked.step_s)
    grid = matrix.grid_of(asked.start_s, asked.end_s, step)
    stamps, notes = _stamps(server, found, grid, clock)
    wrong: list[tuple[str, Stored]] = []
    series = series_of(_stored(server, found, grid, stamps, wrong), found.adapters, found.sources)
    if not series:
        raise InputError("history_empty", server=server.name, match=asked.match)
    unsure = frozenset((source, key) for source, one in wrong for key in told_by(one.labels, found.adapters))
    left_out = page.not_numbers(sum(one.not_numbers for _, one in wrong), (key for _, key in unsure))
    said = (*found.notes, *notes, *left_out, *_coarse(step, interval), *prometheus.warned(server))
    return replace(_timeline(found.engine, series, grid, max(step, interval or 0.0), said), unsure=unsure)


def matchers(match: str) -> str:
    """The matchers within the braces, to stand beside ours.

    >>> matchers('{job="vllm", pod=~"a.*",}')
    'job="vllm", pod=~"a.*"'
    """
    form = SELECTOR.fullmatch(match.strip())
    if form is None:
        raise InputError("history_match", value=match[:80])
    return form[1] or ""


def _look(server: Server, asked: HistoryQuery) -> _Found:
    inner = matchers(asked.match)
    span = {"start": f"{asked.start_s:.3f}", "end": f"{asked.end_s:.3f}"}
    names = prometheus.label_values(server, "__name__", match=f"{{{inner}}}" if inner else '{__name__!=""}', **span)
    if not names:
        raise InputError("history_empty", server=server.name, match=asked.match)
    telling = set(page.families())
    wanted = sorted(name for name in names if name in telling or places_of(name))
    labels: list[Mapping[str, str]] = []
    for some in matrix.groups(wanted):
        labels += prometheus.series(server, match=matrix.selector(some, inner), limit=MOST_SERIES + 1, **span)
        if len(labels) > MOST_SERIES:
            raise InputError("history_series", server=server.name, most=MOST_SERIES)
    copies = twins(labels)
    if copies is None:
        return _of_one_model(server, asked, names, inner, labels)
    name, kept = copies
    inner = _also(inner, name, kept)
    note = Message("history.twins", {"label": name, "kept": kept})
    return _of_one_model(server, asked, names, inner, [one for one in labels if one.get(name, kept) == kept], note)


def _also(inner: str, label: str, value: str) -> str:
    """Matchers with one more: of series that have the value, or have not the label at all."""
    pattern = f"{re.escape(value)}|".replace("\\", "\\\\").replace('"', '\\"')
    return ", ".join(part for part in (inner, f'{label}=~"{pattern}"') if part)


def _of_one_model(
    server: Server, asked: HistoryQuery, names: Sequence[str], inner: str, labels: Sequence[Mapping[str, str]], *notes: Message
) -> _Found:
    """What is of one engine and one model, and of devices; other servers' metrics are left out, and that is said."""
    whose = _whose(labels)
    engine = _engine(asked, names, set(whose.values()))
    label = page.adapter(engine).model_label
    if asked.model:
        inner = _also(inner, label, asked.model)
        labels = [one for one in labels if own(one).get(label, asked.model) == asked.model]
    kept = {key for key, name in whose.items() if name == engine or page.adapter(name).role == "device"}
    others = sorted({name for key, name in whose.items() if key not in kept})
    labels = [one for one in labels if where(one) in kept]
    engines = [one for one in labels if whose[where(one)] == engine]
    models = sorted({name for one in engines if (name := own(one).get(label, ""))})
    if len(models) > 1:
        models = _alive(server, asked, matrix.selector(_most_common(engines), inner), label) or models
        labels = [one for one in labels if own(one).get(label, models[0]) in models]
    if len(models) > 1:
        raise InputError("history_models", count=len(models), names=", ".join(models[:8]), label=label, match=asked.match)
    sources = replicas(labels)
    said = [*notes]
    if others:
        said.append(Message("history.others", {"names": ", ".join(others), "count": len(whose) - len(kept)}))
    if page.adapter(engine).role == "router":
        said.append(Message("history.router", {"name": engine}))
    if any(not any(key) for key in sources):
        said.append(Message("history.no_instance"))
    adapters = (engine, *sorted({whose[key] for key in kept} - {engine}))
    return _Found(engine=page.adapter(engine).engine, adapters=adapters, inner=inner, labels=labels, sources=sources, notes=tuple(said))


def _most_common(labels: Sequence[Mapping[str, str]]) -> list[str]:
    """The one name that most places have."""
    names = [one["__name__"] for one in labels]
    return [max(sorted(set(names)), key=lambda name: len({where(one) for one in labels if one["__name__"] == name}))]


def _alive(server: Server, asked: HistoryQuery, chosen_series: str, label: str) -> list[str]:
    """The models with samples in the range: a server lists those too that ended hours before it, in the same block of its store."""
    step = matrix.LOOKBACK_S
    start = max(asked.start_s, asked.end_s - step * (matrix.MOST_POINTS_A_SERIES - 1))
    begin = asked.end_s - step * int((asked.end_s - start) / step)
    query = f"count by ({label}, exported_{label}) ({chosen_series})"
    try:
        found = prometheus.query_range(server, query=query, start=f"{begin:.3f}", end=f"{asked.end_s:.3f}", step=f"{step:.3f}")
    except InputError:
        return []
    return sorted({name for one in found if (name := own(one.metric).get(label, ""))})


def _whose(labels: Sequence[Mapping[str, str]]) -> dict[tuple[str, ...], str]:
    """The adapter of each place that series are from, by the names that it has; those whose names tell nothing are left out."""
    names: dict[tuple[str, ...], set[str]] = {}
    for one in labels:
        names.setdefault(where(one), set()).update((one["__name__"], f"{one['__name__']}_count"))
    found = {key: on_page(some) for key, some in names.items()}
    return {key: chosen(some, None, "") for key, some in found.items() if some}


def _engine(asked: HistoryQuery, names: Sequence[str], there: set[str]) -> str:
    """The adapter to read with: of an engine, else of a router."""
    for role in ("engine", "router"):
        mine = sorted(name for name in there if page.adapter(name).role == role and asked.engine in ("", page.adapter(name).engine))
        if len(mine) > 1:
            raise InputError("history_engines", names=", ".join(mine), match=asked.match)
        if mine:
            return mine[0]
    raise InputError("history_unknown", match=asked.match, names=", ".join(sorted(names)[:5]), count=len(names))


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
                places = spots_of(grid, one.times)
                row[places] = np.where(np.abs(one.times - one.values) <= FARTHEST_S, one.values, one.times)
    except InputError:
        return {}, (Message("history.no_stamps", {"lookback": matrix.LOOKBACK_S}),)
    return rows, ()


def _stored(server: Server, found: _Found, grid: Array, stamps: Mapping[str, Array], wrong: list[tuple[str, Stored]]) -> Iterator[Stored]:
    """Readings as they are kept; series with samples that were no numbers are added to ``wrong``, with their sources."""
    names = sorted({one["__name__"] for one in found.labels})
    for some in matrix.groups(names):
        count = sum(one["__name__"] in some for one in found.labels)
        for one in matrix.gathered(server, matrix.selector(some, found.inner), grid, count):
            source = found.sources.get(where(one.labels))
            if source is not None and one.not_numbers:
                wrong.append((source, one))
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
