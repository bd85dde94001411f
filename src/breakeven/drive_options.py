"""The options of a load on a running engine: where it goes, that it is wanted, over which grid, and where it ends."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from breakeven import streams
from breakeven.errors import InputError
from breakeven.messages import say
from breakeven.verb import option

if TYPE_CHECKING:
    from breakeven.driving.grid import Bounds
    from breakeven.driving.running_engine import StatedEngine
    from breakeven.driving.tour import Progress

Url = Annotated[str | None, option("--url", metavar="URL")]
AllowLoad = Annotated[bool, option("--allow-load")]
Widths = Annotated[str | None, option("--concurrency-grid", metavar="N,N,…")]
Contexts = Annotated[str | None, option("--context-grid", metavar="N,N,…")]
Requests = Annotated[str | None, option("--requests", metavar="NUMBER")]
Seconds = Annotated[str | None, option("--seconds", metavar="SECONDS")]
TotalSeconds = Annotated[str | None, option("--total-seconds", metavar="SECONDS")]
Tokens = Annotated[str | None, option("--tokens", metavar="NUMBER")]
OPTIONS: Mapping[str, str] = {
    "widths": "--concurrency-grid",
    "contexts": "--context-grid",
    "requests": "--requests",
    "seconds": "--seconds",
    "total_seconds": "--total-seconds",
    "tokens": "--tokens",
}
MOST = 1024
"""Streams of one point, whatever is asked for."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """Where a load goes, and whether it is wanted."""

    url: str = field(repr=False)
    allow_load: bool
    headers: Mapping[str, str] = field(repr=False)
    stated: "StatedEngine"
    catalog_dirs: Sequence[str]


def numbers(given: str | None, name: str) -> tuple[int, ...]:
    """A list of counts as it was typed."""
    from breakeven.origin import values

    return () if given is None else tuple(sorted({values.count(each.strip(), name) for each in given.split(",")}))


def grid_of(given: Mapping[str, str | None]) -> dict[str, Any]:
    """Streams, contexts and bounds of a load, as :func:`breakeven.api.calibrate_engine` takes them."""
    widths = numbers(given["widths"], "--concurrency-grid")
    if widths and max(widths) > MOST:
        raise InputError("drive_width", value=max(widths), most=MOST)
    return {"widths": widths, "contexts": numbers(given["contexts"], "--context-grid"), "bounds": _bounds(given)}


def _bounds(given: Mapping[str, str | None]) -> "Bounds":
    from breakeven.driving.grid import Bounds
    from breakeven.origin import values

    found: dict[str, Any] = {}
    for name, read in (
        ("requests", values.count),
        ("seconds", values.positive),
        ("total_seconds", values.positive),
        ("tokens", values.count),
    ):
        if (typed := given[name]) is not None:
            found[name] = read(typed, f"--{name.replace('_', '-')}")
    return Bounds(**found)


@contextmanager
def told(language: str) -> "Iterator[Progress | None]":
    """A bar over the rounds on a terminal, and nothing elsewhere."""
    if not streams.talks_to_a_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True, force_terminal=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)

        def moved(place: int, whole: int, visit: Any) -> None:
            said = say("driving.progress", language, place=place + 1, whole=whole, width=visit.concurrency, context=visit.context)
            bar.update(task, description=said, completed=place, total=whole)

        yield moved
