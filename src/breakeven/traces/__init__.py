"""Readers of traces, one file a form: ``sniff(head) -> bool`` told from content alone, and ``read(source, reading) -> Trace``."""

from __future__ import annotations

from pathlib import Path

from breakeven import registry
from breakeven.errors import InputError
from breakeven.reading import Reading, columns_of
from breakeven.reading.source import Source
from breakeven.trace import Trace

LAST = "table"
"""The form that takes what no other does, and all whose columns are named."""

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
    raise InputError("trace_unknown", path=str(path), names=", ".join(forms()))
