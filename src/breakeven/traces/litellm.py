"""LiteLLM's spend logs (JSON, JSON lines, or the table as CSV) and its logging payloads: counts and times, nothing of what was said."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from breakeven.reading import Reading
from breakeven.reading.cells import batches, header_of
from breakeven.reading.chat import Table, first_of, table
from breakeven.reading.finish import trace_of
from breakeven.reading.records import DAMAGED, decode, elements, first_table, is_lines, records, table_of
from breakeven.reading.request import Request, at, named, seconds, whole
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.reading.stamps import stamp_ns
from breakeven.trace import Trace

START, FIRST, END = "startTime", "completionStartTime", "endTime"
COUNTS = {"prompt_tokens", "completion_tokens"}
CACHED = (
    "metadata.usage_object.prompt_tokens_details.cached_tokens",
    "response.usage.prompt_tokens_details.cached_tokens",
    "prompt_tokens_details.cached_tokens",
)
FAILED = ("failure", "failed", "error")
ANSWERED = ("true", "True", True)
"""``cache_hit`` where LiteLLM answered out of its own cache of responses: the engine saw nothing of it."""
NS_S = 1e-9
WRAPPED = re.compile(rb'\s*\{\s*"data"\s*:\s*\[')


def sniff(head: bytes) -> bool:
    """Whether the records, or the columns, are named as in LiteLLM's table."""
    keys = _keys(head)
    return START in keys and bool(COUNTS & keys) and END in keys


def _keys(head: bytes) -> set[str]:
    first = first_table(head)
    inner = first.get("data")
    keys = set(first) | set(table(inner[0]) if isinstance(inner, list) and inner else ())
    return keys or set(header_of(head, ","))


def _wrapped(source: Source) -> bool:
    """Whether the records stand in an array named ``data``, as pages of the interface do."""
    return WRAPPED.match(source.head) is not None


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file. What failed, and what was answered without the engine, is set apart."""
    in_cells = not first_table(source.head)
    wrapped = not in_cells and _wrapped(source)
    rows = Rows(source, reading, "litellm", in_lines=in_cells or (is_lines(source) and not wrapped))
    if in_cells:
        _cells(rows)
        return trace_of(rows)
    for record in elements(source, 2) if wrapped else records(source):
        found = table_of(record.data)
        if found is None:
            rows.damaged(record.number, record.line)
        elif not wrapped or START in found:
            _take(rows, record.number, record.line, found)
    return trace_of(rows)


def _take(rows: Rows, number: int, line: int, record: Table) -> None:
    start = stamp_ns(record.get(START))
    if record.get("status") in FAILED:
        rows.set_apart("failed", number)
    elif record.get("cache_hit") in ANSWERED:
        rows.set_apart("response_cache", number)
    elif start is None:
        rows.damaged(number, line)
    else:
        rows.add(number, _request(rows.reading, record, start), line)


def _request(reading: Reading, record: Table, start: tuple[int, bool]) -> Request:
    record = {**record, "metadata": _metadata(record.get("metadata"))}
    first, end = stamp_ns(record.get(FIRST)), stamp_ns(record.get(END))
    group = at(record, reading.group) if reading.group else record.get("model_group") or record.get("model")
    return Request(
        arrival_ns=start[0],
        zoned=start[1],
        input_tokens=record.get("prompt_tokens"),
        output_tokens=record.get("completion_tokens"),
        cached_tokens=whole(first_of(record, CACHED)),
        # Without streaming it is written as the end: no time to a first token was measured.
        ttft_s=None if first is None or first == end else seconds((first[0] - start[0]) * NS_S),
        e2e_s=None if end is None else seconds((end[0] - start[0]) * NS_S),
        session=named(record.get("session_id")),
        group=group,
    )


def _metadata(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return decode(value)
    except DAMAGED:
        return None


def _cells(rows: Rows) -> None:
    names = header_of(rows.source.head, ",")
    for batch in batches(rows.source, len(names)):
        for number in batch.damaged:
            rows.damaged(number)
        columns = [column.to_list() for column in batch.columns]
        for number, row in zip(batch.numbers.tolist(), zip(*columns, strict=True), strict=True):
            record = {name: value for name, value in zip(names, row, strict=True) if value not in (None, "", "NULL", "null")}
            _take(rows, number, number, {**record, **_counted(record)})


def _counted(record: dict[str, str]) -> dict[str, object]:
    return {name: found for name in COUNTS for found in _numbers(record.get(name))}


def _numbers(value: str | None) -> Iterator[object]:
    if value is not None:
        try:
            yield msgspec.json.decode(value.strip())
        except msgspec.DecodeError:
            yield value
