"""A simulation for a terminal: the sentence, percentiles, what was served, the batch and cache over time, the device's time, levers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from breakeven import simulate_words as words
from breakeven.canvas import DIM, glued, grid, indented, labels, rule
from breakeven.messages import printable, say
from breakeven.simulate_document import SimulationDocument

LABELS = ("served", "goodput", "promises", "batch", "over_time", "device_time", "prefix", "preemptions", "energy", "note")
PERCENTILES = (14, 11, 11, 11, 11, 11, None)
GROUPS = (24, 14, 11, 11, 11, None)
SPARK = 48
SERIES = (11, SPARK, None)
LEVER = 26


def blocks(document: SimulationDocument, verbose: bool) -> Iterator[RenderableType]:
    """What there is to show, in its order."""
    language = document.language
    yield glued(document.title.deployment, style="bold")
    yield glued(document.title.workload)
    yield rule()
    yield glued(document.headline, style="bold")
    yield glued("")
    yield _rows(words.percentile_heads(language), words.percentile_rows(document.figures, language), PERCENTILES)
    groups = words.group_rows(document)
    if groups:
        yield rule()
        yield _rows(words.group_heads(language), groups, GROUPS)
    yield rule()
    yield from _figures(document)
    if document.lattice is not None:
        yield rule()
        yield from _levers(document, verbose)
    if document.notes:
        yield rule()
        yield labels([(_label("note", language), note) for note in document.notes], _width(language))


def _label(name: str, language: str) -> str:
    return say("report.warning" if name == "note" else f"simulate.label_{name}", language)


def _width(language: str) -> int:
    return max(cell_len(_label(name, language)) for name in LABELS)


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int | None]) -> Table:
    table = grid(*widths)
    table.add_row(*(glued(head, style=DIM) for head in heads))
    for row in rows:
        table.add_row(glued(row[0], style="bold"), *(glued(cell) for cell in row[1:]))
    return table


def _figures(document: SimulationDocument) -> Iterator[RenderableType]:
    figures, language = document.figures, document.language
    promises = "\n".join(words.promise_words(one, language) for one in figures.promises)
    told = (
        ("served", words.served_words(document)),
        ("goodput", words.goodput_words(document)),
        ("promises", promises),
        ("batch", words.batch_words(document)),
    )
    yield _labelled(told, language)
    yield _over_time(document)
    bar = f"{words.device_bar(figures, SPARK)}\n{words.device_words(figures, language)}"
    rest = (
        ("device_time", bar),
        ("prefix", words.prefix_words(figures, language)),
        ("preemptions", words.preemption_words(figures, language)),
        ("energy", words.energy_words(figures, language)),
    )
    yield _labelled(rest, language)


def _labelled(told: Sequence[tuple[str, str]], language: str) -> Table:
    rows: list[tuple[str, str | Text]] = [(_label(name, language), said) for name, said in told if said]
    return labels(rows, _width(language))


def _over_time(document: SimulationDocument) -> Table:
    """Lines over the run, each scaled to its own largest value, which stands beside it."""
    language = document.language
    table = grid(_width(language), *SERIES)
    for place, (title, line, top) in enumerate(words.series_rows(document, SPARK)):
        label = _label("over_time", language) if place == 0 else ""
        most = words.most_words(document, top)
        table.add_row(Text(label, style="bold"), glued(title), glued(line, style="cyan"), glued(most, style=DIM))
    return table


def _levers(document: SimulationDocument, verbose: bool) -> Iterator[RenderableType]:
    lattice, language = document.lattice, document.language
    if lattice is None:
        return
    names = words.gain_names(document)
    widths = (LEVER, 6, *(13 for _ in names[1:]), None)
    table = grid(*widths)
    table.add_row(*(glued(head, style=DIM) for head in words.lever_heads(names, language)))
    yield table
    for one in lattice.levers:
        row = grid(*widths)
        cells = words.lever_cells(one, names, language)
        row.add_row(glued(cells[0], style="bold"), *(glued(cell) for cell in cells[1:]))
        yield row
        yield indented(glued(words.sigma_words(one, language), style=DIM))
    for left in lattice.left_out:
        yield _left_out(left.title, left.reason)
    yield glued(printable(lattice.interval), style=DIM)
    if words.without_interval(document):
        yield glued(say("simulate.longer_trace", language), style=DIM)
    yield glued("")
    rows = [words.combination_cells(one, language) for one in words.shown_combinations(document, all_of_them=verbose)]
    yield _rows(words.combination_heads(language), rows, (None, 10, 10, 10, 14))


def _left_out(title: str, reason: str) -> Table:
    table = grid(LEVER, None)
    table.add_row(glued(title, style="bold"), glued(reason, style=DIM))
    return table
