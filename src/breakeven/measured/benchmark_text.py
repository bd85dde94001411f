"""A file's text as records: JSON (one object, several one after the other, a list), YAML, CSV, SQL, or a table of Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from breakeven.errors import InputError
from breakeven.measured import benchmark_sql
from breakeven.measured.benchmark import Record
from breakeven.measured.sheets import METRIC
from breakeven.origin.values import shown

LARGEST_YAML = 2**26
"""Characters of YAML, which takes a hundred times as long to read as JSON."""


def records_of(text: str, where: str) -> Iterator[Record]:
    """The records of a text, in their order, as they are asked for; none where it is none of these forms."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped[:1] in ("{", "["):
        return _json(text, where)
    if benchmark_sql.is_sql(stripped):
        return benchmark_sql.rows_of(text, where)
    if stripped[:1] == "|" or "\n|" in text[:4096]:
        return _markdown(text, where)
    if _is_yaml(stripped):
        return iter(_yaml(text, where))
    return _csv(text, where)


def _json(text: str, where: str) -> Iterator[Record]:
    """Objects one after the other, whether a line or many each; the elements of a list."""
    decoder, place, counted, line = json.JSONDecoder(), 0, 0, 1
    while (place := _past_blanks(text, place)) < len(text):
        # From the last object on: lines counted from the top for each would take minutes for a file of a hundred thousand.
        line += text.count("\n", counted, place)
        counted = place
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise InputError("file_malformed_at", path=where, line=line, reason=shown(str(error))) from None
        yield from _of_value(value, f"{where}:{line}")


def _past_blanks(text: str, place: int) -> int:
    """The next sign that is neither blank nor a comma between objects."""
    while place < len(text) and text[place] in " \t\r\n,\ufeff":
        place += 1
    return place


def _of_value(value: Any, where: str) -> Iterator[Record]:
    if isinstance(value, Mapping):
        yield Record(where=where, fields=value)
    elif isinstance(value, list):
        yield from (Record(where=f"{where}[{n}]", fields=one) for n, one in enumerate(value) if isinstance(one, Mapping))


def _is_yaml(text: str) -> bool:
    """A report of guidellm begins with one of its own keys."""
    return any(text.startswith(f"{key}:") or f"\n{key}:" in text[:8192] for key in ("metadata", "benchmarks"))


def _yaml(text: str, where: str) -> list[Record]:
    """YAML without what points elsewhere in itself: a few lines of that make a gigabyte."""
    import yaml

    if len(text) > LARGEST_YAML:
        raise InputError("measured_too_large", path=where, size=float(len(text)), limit=float(LARGEST_YAML))
    try:
        base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=base)):
            raise InputError("file_malformed_at", path=where, line=1, reason="alias")
        value = yaml.load(text, Loader=base)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise InputError("file_malformed_at", path=where, line=line, reason=shown(str(error.problem))) from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise InputError("file_malformed_at", path=where, line=1, reason=shown(str(error))) from None
    return [Record(where=where, fields=value)] if isinstance(value, Mapping) else []


def _markdown(text: str, where: str) -> Iterator[Record]:
    """Rows of tables: the first row names the columns, the second draws the line below them."""
    head: list[str] = []
    for line, words in enumerate(text.splitlines(), start=1):
        if not words.lstrip().startswith("|"):
            head = []
            continue
        cells = [cell.strip().strip("`*") for cell in words.strip().strip("|").split("|")]
        if not head:
            head = cells
        elif len(cells) == len(head) and not all(set(cell) <= set("-: ") for cell in cells):
            yield Record(where=f"{where}:{line}", fields=dict(zip(head, cells, strict=True)))


def _csv(text: str, where: str) -> Iterator[Record]:
    """Rows under their head; a row that begins as the head of a table of metrics does is a head anew."""
    head: list[str] = []
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not head or (cells[0].strip() == METRIC and head[0] == METRIC):
                head = [cell.strip() for cell in cells]
            else:
                yield Record(where=f"{where}:{reader.line_num}", fields=dict(zip(head, (cell.strip() for cell in cells), strict=False)))
    except csv.Error as error:
        raise InputError("file_malformed_at", path=where, line=reader.line_num, reason=shown(str(error))) from None
