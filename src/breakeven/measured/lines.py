"""Files of measurements as rows of named text: CSV (by commas, semicolons or tabs), JSON lines, either of them in gzip."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from breakeven.errors import InputError
from breakeven.measured.columns import named
from breakeven.measured.row import Row, Skipped
from breakeven.messages import Message
from breakeven.origin.values import shown

LARGEST_BYTES = 2**28
LONGEST_PATH = 300
SEPARATORS = ",;\t"
GZIP = b"\x1f\x8b"
WIDE = (b"\xff\xfe", b"\xfe\xff")
"""Beginnings of text in UTF-16, as some spreadsheets write it."""
METRICS = re.compile(r"# (?:HELP|TYPE) \S+ ")
"""What a saved page of metrics begins with."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A file's columns, its rows, and the lines that are damaged."""

    path: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    damaged: tuple[Skipped, ...]


def read_table(path: Path) -> Table:
    """The rows of a file, each with its line number."""
    where = shown(str(path), LONGEST_PATH)
    text = _text(path, where)
    if not text.strip():
        raise InputError("measured_empty", path=where)
    if METRICS.match(text.lstrip()):
        raise InputError("measured_metrics", path=where)
    found = _json_lines(text, where) if text.lstrip()[0] in "{[" else _csv(text, where)
    if not found.rows and not found.damaged:
        raise InputError("measured_no_rows", path=where)
    return found


def read_text(path: Path) -> str:
    """The text of a file, unpacked where it is in gzip; what is no regular file, too large or no text is refused."""
    return _text(path, shown(str(path), LONGEST_PATH))


def _text(path: Path, where: str) -> str:
    raw = _bytes(path, where)
    if raw.startswith(WIDE):
        raise InputError("measured_wide", path=where)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError("measured_not_text", path=where, line=line) from None


def _bytes(path: Path, where: str) -> bytes:
    """A regular file's bytes; its size is looked at before it is read, and what gzip makes of it while it is."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError("file_is_a_folder" if stat.S_ISDIR(status.st_mode) else "file_not_regular", path=where)
        if status.st_size > LARGEST_BYTES:
            raise InputError("measured_too_large", path=where, size=float(status.st_size), limit=float(LARGEST_BYTES))
        raw = path.read_bytes()
        return _unpacked(raw, where) if raw.startswith(GZIP) else raw
    except FileNotFoundError:
        raise InputError("file_missing", path=where) from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError("file_unreadable", path=where, reason=shown(getattr(error, "strerror", None) or str(error))) from None


def _unpacked(raw: bytes, where: str) -> bytes:
    with gzip.open(io.BytesIO(raw)) as packed:
        found = packed.read(LARGEST_BYTES + 1)
    if len(found) > LARGEST_BYTES:
        raise InputError("measured_too_large", path=where, size=float(len(found)), limit=float(LARGEST_BYTES))
    return found


def _csv(text: str, where: str) -> Table:
    head = text.lstrip("\r\n").partition("\n")[0]
    separator = max(SEPARATORS, key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[Row] = []
    damaged: list[Skipped] = []
    columns: tuple[str, ...] = ()
    try:
        for line, cells in _records(reader):
            if not columns:
                columns = _columns(cells, where)
                continue
            row = _row(columns, cells, f"{where}:{line}")
            if len(cells) == len(columns):
                rows.append(row)
            else:
                reason = Message("doubt.cells", {"cells": len(cells), "columns": len(columns)})
                damaged.append(Skipped(id=row.id, where=row.where, reason=reason, fields=row.fields))
    except csv.Error as error:
        raise InputError("file_malformed_at", path=where, line=reader.line_num, reason=shown(str(error))) from None
    return Table(path=where, columns=columns, rows=tuple(rows), damaged=tuple(damaged))


def _records(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank, with the number of its first line (a cell in quotes may go on over lines)."""
    line = 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1  # type: ignore[attr-defined]  # of the reader that csv makes


def _columns(cells: list[str], where: str) -> tuple[str, ...]:
    columns = tuple(named(cell) or f"column {place}" for place, cell in enumerate(cells, start=1))
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise InputError("measured_column_twice", path=where, name=shown(twice))
    return columns


def _row(columns: tuple[str, ...], cells: list[str], where: str) -> Row:
    fields = {name: cell.strip() for name, cell in zip(columns, cells, strict=False)}
    return Row(where=where, id=_id(fields, where), fields=fields)


def _id(fields: Mapping[str, str], where: str) -> str:
    return fields.get("case_id") or fields.get("id") or where


def _json_lines(text: str, where: str) -> Table:
    rows: list[Row] = []
    columns: dict[str, None] = {}
    for line, words in enumerate(text.split("\n"), start=1):
        if words.strip():
            fields = _fields(words, where, line)
            columns |= dict.fromkeys(fields)
            rows.append(Row(where=f"{where}:{line}", id=_id(fields, f"{where}:{line}"), fields=fields))
    return Table(path=where, columns=tuple(columns), rows=tuple(rows), damaged=())


def _fields(words: str, where: str, line: int) -> dict[str, str]:
    try:
        found = json.loads(words)
    except (ValueError, RecursionError) as error:
        raise InputError("file_malformed_at", path=where, line=line, reason=shown(str(error))) from None
    if not isinstance(found, dict):
        raise InputError("measured_not_object", path=where, line=line)
    return {named(name): _cell(value) for name, value in found.items()}


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
