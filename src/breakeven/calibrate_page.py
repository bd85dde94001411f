"""A calibration for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, expm1
from pathlib import PurePath

from rich.console import RenderableType
from rich.text import Text

from breakeven import calibrate_load_page
from breakeven.calibrate_document import CalibrateDocument, CalibrateParameter
from breakeven.canvas import DIM, Command, glued, grid, indented, rule
from breakeven.messages import say
from breakeven.units import significant, time_text

NUMBERS = (34, 9, 20, 9, 6, None)
ROWS = (None, 8, 11, 11, 9)
GROUPS = (None, 6, 6, 8, 8, 8)
TIMES, FACTORS = "_s", "scale."
REASONS = 12
GROUPS_SHOWN = 12
WIDTH = 84
IN_TIMES = 10.0
"""From this ratio on an error is told as times: per cent of four figures are read by nobody."""


def blocks(document: CalibrateDocument, verbose: bool) -> Iterator[RenderableType]:
    """What there is to show, in its order."""
    language = document.language
    yield glued(say("calibrate.headline", language, rows=document.rows, groups=document.groups, left_out=_left_out(document)))
    if document.pairs:
        yield glued(say("calibrate.pairs", language, pairs=document.pairs))
    yield rule()
    yield from calibrate_load_page.blocks(document)
    yield from _parameters(document)
    yield from _residuals(document, verbose)
    yield from _curves(document)
    yield from _open(document, verbose)
    yield from _noted(document, verbose)
    yield from _left(document, verbose)
    if document.written is not None:
        yield glued(say("calibrate.written", language, path=document.written))


def _left_out(document: CalibrateDocument) -> int:
    return sum(reason.rows for reason in document.left_out)


def _title(key: str, language: str, **values: object) -> Text:
    return glued(say(f"calibrate.{key}", language, **values), style="bold")


def _line(cells: Sequence[str], widths: Sequence[int | None], style: str = "") -> RenderableType:
    table = grid(*widths)
    table.add_row(*(glued(cell, style=style) for cell in cells))
    return table


def number_text(name: str, value: float) -> str:
    """A parameter as it is read: a time where it is one, and no factor on one."""
    timed = not name.startswith(FACTORS) and any(part.endswith(TIMES) for part in name.split("."))
    return time_text(value) if timed else significant(value, 3)


def _parameters(document: CalibrateDocument) -> Iterator[RenderableType]:
    language = document.language
    heads = [say(f"calibrate.head_{name}", language) for name in ("parameter", "value", "interval", "before", "rows", "known")]
    yield _line(heads, NUMBERS, DIM)
    for one in document.parameters:
        yield _line(_cells(one, language), NUMBERS)
    yield glued("")


def _cells(one: CalibrateParameter, language: str) -> list[str]:
    low, high = number_text(one.name, one.low), number_text(one.name, one.high)
    known = say("calibrate.determined" if one.determined else "calibrate.not_determined", language)
    return [one.name, number_text(one.name, one.value), f"{low} – {high}", number_text(one.name, one.prior), f"{one.rows}", known]


def _residuals(document: CalibrateDocument, verbose: bool) -> Iterator[RenderableType]:
    language = document.language
    yield _title("residuals", language)
    yield _line([say(f"calibrate.head_{name}", language) for name in ("group", "of", "rows", "median", "bias", "worst")], GROUPS, DIM)
    shown = document.residuals if verbose else document.residuals[:GROUPS_SHOWN]
    for one in shown:
        errors = (error_text(error, language) for error in (one.bias, one.worst))
        middle = error_text(one.median_absolute, language, "absolute")
        yield _line([one.group, _named(one.quantity, language), f"{one.rows}", middle, *errors], GROUPS)
    if len(document.residuals) > len(shown):
        yield indented(glued(say("calibrate.more_groups", language, count=len(document.residuals) - len(shown)), style=DIM))
    yield glued("")
    yield _title("worst_rows", language)
    for row in document.worst:
        error = error_text(row.log_error, language)
        times = (_quantity_text(row.quantity, row.measured), _quantity_text(row.quantity, row.predicted))
        place = PurePath(row.where).name
        name = place if row.id in (row.where, place) else f"{row.id} ({place})"
        yield _line([name, _named(row.quantity, language), *times, error], ROWS)
    yield glued("")


def error_text(log_error: float, language: str, key: str = "error") -> str:
    """ln(measured/predicted) as it is read: measured over predicted, less 1; where that is many times, the ratio.

    >>> error_text(-1.591, "en"), error_text(0.0953, "en"), error_text(0.0953, "en", "absolute"), error_text(3.0, "en")
    ('-79.6%', '+10.0%', '10.0%', '×20.1')
    """
    ratio = exp(min(log_error, 700.0))
    return f"×{significant(ratio, 3)}" if ratio >= IN_TIMES else say(f"calibrate.{key}", language, error=expm1(log_error))


def _quantity_text(quantity: str, value: float) -> str:
    return f"×{significant(value, 3)}" if quantity == "gain" else time_text(value)


def _named(quantity: str, language: str) -> str:
    return say(f"calibrate.quantity_{quantity}", language)


def _curves(document: CalibrateDocument) -> Iterator[RenderableType]:
    language = document.language
    for curve in document.curves:
        points = ", ".join(f"{width:g}: {time_text(second)}" for width, second in zip(curve.rows, curve.step_s, strict=True))
        where = {"model": curve.model, "device": curve.device, "engine": curve.engine, "context": curve.context_tokens}
        yield glued(say("calibrate.curve", language, points=points, **where))
        if curve.levelled:
            widths = ", ".join(f"{width:g}" for width in curve.levelled)
            yield indented(glued(say("calibrate.levelled", language, widths=widths), style=DIM))
    if document.curves:
        yield glued("")


def _open(document: CalibrateDocument, verbose: bool) -> Iterator[RenderableType]:
    language = document.language
    if document.undetermined:
        yield _title("undetermined", language)
        yield indented(glued(", ".join(document.undetermined)))
    if document.tied:
        yield _title("tied", language)
        yield from (indented(glued(pair.sentence)) for pair in document.tied)
    if document.measure_next:
        yield glued("")
        yield _title("to_measure", language)
    for one in document.measure_next:
        yield indented(glued(say("calibrate.run", language, sentence=one.sentence, parameters=", ".join(one.parameters))))
        shown = one.commands if verbose else one.commands[:1]
        yield from (indented(Command(command, DIM, WIDTH), 2) for command in shown)
        if len(one.commands) > len(shown):
            yield indented(glued(say("calibrate.more_commands", language, count=len(one.commands) - len(shown)), style=DIM), 2)
    yield glued("")


def _noted(document: CalibrateDocument, verbose: bool) -> Iterator[RenderableType]:
    language = document.language
    if not document.notes:
        return
    yield _title("noted", language)
    shown = document.notes if verbose else document.notes[:REASONS]
    for note in shown:
        places = ", ".join(PurePath(place).name for place in note.places[:3]) + (", …" if note.rows > 3 else "")
        yield indented(glued(say("calibrate.reason", language, rows=note.rows, sentence=note.sentence, places=places)))
    if len(document.notes) > len(shown):
        yield indented(glued(say("calibrate.more_notes", language, count=len(document.notes) - len(shown)), style=DIM))
    yield glued("")


def _left(document: CalibrateDocument, verbose: bool) -> Iterator[RenderableType]:
    language = document.language
    if not document.left_out:
        return
    yield _title("left_out", language, rows=_left_out(document))
    shown = document.left_out if verbose else document.left_out[:REASONS]
    for reason in shown:
        places = ", ".join(PurePath(place).name for place in reason.places[:3]) + (", …" if reason.rows > 3 else "")
        yield indented(glued(say("calibrate.reason", language, rows=reason.rows, sentence=reason.sentence, places=places)))
    if len(document.left_out) > len(shown):
        yield indented(glued(say("calibrate.more_reasons", language, count=len(document.left_out) - len(shown)), style=DIM))
    yield glued("")
