"""Plain tables, CSV, TSV, JSON lines or Parquet: columns as they are said, or by names that are common for what they hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.reading import Reading
from breakeven.reading.cells import DAMAGED, Batch, counts, numbers, times_ns
from breakeven.reading.columns import NO_TIME, NONE
from breakeven.reading.finish import trace_of
from breakeven.reading.frames import column_names, delimiter_of, frames, is_csv
from breakeven.reading.naming import UNITS, Column, columns_of_table
from breakeven.reading.pieces import Pieces, fitted
from breakeven.reading.records import begins, first_table, is_lines
from breakeven.reading.request import Request
from breakeven.reading.rows import Rows
from breakeven.reading.source import PARQUET, Source
from breakeven.reading.stamps import EPOCHS
from breakeven.trace import Trace

if TYPE_CHECKING:
    import polars as pl

BY_ROW = ("hash_ids", "prompt", "completion")
"""What is read one request at a time."""
NUMBER = re.compile(r"[\[\]\s,;\d]*")
BLOCK_TOKENS = 512
"""Mooncake's, where a table has ids of blocks and none other is said."""
LATEST_NS = 2.0**62
LONGEST_ID = 20
"""Digits of the largest number of 64 bits; Python refuses to read numbers of thousands."""


def sniff(head: bytes) -> bool:
    """Whether a file is a table in which a column of prompts or their lengths is found by its name."""
    if head.startswith(PARQUET):
        return True
    if begins(head, b"{") or begins(head, b"["):
        return bool(columns_of_table(list(first_table(head)), {}, ""))
    names = _header(head)
    return len(names) > 1 and bool(columns_of_table(names, {}, ""))


