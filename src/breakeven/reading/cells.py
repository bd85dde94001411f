"""Tables of text in batches of columns: cells as numbers and times all at once, what is none of them found by its line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from breakeven.reading.source import Source
from breakeven.reading.stamps import stamp_ns
from breakeven.trace import LONGEST_REQUEST

if TYPE_CHECKING:
    import polars as pl

BATCH_ROWS = 2**15
DAMAGED = LONGEST_REQUEST + 1
"""Stands for a cell that is no count."""
CENTURIES = ("19", "20", "21")
"""Years outside would wrap in 64 bits of nanoseconds."""
WHOLE_STAMPS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f%:z")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows of the right width, column by column, and the numbers of the lines that were not."""

    numbers: NDArray[np.int64]
    columns: list[pl.Series]
    damaged: list[int]


def header_of(head: bytes, delimiter: str) -> list[str]:
    """The names in the first line, blanks and quotes taken off."""
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def batches(source: Source, width: int, delimiter: str = ",") -> Iterator[Batch]:
    """The rows below the header; from the first quotation mark on they are read by the slower rules of quoting."""
    lines = _numbered(source)
    for number, group in lines:
        if any(b'"' in line for line in group):
            yield from _quoted(number, group, lines, width, delimiter)
        else:
            yield _split(number, group, width, delimiter)


def _numbered(source: Source) -> Iterator[tuple[int, list[bytes]]]:
    for number, group in source.lines():
        if number == 1:
            number, group = 2, group[1:]  # noqa: PLW2901 the header is no row
        if group:
            yield number, group


def _split(first: int, lines: list[bytes], width: int, delimiter: str) -> Batch:
    import polars as pl

    numbers = np.arange(first, first + len(lines), dtype=np.int64)
    texts = pl.Series("", b"\n".join(lines).decode("utf-8", "replace").split("\n"), dtype=pl.String).str.strip_chars_end("\r")
    filled = (texts.str.strip_chars(" \t") != "").to_numpy()
    texts, numbers = texts.filter(pl.Series(filled)), numbers[filled]
    cells = texts.str.split_exact(delimiter, width).struct.unnest().get_columns()
    sound = (cells[width].is_null() & cells[width - 1].is_not_null()).to_numpy()
    kept = pl.Series(sound)
    return Batch(numbers=numbers[sound], columns=[cell.filter(kept) for cell in cells[:width]], damaged=numbers[~sound].tolist())


def _quoted(first: int, lines: list[bytes], more: Iterator[tuple[int, list[bytes]]], width: int, delimiter: str) -> Iterator[Batch]:
    import polars as pl

    reader = csv.reader(_texts(lines, more), delimiter=delimiter)
    rows = _rows(reader, first - 1)
    while batch := list(islice(rows, BATCH_ROWS)):
        sound = [(number, row) for number, row in batch if len(row) == width]
        columns = [pl.Series("", column, dtype=pl.String) for column in zip(*(row for _, row in sound), strict=True)]
        damaged = [number for number, row in batch if len(row) != width]
        numbers = np.array([number for number, _ in sound], dtype=np.int64)
        yield Batch(numbers=numbers, columns=columns or [pl.Series("", [], dtype=pl.String)] * width, damaged=damaged)


def _texts(lines: list[bytes], more: Iterator[tuple[int, list[bytes]]]) -> Iterator[str]:
    for line in lines:
        yield line.decode("utf-8", "replace") + "\n"
    for _, group in more:
        for line in group:
            yield line.decode("utf-8", "replace") + "\n"


def _rows(reader: Any, before: int) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of their first line; each line of a row that cannot be read is damaged."""
    done = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            row = []
        start, done = done + 1, reader.line_num
        if len(row) == 1 and not row[0].strip():
            continue
        if row or done > start:
            yield before + start, row


def counts(cells: pl.Series, blank: int = DAMAGED) -> NDArray[np.int64]:
    """Cells as counts of tokens, ``DAMAGED`` where one is none; 3.0 is 3. An empty cell is ``blank``."""
    import polars as pl

    texts = cells.str.strip_chars()
    found = texts.cast(pl.Int64, strict=False)
    if found.null_count():
        loose = texts.cast(pl.Float64, strict=False)
        found = found.fill_null(loose.filter(pl.Series([True] * len(loose))).set(~_integral(loose), None).cast(pl.Int64, strict=False))
    found = found.set((found < 0) | (found > LONGEST_REQUEST), DAMAGED).fill_null(DAMAGED)
    return found.set(texts.fill_null("") == "", blank).to_numpy().astype(np.int64)


def _integral(cells: pl.Series) -> pl.Series:
    return (cells.is_finite() & (cells == cells.floor()) & (cells.abs() <= LONGEST_REQUEST)).fill_null(False)


def numbers(cells: pl.Series) -> NDArray[np.float64]:
    """Cells as numbers, NaN where one is none."""
    import polars as pl

    found = cells.str.strip_chars().cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    return np.where(np.isfinite(found), found, np.nan)


def times_ns(cells: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Stamps as nanoseconds since 1970; which are none; which name their zone."""
    import polars as pl

    texts = cells.str.strip_chars().str.replace("T", " ", literal=True)
    found = pl.Series([None] * len(texts), dtype=pl.Int64)
    zoned = np.zeros(len(texts), dtype=np.bool_)
    century = texts.str.slice(0, 2).is_in(list(CENTURIES))
    for form in WHOLE_STAMPS:
        zone = "UTC" if form.endswith("z") else None
        if found.null_count():
            here = texts.str.to_datetime(form, time_unit="ns", time_zone=zone, strict=False).cast(pl.Int64)
            taken = (found.is_null() & here.is_not_null() & century).to_numpy()
            zoned |= taken & (zone is not None)
            found = found.zip_with(~pl.Series(taken), here)
    return _rest_ns(cells, found, zoned)


def _rest_ns(cells: pl.Series, found: pl.Series, zoned: NDArray[np.bool_]) -> tuple[Any, Any, Any]:
    """The stamps that no whole form fitted, one by one."""
    left = found.is_null().to_numpy()
    values = found.fill_null(0).to_numpy().copy()
    for place in np.flatnonzero(left):
        stamp = stamp_ns(cells[int(place)])
        if stamp is not None:
            values[place], zoned[place], left[place] = stamp[0], stamp[1], False
    return values, left, zoned
