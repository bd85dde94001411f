"""WEKA's traces: a conversation in a record, its requests with ids of 64-token prompt blocks, full blocks only."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.messages import Message
from breakeven.reading import Reading
from breakeven.reading.chat import Table, table
from breakeven.reading.finish import trace_of
from breakeven.reading.records import Record, first_table, is_lines, records, table_of
from breakeven.reading.request import Request, at, seconds, whole
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import Trace

BLOCK_TOKENS = 64
LARGEST_LOCAL = 2**30
"""Ids of one conversation are below this; above it stands which conversation."""
GLOBAL, LOCAL = "global", "local"


def sniff(head: bytes) -> bool:
    """Whether the first record is a conversation with its requests."""
    first = first_table(head)
    requests = first.get("requests")
    if isinstance(requests, list):
        return bool(requests) and {"in", "out"} & set(table(requests[0])) != set() and "id" in first
    return {"id", "requests", "in", "out", "hash_ids"} <= set(first)


def read(source: Source, reading: Reading) -> Trace:
    """The requests of all conversations, one after another: their times count from each one's own beginning and are not comparable."""
    rows = Rows(source, reading, "weka", in_lines=is_lines(source), block_tokens=BLOCK_TOKENS)
    for record in records(source):
        found = table_of(record.data)
        if found is None or not isinstance(found.get("requests"), list):
            rows.damaged(record.number, record.line)
        else:
            _take(rows, record, found)
    rows.notes.append(Message("trace.local_times", {"path": source.path.name}))
    return trace_of(rows)


def _take(rows: Rows, record: Record, conversation: Table) -> None:
    block = whole(conversation.get("block_size"))
    if block:
        rows.block_tokens = block
    shared = conversation.get("hash_id_scope") == GLOBAL
    for session, request in _requests(conversation["requests"], str(record.number)):
        # Specified as unique within a conversation unless the record says otherwise; one within it begins with a cache of its own.
        base = 0 if shared else rows.sessions.setdefault(session, len(rows.sessions)) * LARGEST_LOCAL
        ids = request.get("hash_ids")
        found = [base + name if type(name) is int and 0 <= name < LARGEST_LOCAL else -1 for name in ids] if isinstance(ids, list) else []
        rows.add(
            record.number,
            Request(
                input_tokens=request.get("in"),
                output_tokens=request.get("out"),
                hash_ids=found,
                ttft_s=seconds(request.get("ttft")),
                e2e_s=seconds(request.get("api_time")),
                session=session,
                group=at(request, rows.reading.group or "model"),
            ),
            record.line,
        )


def _requests(found: list[object], session: str) -> Iterator[tuple[str, Table]]:
    """Requests in order, those of a conversation within where it was begun."""
    for place, request in enumerate(map(table, found)):
        if isinstance(request.get("requests"), list):
            yield from _requests(request["requests"], f"{session}.{place}")
        else:
            yield session, request