def _header(head: bytes) -> list[str]:
    from breakeven.reading.cells import header_of

    return header_of(head, delimiter_of(head))


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a table; a cell that cannot be read makes its row a damaged one."""
    names = column_names(source)
    fields = columns_of_table(names, reading.columns, str(source.path))
    if not fields or not ({"input", "prompt", "hash_ids"} & set(fields)):
        raise InputError("trace_no_lengths", path=str(source.path), names=", ".join(names))
    rows = Rows(
        source, reading, "table", in_lines=is_csv(source) or is_lines(source), block_tokens=BLOCK_TOKENS if "hash_ids" in fields else None
    )
    if reading.group is not None and "group" not in fields:
        fields |= columns_of_table(names, {"group": reading.group}, str(source.path))
    table = _Table(rows, fields)
    for batch in frames(source, names, [column.name for column in fields.values()]):
        table.take(batch)
    _notes(rows, fields, table.epoch_unit, guessed=not reading.columns)
    return trace_of(rows)


def _notes(rows: Rows, fields: dict[str, Column], taken: float | None, guessed: bool) -> None:
    """Columns taken by their names, and the unit of times whose column names none."""
    units = {field: column.unit for field, column in fields.items()}
    if taken is not None:
        units["arrival"] = next(unit for unit, size in UNITS.items() if size * 1e9 == taken)
    path = rows.source.path.name
    if guessed:
        rows.notes.append(Message("trace.guessed", {"path": path, "columns": _written(fields, units)}))
    if taken is not None:
        other = _written(fields, {**units, "arrival": "ms" if units["arrival"] == "s" else "s"})
        said = {"path": path, "column": fields["arrival"].name, "unit": Message(f"trace.unit_{units['arrival']}", {}), "other": other}
        rows.notes.append(Message("trace.time_unit", said))


def _written(fields: dict[str, Column], units: dict[str, str]) -> str:
    """Columns as ``--columns`` takes them."""
    return ",".join(f"{field}={column.name}" + (f":{units[field]}" if units[field] else "") for field, column in fields.items())


class _Table:
    """The columns of a table in the terms of a trace."""

    def __init__(self, rows: Rows, fields: dict[str, Column]) -> None:
        self.rows, self.fields = rows, fields
        self.pieces = Pieces(rows.reading)
        self.epoch_unit: float | None = None

    def take(self, batch: Batch) -> None:
        """A batch of rows."""
        cells = dict(zip(self.fields, batch.columns, strict=True))
        columns, bad = self._numbers(cells, len(batch.numbers))
        if any(name in cells for name in BY_ROW):
            self._one_by_one(batch, cells, columns, bad)
        else:
            self.rows.take(batch.numbers, columns, bad, batch.damaged)

    def _numbers(self, cells: dict[str, pl.Series], size: int) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
        columns: dict[str, NDArray[Any]] = {}
        bad = np.zeros(size, dtype=np.bool_)
        for name in ("input", "output", "cached"):
            if name in cells:
                columns[name] = counts(cells[name], blank=NONE if name != "input" or "prompt" in cells else DAMAGED)
                bad |= columns[name] == DAMAGED
        if "arrival" in cells:
            columns["arrival"], none = self._arrivals(cells["arrival"])
            bad |= none
        for name in ("ttft", "e2e"):
            if name in cells:
                columns[name] = numbers(cells[name]) * (self.fields[name].unit_s or 1.0)
        for name, known in (("group", self.rows.groups), ("session", self.rows.sessions)):
            if name in cells:
                columns[name] = self.rows.places(known, cells[name].to_list(), ~bad)
        return columns, bad

    def _arrivals(self, cells: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Times as numbers of the column's unit, since 1970 where they are that large, or as stamps; an empty cell says none."""
        found = numbers(cells)
        blank = cells.fill_null("").str.strip_chars().to_numpy() == ""
        if np.isnan(found[~blank]).sum() * 2 > (~blank).sum():
            stamps, none, zoned = times_ns(cells.fill_null(""))
            self.rows.tally["zoned"] += int((zoned & ~none).sum())
            self.rows.tally["unzoned"] += int((~zoned & ~none).sum())
            return np.where(blank, NO_TIME, stamps), none & ~blank
        unit = self.fields["arrival"].unit_s
        if not unit and self.epoch_unit is None and not np.isnan(found).all():
            self.epoch_unit = _epoch_unit(found)
        with np.errstate(over="ignore"):
            scaled = found * (unit * 1e9 if unit else self.epoch_unit or 1.0)
        none = ~(np.abs(scaled) < LATEST_NS) & ~blank
        return np.where(blank, NO_TIME, np.round(np.where(none | blank, 0.0, scaled))).astype(np.int64), none

    def _one_by_one(self, batch: Batch, cells: dict[str, pl.Series], columns: dict[str, NDArray[Any]], bad: NDArray[np.bool_]) -> None:
        for number in batch.damaged:
            self.rows.damaged(number)
        texts = {name: cells[name].to_list() for name in cells}
        for place, number in enumerate(batch.numbers.tolist()):
            if bad[place]:
                self.rows.damaged(number)
                continue
            values = {name: values[place].item() for name, values in columns.items() if name not in ("group", "session")}
            self.rows.add(number, self._request(number, values, {name: cell[place] for name, cell in texts.items()}))

    def _request(self, number: int, values: dict[str, Any], texts: dict[str, Any]) -> Request:
        blocks = _ids(texts.get("hash_ids"))
        prompt = self.pieces.ids(texts["prompt"]) if texts.get("prompt") and not blocks else None
        output = self.pieces.ids(texts["completion"]) if texts.get("completion") else None
        length, generated = (None if values.get(name, NONE) == NONE else values[name] for name in ("input", "output"))
        at = values.get("arrival", NO_TIME)
        return Request(
            arrival_ns=None if at == NO_TIME else at,
            input_tokens=length if length is not None or prompt is None else len(prompt),
            output_tokens=generated if generated is not None or output is None else len(output),
            hash_ids=blocks,
            prompt=None if prompt is None else prompt if self.pieces.exact else fitted(prompt, length, number),
            output=output,
            exact=self.pieces.exact or (prompt is None and output is None),
            cached_tokens=values.get("cached"),
            ttft_s=values.get("ttft"),
            e2e_s=values.get("e2e"),
            session=texts.get("session"),
            group=texts.get("group"),
        )


def _ids(cell: str | None) -> list[int]:
    """Ids of blocks in a cell: whole numbers apart from each other, in brackets or not; −1 where something else is among them."""
    if not cell:
        return []
    found = re.findall(r"\d+", cell)
    return [int(one) for one in found] if NUMBER.fullmatch(cell) and all(len(one) <= LONGEST_ID for one in found) else [-1]


def _epoch_unit(found: NDArray[np.float64]) -> float:
    """Nanoseconds a number stands for: times since 1970 are told by size, others are seconds.

    Of the middle of the first rows, for the whole file: one number that is off, or a clock that counts up, must not change the unit.
    """
    middle = float(np.nanmedian(np.abs(found)))
    return float(next(unit for least, unit in EPOCHS if middle >= least))
