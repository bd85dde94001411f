"""A backtest for a terminal: scores per lever, per level of knowledge and per cell; rows; what was skipped, what is not believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from breakeven import backtest_words as words
from breakeven.backtest_document import BacktestDocument, BacktestReason, BacktestScore
from breakeven.canvas import DIM, glued, grid, indented, rule
from breakeven.messages import say

WIDE = (None, 5, 6, 7, 8, 6, 7, 5, 14)
LEAN_PLACES = (0, 1, 3, 5, 6, 7, 8)
"""Cells of a score whose label is long: without groups."""
ROW_WIDTHS = (26, 9, 17, 9, 7, None)


def blocks(document: BacktestDocument, verbose: bool) -> Iterator[RenderableType]:
    """What there is to show, in its order."""
    language = document.language
    yield glued(words.headline_words(document))
    yield rule()
    yield from _scores("backtest.by_lever", document.levers, language)
    yield from _scores("backtest.by_knowledge", document.knowledge, language)
    yield from _scores("backtest.by_cell", document.summary, language, lean=True)
    yield from _scores("backtest.apart", document.apart, language)
    if document.bad_reasons:
        yield from _scores("backtest.with_bad", document.levers_with_bad, language)
    yield from _rows(document, verbose)
    yield from _reasons("backtest.bad_rows", document.counts.bad, document.bad_reasons, language)
    yield from _reasons("backtest.skipped_rows", document.counts.skipped, document.skipped_reasons, language)
    if document.levers:
        yield glued(say("backtest.legend", language), style=DIM)


def _titled(key: str, language: str, **values: object) -> Text:
    return glued(say(key, language, **values), style="bold")


def _scores(key: str, scores: Sequence[BacktestScore], language: str, *, lean: bool = False) -> Iterator[RenderableType]:
    if not scores:
        return
    places = LEAN_PLACES if lean else tuple(range(len(WIDE)))
    yield _titled(key, language)
    table = grid(*(WIDE[place] for place in places))
    told = [words.score_cells(score, language) for score in scores]
    heads = words.heads(words.SCORE_HEADS, language)
    table.add_row(*(glued(heads[place], style=DIM) for place in places))
    for cells in told:
        table.add_row(*(glued(cells[place]) for place in places))
    yield table
    yield glued("")


def _rows(document: BacktestDocument, verbose: bool) -> Iterator[RenderableType]:
    language = document.language
    key, rows = words.shown_rows(document, all_of_them=verbose)
    if not rows:
        return
    yield _titled(key, language, rows=len(rows))
    yield _line(words.heads(words.ROW_HEADS, language), DIM)
    for row in rows:
        cells = words.row_cells(row, language)
        yield _line(cells) if cells[1] else _skipped(row.case_id, cells[-1])
        if ttft := words.ttft_cells(row, language):
            yield _line(ttft, DIM)
        if verbose and row.understood:
            yield indented(glued("; ".join(row.understood.values()), style=DIM))
    yield glued("")


def _line(cells: Sequence[str], style: str = "") -> Table:
    table = grid(*ROW_WIDTHS)
    table.add_row(*(glued(cell, style=style) for cell in cells))
    return table


def _skipped(case: str, reason: str) -> Table:
    table = grid(ROW_WIDTHS[0], None)
    table.add_row(glued(case), glued(reason, style=DIM))
    return table


def _reasons(key: str, rows: int, reasons: Sequence[BacktestReason], language: str) -> Iterator[RenderableType]:
    if not reasons:
        return
    yield _titled(key, language, rows=rows)
    table = grid(5, None)
    for reason in reasons:
        table.add_row(glued(f"{reason.rows:,}"), glued(words.reason_words(reason, language)))
    yield table
    yield glued("")
