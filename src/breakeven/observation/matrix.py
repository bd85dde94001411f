"""Ranges of a metrics store, asked for in parts that a server answers and that are small to hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from breakeven.errors import BreakevenError, InputError
from breakeven.exposition.samples import LARGEST
from breakeven.observation import native, prometheus
from breakeven.observation.prometheus import Server, Stream
from breakeven.observation.stored import Stored
from breakeven.stats import Array

MOST_POINTS_A_SERIES = 11_000
"""What a server answers at most for one series in one query (Prometheus, web/api/v1/api.go)."""
MOST_POINTS_A_QUERY = 400_000
"""About 12 MB of JSON, and 60 MB while it is decoded."""
MOST_POINTS = 8_000_000
"""128 MB."""
NAMES_A_QUERY = 40
"""An address of about 2,000 characters: proxies take no more than 8,000."""
STEPS_S = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0)
"""Steps that are taken: the longest is how long a server repeats a value, so that no scraped target is overlooked."""
JITTER = 0.01
"""Share by which the middle of the times between scrapes may miss the interval that the server was set to."""
UNTOLD_STEP_S = 15.0
"""The shortest where it is not known how often the engine was scraped."""
READINGS = 6000
"""A day at 15 s, and an hour more: a longer history is read in longer steps."""
LOOKBACK_S = 300.0
"""How long Prometheus repeats a series' last value (its default)."""


@dataclass(kw_only=True)
class _Gathered:
    times: list[Array] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    native: list[tuple[float, prometheus.Native]] = field(default_factory=list)


def selector(names: Sequence[str], inner: str) -> str:
    """Series of some names under the user's matchers."""
    name = f'__name__="{names[0]}"' if len(names) == 1 else f'__name__=~"{"|".join(names)}"'
    return f"{{{', '.join(part for part in (name, inner) if part)}}}"


def groups(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names, as many at a time as an address takes."""
    return (names[at : at + NAMES_A_QUERY] for at in range(0, len(names), NAMES_A_QUERY))


def step_of(span_s: float, series: int, interval_s: float | None, given_s: float | None) -> float:
    """Seconds between the readings that are asked for: those given, else by the range, and not finer than the engine was scraped.

    >>> step_of(86_400.0, 20, 15.0, None), step_of(3600.0, 20, 5.0, None), step_of(7 * 86_400.0, 300, 15.0, None)
    (15.0, 5.0, 120.0)
    """
    if given_s is None:
        floor = max(span_s / READINGS, span_s * series / MOST_POINTS, UNTOLD_STEP_S if interval_s is None else 0.0)
        nice = next((step for step in STEPS_S if step >= floor * (1 - 1e-9)), STEPS_S[-1])
        given_s = max(nice, interval_s or 0.0)
    if series * span_s / given_s > MOST_POINTS:
        raise InputError("history_points", points=series * span_s / given_s, most=MOST_POINTS, series=series)
    return given_s


def grid_of(start_s: float, end_s: float, step_s: float) -> Array:
    """Multiples of the step within the range: the same whenever they are asked for, so that answers agree and can be kept."""
    grid = np.arange(np.ceil(start_s / step_s), np.floor(end_s / step_s) + 0.5) * step_s
    if grid.size < 2:
        raise InputError("history_short", seconds=end_s - start_s, step=step_s)
    return grid


def parts(grid: Array, series: int) -> Iterator[Array]:
    """The grid in parts that a server answers for so many series."""
    most = max(1, min(MOST_POINTS_A_SERIES, MOST_POINTS_A_QUERY // max(series, 1)))
    return (grid[at : at + most] for at in range(0, len(grid), most))


def gathered(server: Server, query: str, grid: Array, series: int) -> Iterator[Stored]:
    """The series that a query gives over the grid, native histograms as their parts."""
    whole = _in_parts(server, query, grid, series)
    for key, one in whole.items():
        try:
            yield from _whole(dict(key), one)
        except ValueError as error:
            raise prometheus.misshapen(server, str(error)) from None


def _in_parts(server: Server, query: str, grid: Array, series: int) -> dict[tuple[tuple[str, str], ...], _Gathered]:
    found: dict[tuple[tuple[str, str], ...], _Gathered] = {}
    step = grid[1] - grid[0]
    for part in parts(grid, series):
        asked = {"start": f"{part[0]:.3f}", "end": f"{part[-1]:.3f}", "step": f"{step:.3f}"}
        streams = prometheus.query_range(server, query=query, **asked)
        try:
            for stream in streams:
                _gather(found.setdefault(tuple(sorted(stream.metric.items())), _Gathered()), stream, (part[0] - step, part[-1] + step))
        except ValueError as error:
            raise prometheus.misshapen(server, str(error)) from None
    return found


def interval_of(server: Server, query: str, moments: Iterable[float]) -> float | None:
    """Seconds between scrapes, from samples as they are stored about some moments; None where the server does not give them."""
    for moment in moments:
        try:
            streams = prometheus.query(server, query=f"{query}[{LOOKBACK_S:.0f}s]", time=f"{moment:.3f}")
        except BreakevenError:
            return None
        gaps = [np.diff([time for time, _ in (*one.values, *one.histograms)]) for one in streams]
        if gaps and (every := np.concatenate(gaps)).size:
            return _usual(float(np.round(np.median(every), 3)))
    return None


def _usual(interval_s: float) -> float:
    """The usual interval that a measured one is near: scrapes are a little late or early."""
    return next((step for step in STEPS_S if abs(interval_s / step - 1.0) <= JITTER), interval_s)


def _gather(into: _Gathered, stream: Stream, within: tuple[float, float]) -> None:
    count = len(stream.values)
    times = np.fromiter((time for time, _ in stream.values), dtype=np.float64, count=count)
    if not ((within[0] <= times) & (times <= within[1])).all() or not all(within[0] <= time <= within[1] for time, _ in stream.histograms):
        raise ValueError("samples of other times than were asked for")
    into.times.append(times)
    into.values.append(np.fromiter((float(value) for _, value in stream.values), dtype=np.float64, count=count))
    into.native.extend(stream.histograms)


def _whole(labels: Mapping[str, str], one: _Gathered) -> Iterator[Stored]:
    times, values = np.concatenate(one.times), np.concatenate(one.values)
    known = np.abs(values) <= LARGEST
    if known.size:
        wrong = int((~known).sum())
        yield Stored(labels=labels, times=times[known], values=values[known], not_numbers=wrong, began_before=not known[0])
    if one.native:
        yield from native.parts(labels, one.native)
