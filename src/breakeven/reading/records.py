"""The records of a JSON file: one a line, the elements of an array of any size, or objects that follow each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from json import JSONDecoder
from typing import Any, NamedTuple

import msgspec
import numpy as np

from breakeven.reading.source import LONGEST_RECORD, UNREADABLE, Source

BLANK = b" \t\r\n"
KEY = re.compile(r'"(\w+)"\s*:')


class Record(NamedTuple):
    """A record that is not decoded yet, and where it stands."""

    number: int
    """Which record of the file it is, from 1; in JSON lines the number of its line."""
    line: int
    data: bytes


def begins(head: bytes, sign: bytes) -> bool:
    """Whether a text begins with a sign, blanks apart."""
    return head.lstrip(BLANK).startswith(sign)


def is_array(source: Source) -> bool:
    """Whether the records are the elements of one array."""
    return begins(source.head, b"[")


def is_lines(source: Source) -> bool:
    """Whether each record is a line: neither an array nor objects written over several lines."""
    return not is_array(source) and source.head.lstrip(BLANK).split(b"\n", 1)[0].strip() != b"{"


def records(source: Source) -> Iterator[Record]:
    """The records of a file, in whichever of the three ways it holds them."""
    if is_lines(source):
        for first, lines in source.lines():
            for number, line in enumerate(lines, start=first):
                if line and not line.isspace():
                    yield Record(number, number, line)
    else:
        yield from elements(source, 1 if is_array(source) else 0)


def elements(source: Source, depth: int) -> Iterator[Record]:
    """Objects and arrays inside ``depth`` others; at depths 0 and 1 also what stands between them and is none."""
    from breakeven.reading.nesting import new_state, scan

    state, walk, ends = new_state(), _Walk(whole=depth < 2), np.empty(0, dtype=np.int64)
    for piece in source.pieces():
        if len(ends) <= len(piece):
            ends = np.empty(len(piece) + 1, dtype=np.int64)
        found = scan(np.frombuffer(piece, dtype=np.uint8), state, depth, ends)
        yield from walk.through(piece, ends[:found].tolist())
    yield from walk.rest()


@dataclass
class _Walk:
    """What is kept of an element, or of what stands between two, from one piece to the next."""

    whole: bool
    number: int = 0
    line: int = 1
    inside: bool = False
    kept: list[bytes] = field(default_factory=list)
    held: int = 0

    def through(self, piece: bytes, ends: list[int]) -> Iterator[Record]:
        cursor = 0
        for end in ends:
            place = end if end >= 0 else -end
            self._keep(piece[cursor:place])
            yield from self._out()
            self.inside, cursor = end >= 0, place
        self._keep(piece[cursor:])

    def rest(self) -> Iterator[Record]:
        """What is left at the end of the file: an element that was cut is a record, if a damaged one."""
        yield from self._out()

    def _keep(self, part: bytes) -> None:
        if not self.inside and not self.whole:
            self.line += part.count(b"\n")
            return
        self.held += len(part)
        if self.held <= LONGEST_RECORD:
            self.kept.append(part)
        else:
            self.kept = [UNREADABLE]

    def _out(self) -> Iterator[Record]:
        data, line = b"".join(self.kept), self.line
        self.line += data.count(b"\n")
        self.kept, self.held = [], 0
        parts = [data] if self.inside else data.strip(BLANK + b"[],").split(b",") if self.whole else []
        for part in parts:
            if part.strip(BLANK):
                self.number += 1
                yield Record(self.number, line, part)


decode = msgspec.json.Decoder().decode
"""Bytes of a record to plain objects; raises what ``DAMAGED`` lists."""
DAMAGED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def table_of(data: bytes) -> dict[str, Any] | None:
    """A record as a table, or none when it is damaged or something else."""
    try:
        found = decode(data)
    except DAMAGED:
        return None
    return found if isinstance(found, dict) else None


def first_table(head: bytes) -> dict[str, Any]:
    """The first record of a file, as far as its head shows it: whole, or the keys that are seen with nothing in them."""
    text = head.lstrip(BLANK + b"[").decode("utf-8", "replace")
    if not text.startswith("{"):
        return {}
    try:
        found = JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return dict.fromkeys(KEY.findall(text))
    return dict(found)
