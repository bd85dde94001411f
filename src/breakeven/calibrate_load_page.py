"""The part of a calibration's page that is about a load: what was sent, the steps it told, and what verifying drafts costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UnsetType
from rich.console import RenderableType
from rich.text import Text

from breakeven.calibrate_document import CalibrateDocument, CalibrateLoad, CalibratePoint
from breakeven.canvas import DIM, glued, grid, indented
from breakeven.messages import say
from breakeven.spec.calibration_file import UNSTEADY
from breakeven.units import significant, time_text

POINTS = (9, 9, 11, 22, 8, None)


def blocks(document: CalibrateDocument) -> Iterator[RenderableType]:
    """What there is to show, in its order; nothing where no engine was driven."""
    load, language = document.load, document.language
    if isinstance(load, UnsetType):
        return
    yield glued(
        say(
            "driving.load",
            language,
            server=load.server,
            points=load.points_sent,
            requests=load.requests,
            input=load.input_tokens,
            output=load.output_tokens,
            seconds=load.seconds,
        )
    )
    if load.machine_load_before is not None and load.machine_load_after is not None:
        said = say("driving.machine", language, before=load.machine_load_before, after=load.machine_load_after)
        yield indented(glued(said, style=DIM))
    yield from (indented(glued(note)) for note in _notes(load, language))
    yield glued("")
    yield from _points(load, language)
    yield from _verification(load, language)


def _notes(load: CalibrateLoad, language: str) -> Iterator[str]:
    yield from load.notes
    worst = max((point.spread for point in load.points), default=1.0)
    if worst > UNSTEADY:
        yield say("driving.unsteady", language, spread=worst - 1.0)


def _points(load: CalibrateLoad, language: str) -> Iterator[RenderableType]:
    yield Text(say("driving.points", language), style="bold")
    names = ("streams", "context", "step", "steps", "rounds", "spread")
    yield _line([say(f"driving.head_{name}", language) for name in names], POINTS, DIM)
    for point in load.points:
        yield _line(_cells(point, language), POINTS)
    yield glued("")


def _cells(point: CalibratePoint, language: str) -> list[str]:
    several = point.rounds > 1
    apart = say("calibrate.absolute", language, error=point.spread - 1.0) if several else say("driving.unmeasured", language)
    gaps = f"{time_text(point.low_s)} – {time_text(point.high_s)}"
    return [f"{point.concurrency}", significant(point.context_tokens, 3), time_text(point.step_s), gaps, f"{point.rounds}", apart]


def _verification(load: CalibrateLoad, language: str) -> Iterator[RenderableType]:
    if not load.verification:
        return
    drafted = list(load.verification[0].ratios)
    widths = (14, *(8 for _ in drafted))
    yield Text(say("driving.verification", language), style="bold")
    yield _line([say("driving.head_batch", language), *(say("driving.head_k", language, k=k) for k in drafted)], widths, DIM)
    for one in load.verification:
        cells = [_ratio(one.ratios[k], language) for k in drafted]
        yield _line([say("driving.at", language, batch=one.batch, context=one.context_tokens), *cells], widths)
    yield glued("")


def _ratio(ratio: float | None, language: str) -> str:
    return say("driving.unmeasured", language) if ratio is None else f"×{significant(ratio, 3)}"


def _line(cells: Sequence[str], widths: Sequence[int | None], style: str = "") -> RenderableType:
    table = grid(*widths)
    table.add_row(*(glued(cell, style=style) for cell in cells))
    return table
