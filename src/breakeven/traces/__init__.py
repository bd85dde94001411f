"""Readers of traces, one file a form: ``sniff(head) -> bool`` told from content alone, and ``read(source, reading) -> Trace``."""

from __future__ import annotations

from pathlib import Path

from breakeven import registry
from breakeven.errors import InputError
from breakeven.reading import Reading, columns_of
from breakeven.reading.cells import header_of
from breakeven.reading.frames import column_names, delimiter_of
from breakeven.reading.records import begins
from breakeven.reading.source import Source
from breakeven.trace import Trace

LAST = "table"
"""The form that takes what no other does, and all whose columns are named."""
TABLE, LONGEST_NAME, MOST_NAMES = 2, 60, 24
"""A line of so many cells is a header; no prose is one cell; columns that are listed."""

__all__ = ["LAST", "Reading", "columns_of", "forms", "read"]


def forms() -> tuple[str, ...]:
    """Names of the forms, in the order in which they are asked."""
    return tuple(sorted(registry.names("traces"), key=lambda name: name == LAST))


def read(path: Path, reading: Reading | None = None) -> Trace:
    """The trace in a file, its form told from its content unless its columns are named."""
    reading = reading or Reading()
    source = Source(path)
    for name in (LAST,) if reading.columns else forms():
        reader = registry.module("traces", name)
        if reading.columns or reader.sniff(source.head):
            trace: Trace = reader.read(source, reading)
            return trace
    raise _unknown(source)


def _unknown(source: Source) -> InputError:
    """Why nobody reads a file: a table under names of its own needs only to be told which column is which."""

    path, names = str(source.path), column_names(source)
    readable = all(name.isprintable() and len(name) <= LONGEST_NAME for name in names)
    if not names or not readable or not (_keyed(source) or _ruled(source, len(names))):
        return InputError("trace_unknown", path=path, names=", ".join(forms()))
    shown = ", ".join(name for name in names[:MOST_NAMES] if name) + (", …" if len(names) > MOST_NAMES else "")
    return InputError("trace_columns_unknown", path=path, names=shown)


def _ruled(source: Source, width: int) -> bool:
    """Whether the second line is cut as the first is, as no prose is."""
    lines = source.head.split(b"\n")
    return width >= TABLE and (len(lines) < TABLE or len(header_of(lines[1], delimiter_of(source.head))) == width)


def _keyed(source: Source) -> bool:
    """Whether names are keys of a record, and not the words of a line."""
    return begins(source.head, b"{") or begins(source.head, b"[")
