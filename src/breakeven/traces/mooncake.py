"""Mooncake traces: JSON lines with a time in ms, lengths, and ids of 512-token prompt blocks; or with delays, or text."""

from __future__ import annotations

from typing import Annotated

import msgspec

from breakeven.messages import Message
from breakeven.reading import Reading
from breakeven.reading.finish import trace_of
from breakeven.reading.pieces import Pieces
from breakeven.reading.records import DAMAGED, Record, first_table, is_lines, records
from breakeven.reading.request import LARGEST_ID, Request
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import LONGEST_REQUEST, Trace

BLOCK_TOKENS = 512
LATEST_MS = 1e15
MS = 10**6

Count = Annotated[int, msgspec.Meta(ge=0, le=LONGEST_REQUEST)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=LATEST_MS)]


class _Line(msgspec.Struct):
    timestamp: Milliseconds | None = None
    input_length: Count | None = None
    output_length: Count | None = None
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0, lt=LARGEST_ID)]] = []
    session_id: str | int | None = None
    delay: Milliseconds | None = None
    text_input: str | None = None


def sniff(head: bytes) -> bool:
    """Whether the first record has this format's lengths, or aiperf's text with one of its fields."""
    first = first_table(head)
    lengths = "input_length" in first and bool({"timestamp", "hash_ids", "delay"} & set(first))
    return lengths or ("text_input" in first and bool({"timestamp", "session_id", "delay", "output_length"} & set(first)))


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file; a turn with a delay arrives that long after the one before it in its session."""
    rows = Rows(source, reading, "mooncake", in_lines=is_lines(source))
    turns = _Turns(Pieces(reading))
    decode = msgspec.json.Decoder(_Line).decode
    for record in records(source):
        try:
            line = decode(record.data)
        except DAMAGED:
            rows.damaged(record.number, record.line)
        else:
            turns.take(rows, record, line)
    if turns.delayed:
        rows.notes.append(Message("trace.delayed", {"path": source.path.name, "turns": turns.delayed}))
    return trace_of(rows)


class _Turns:
    """When each session was last heard of."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self.last: dict[str | int, int] = {}
        self.delayed = 0

    def take(self, rows: Rows, record: Record, line: _Line) -> None:
        """A record's request. The first tells what blocks are: those of ids, or those that text is cut into."""
        if rows.block_tokens is None:
            rows.block_tokens = BLOCK_TOKENS if line.text_input is None or line.hash_ids else rows.reading.block_tokens
        prompt = None if line.text_input is None or line.hash_ids else self.pieces.ids(line.text_input)
        given = line.input_length if prompt is None or line.input_length is not None else len(prompt)
        request = Request(
            arrival_ns=self._arrival(line),
            input_tokens=given,
            output_tokens=line.output_length,
            hash_ids=line.hash_ids if rows.block_tokens == BLOCK_TOKENS else (),
            prompt=prompt,
            exact=prompt is None or self.pieces.exact,
            session=line.session_id,
        )
        rows.add(record.number, request, record.line)

    def _arrival(self, line: _Line) -> int | None:
        at = None if line.timestamp is None else round(line.timestamp * MS)
        if line.session_id is None:
            return at
        before = self.last.get(line.session_id)
        if at is None and before is not None and line.delay is not None:
            at = before + round(line.delay * MS)
            self.delayed += 1
        if at is not None:
            self.last[line.session_id] = at
        return at
