"""Plain tables in batches of text cells, whatever file they stand in: CSV, TSV, JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from breakeven.errors import InputError
from breakeven.reading.cells import BATCH_ROWS, Batch, batches, header_of
from breakeven.reading.records import begins, first_table, records, table_of
from breakeven.reading.source import GZIP, PARQUET, Source

if TYPE_CHECKING:
    import polars as pl

DELIMITERS = (",", "\t", ";", "|")


def column_names(source: Source) -> list[str]:
    """Names of the columns: the header's, a record's keys (of tables within it, dotted), or a Parquet file's."""
    if source.head.startswith(PARQUET):
        return _parquet_names(source)
    if begins(source.head, b"{") or begins(source.head, b"["):
        first = first_table(source.head)
        inner = [f"{name}.{key}" for name, value in first.items() if isinstance(value, dict) for key in value]
        return [*first, *inner]
    return header_of(source.head, delimiter_of(source.head))


def delimiter_of(head: bytes) -> str:
    """The sign that stands most often in the first line, out of the usual four."""
    line = head.split(b"\n", 1)[0].decode("utf-8", "replace")
    return max(DELIMITERS, key=line.count)


def is_csv(source: Source) -> bool:
    """Whether rows are lines of text with cells."""
    return not source.head.startswith(PARQUET) and not begins(source.head, b"{") and not begins(source.head, b"[")


def frames(source: Source, names: Sequence[str], wanted: Sequence[str]) -> Iterator[Batch]:
    """The wanted columns, batch by batch, as text."""
    if source.head.startswith(PARQUET):
        yield from _parquet_batches(source, wanted)
    elif is_csv(source):
        places = [names.index(name) for name in wanted]
        for batch in batches(source, len(names), delimiter_of(source.head)):
            yield Batch(numbers=batch.numbers, columns=[batch.columns[place] for place in places], damaged=batch.damaged)
    else:
        yield from _record_batches(source, wanted)


def _parquet(source: Source) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_parquet(source.path, glob=False)


def _unsound(source: Source) -> InputError:
    """Why a Parquet file cannot be read: it is packed once more, as nothing that reads its end first can be, or it is damaged."""
    with source.path.open("rb") as handle:
        packed = handle.read(len(GZIP)) == GZIP
    return InputError("trace_parquet_packed" if packed else "trace_parquet", path=str(source.path))


def _parquet_names(source: Source) -> list[str]:
    import polars as pl

    try:
        return _parquet(source).collect_schema().names()
    except (pl.exceptions.PolarsError, OSError):
        raise _unsound(source) from None


def _parquet_batches(source: Source, wanted: Sequence[str]) -> Iterator[Batch]:
    import polars as pl

    frame = _parquet(source).select(list(wanted))
    first = 0
    while True:
        try:
            part = frame.slice(first, BATCH_ROWS).collect()
        except (pl.exceptions.PolarsError, OSError):
            raise _unsound(source) from None
        if not len(part):
            return
        columns = [_as_text(column) for column in part.get_columns()]
        yield Batch(numbers=np.arange(first + 1, first + 1 + len(part)), columns=columns, damaged=[])
        first += len(part)


def _as_text(column: pl.Series) -> pl.Series:
    import polars as pl

    if isinstance(column.dtype, pl.List):
        return pl.Series(column.name, [None if row is None else str(row) for row in column.to_list()], dtype=pl.String)
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.to_string("iso:strict")
    return column.cast(pl.String)


def _record_batches(source: Source, wanted: Sequence[str]) -> Iterator[Batch]:
    import polars as pl

    stream = records(source)
    while group := list(islice(stream, BATCH_ROWS)):
        found = [(record.number, table_of(record.data)) for record in group]
        sound = [(number, record) for number, record in found if record is not None]
        columns = [pl.Series(name, [_cell(record, name) for _, record in sound], dtype=pl.String) for name in wanted]
        damaged = [number for number, record in found if record is None]
        yield Batch(numbers=np.array([number for number, _ in sound], dtype=np.int64), columns=columns, damaged=damaged)


def _cell(record: dict[str, Any], name: str) -> str | None:
    """A value as text: a string as it is, anything else as JSON; dotted names lie deeper."""
    value: Any = record.get(name)
    if value is None and "." in name:
        value = record
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
