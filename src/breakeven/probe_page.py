"""A probe for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from rich.console import RenderableType

from breakeven.canvas import DIM, Command, glued, grid, indented, rule
from breakeven.messages import say
from breakeven.probe_document import ProbeDocument, ProbeFigure, counting
from breakeven.units import bytes_text, flop_text, percent_text, significant

COLUMNS = (28, 14, 14, 14, 8, None)
WIDTH = 84
MHZ = 1e6


def blocks(document: ProbeDocument, verbose: bool) -> Iterator[RenderableType]:
    """What there is to show, in its order."""
    language, machine = document.language, document.machine
    libraries = ", ".join(f"{name} {version}" for name, version in machine.libraries.items())
    yield glued(say("probe.headline", language, device=machine.device, libraries=libraries, seconds=document.seconds))
    yield glued(_machine(document), style=DIM)
    yield rule()
    yield _line([say(f"probe.head_{name}", language) for name in ("rate", "size", "best", "median", "spread", "share")], DIM)
    for one in document.figures if verbose else counting(document.figures):
        yield _line(_cells(one, document), "")
    yield glued("")
    yield from (glued(warning) for warning in document.warnings)
    yield from _entry(document, verbose)


def _machine(document: ProbeDocument) -> str:
    language, machine = document.language, document.machine
    clock = "" if machine.clock_hz is None else say("probe.clock", language, mhz=machine.clock_hz / MHZ)
    load = say("probe.no_load", language) if machine.load is None else say("probe.load", language, load=machine.load[0])
    said = say("probe.machine", language, processor=machine.processor, cores=machine.cores, memory=machine.memory_bytes)
    return said + clock + load


def _line(cells: Sequence[str], style: str) -> RenderableType:
    table = grid(*COLUMNS)
    table.add_row(*(glued(cell, style=style) for cell in cells))
    return table


def _cells(one: ProbeFigure, document: ProbeDocument) -> list[str]:
    language = document.language
    counts = one.quantity == "product"
    name = say("probe.product", language, form=one.format) if counts else say(f"probe.{one.quantity}", language)
    size = f"{significant(one.size, 4)}²" if counts else bytes_text(one.size)
    best, median = (f"{flop_text(rate) if counts else bytes_text(rate)}/s" for rate in (one.best, one.median))
    share = "" if one.share is None else say("probe.share", language, share=one.share, device=document.compared_with)
    return [name, size, best, median, percent_text(one.spread), share]


def _entry(document: ProbeDocument, verbose: bool) -> Iterator[RenderableType]:
    language = document.language
    if document.written is not None:
        command = f"breakeven advise --model … --catalog {quote(document.folder or '.')} --hardware {quote(document.name or '')}"
        yield glued(say("probe.written", language, path=document.written))
        yield indented(Command(command, DIM, WIDTH))
    elif document.compared_with is None:
        yield glued(say("probe.to_write", language))
    if verbose:
        yield glued("")
        yield glued(document.entry)
