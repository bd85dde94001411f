"""The catalogue for a terminal: lists, one entry, two side by side, files checked."""

from __future__ import annotations

from typing import get_args

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from breakeven import catalog_words
from breakeven.canvas import DIM, glued, grid, indented, labels, rule
from breakeven.catalog_document import CatalogComparison, CatalogDocument, CatalogEntry, CheckedFile, Finding, Kind
from breakeven.messages import say


def blocks(document: CatalogDocument, verbose: bool) -> list[RenderableType]:
    """What there is to show, in its order."""
    language = document.language
    found: list[RenderableType] = [glued(say("report.catalog_warning", language, warning=warning)) for warning in document.warnings]
    if document.comparison is not None:
        return [*found, *_comparison(document.comparison, language)]
    if document.checked:
        return [*found, *(block for file in document.checked for block in _checked(file, language))]
    if verbose:
        return [*found, *(block for entry in document.entries for block in _entry(entry, language))]
    return [*found, *_lists(document)]


def _lists(document: CatalogDocument) -> list[RenderableType]:
    language = document.language
    found: list[RenderableType] = []
    for kind in get_args(Kind):
        entries = [entry for entry in document.entries if entry.kind == kind]
        if entries:
            title = glued(say(f"report.catalog_{kind}", language, count=len(entries)), style="bold")
            found += [title, _listing(entries, language), glued("")]
    return found or [glued(say("report.catalog_nothing", language))]


def _entry(entry: CatalogEntry, language: str) -> list[RenderableType]:
    origin = [glued(entry.origin, style=DIM)] if entry.origin is not None else []
    title = Text.assemble(glued(entry.name, style="bold"), "  ", glued(entry.title))
    return [title, *origin, rule(), _figures(entry, language), *_sources(entry, language)]


def _listing(entries: list[CatalogEntry], language: str) -> Table:
    table = grid(30, 24, None)
    for entry in entries:
        table.add_row(glued(entry.name), glued(entry.title), glued(catalog_words.summary_words(entry, language)))
    return table


def _figures(entry: CatalogEntry, language: str) -> Table:
    known = {name: value for name, value in entry.values.items() if value not in (None, "", [], {}, entry.name)}
    rows = [(name, catalog_words.figure_words(value, entry.units.get(name, ""), language)) for name, value in known.items()]
    return labels([*rows], 26)


def _sources(entry: CatalogEntry, language: str) -> list[RenderableType]:
    rows = [(name, source.replace(" | ", "\n")) for name, source in entry.sources.items()]
    return [glued(""), glued(say("report.sources", language), style="bold"), labels([*rows], 26)] if rows else []


def _comparison(compared: CatalogComparison, language: str) -> list[RenderableType]:
    table = grid(28, 26, 26, None)
    table.add_row("", *(glued(name, style="bold") for name in compared.names), "")
    for row in compared.rows:
        title, first, second, ratio = catalog_words.compared_words(row, language)
        table.add_row(glued(title, style=DIM), glued(first), glued(second), glued(ratio))
    return [table, glued(""), glued(say("report.compare_ratio", language, first=compared.names[0], second=compared.names[1]), style=DIM)]


def _checked(file: CheckedFile, language: str) -> list[RenderableType]:
    state = say("report.check_ok" if file.ok else "report.check_faulty", language, count=len(file.faults))
    lines: list[RenderableType] = [Text.assemble(glued(file.path, style="bold"), "  ", glued(state))]
    return [
        *lines,
        *(_finding("fault", fault, language) for fault in file.faults),
        *(_finding("hint", hint, language) for hint in file.hints),
    ]


def _finding(kind: str, finding: Finding, language: str) -> RenderableType:
    return indented(glued(say(f"report.check_{kind}", language, says=finding.says)))
