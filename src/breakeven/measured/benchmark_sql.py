"""Rows of SQL as records: what ``llama-bench -o sql`` prints, and what ``sqlite3 .dump`` makes of it again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from breakeven.errors import InputError
from breakeven.measured.benchmark import Record
from breakeven.origin.values import shown

BEGINS = re.compile(r"\s*(?:--[^\n]*\n\s*|(?:PRAGMA|BEGIN)\b[^;]*;\s*)*(?:CREATE\s+TABLE|INSERT\s+INTO)\b", re.IGNORECASE)
NAME = r"[`\"\[]?(?P<table>\w+)[`\"\]]?"
TABLE = re.compile(rf"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{NAME}\s*\((?P<columns>[^;]*)\)\s*;", re.IGNORECASE)
ROW = re.compile(rf"^\s*INSERT\s+INTO\s+{NAME}\s*(?:\((?P<columns>[^)']*)\)\s*)?VALUES\s*\((?P<values>.*)\)\s*;\s*$", re.IGNORECASE)
VALUE = re.compile(r"\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<bare>[^',\s]+))\s*(?:,|$)")
AS_PRINTED = "', '"
"""Between two values of llama-bench, which doubles no quote within one."""


def is_sql(text: str) -> bool:
    """Whether a text begins as statements that make a table and fill it.

    >>> is_sql("CREATE TABLE IF NOT EXISTS llama_bench ("), is_sql("id,value")
    (True, False)
    """
    return BEGINS.match(text[:4096].lstrip("\ufeff")) is not None


def rows_of(text: str, where: str) -> Iterator[Record]:
    """The rows that are put into tables, a line each: columns stand in the row, else in the table's own statement."""
    tables = {found["table"]: _columns(found["columns"], declared=True) for found in TABLE.finditer(text)}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip()[:6].upper() == "INSERT":
            yield Record(where=f"{where}:{number}", fields=_row(line, tables, where, number))


def _row(line: str, tables: Mapping[str, list[str]], where: str, number: int) -> dict[str, str]:
    found = ROW.match(line)
    if found is None:
        raise InputError("file_malformed_at", path=where, line=number, reason=shown(line.strip(), 60))
    columns = _columns(found["columns"]) if found["columns"] else tables.get(found["table"], [])
    values = _values(found["values"], len(columns))
    if values is None:
        raise InputError("file_malformed_at", path=where, line=number, reason=shown(line.strip(), 60))
    return dict(zip(columns, values, strict=True))


def _columns(written: str, *, declared: bool = False) -> list[str]:
    """Names, without their types where they are declared."""
    names = [part.split() for part in written.split(",")]
    return [words[0].strip('`"[]') for words in names if words and (declared or len(words) == 1)]


def _values(written: str, count: int) -> list[str] | None:
    """So many values; None where there are more or fewer, which would put each under another's name."""
    found, place = [], 0
    while place < len(written) and (one := VALUE.match(written, place)) is not None:
        found.append(one["bare"] if one["text"] is None else one["text"].replace("''", "'"))
        place = one.end()
    if place == len(written) and len(found) == count:
        return found
    printed = written.strip().removeprefix("'").removesuffix("'").split(AS_PRINTED)
    return printed if len(printed) == count else None
