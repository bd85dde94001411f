"""Per-request records of aiperf (``profile_export.jsonl``): times in nanoseconds, metrics that each name their unit."""

from __future__ import annotations

from breakeven.reading import Reading
from breakeven.reading.chat import Table, table
from breakeven.reading.finish import trace_of
from breakeven.reading.records import first_table, is_lines, records, table_of
from breakeven.reading.request import Request, at, named, seconds, whole
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import Trace

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "nanoseconds": 1e-9, "milliseconds": 1e-3}
PROMPT = ("input_sequence_length",)
OUTPUT = ("output_sequence_length", "output_token_count")
"""The first counts reasoning too: all that was decoded."""


def sniff(head: bytes) -> bool:
    """Whether the first record has metadata with a start in nanoseconds, and metrics."""
    first = first_table(head)
    return "metrics" in first and ("request_start_ns" in table(first.get("metadata")) or "request_start_ns" in first)


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file; failed and cancelled ones are set apart."""
    rows = Rows(source, reading, "aiperf", in_lines=is_lines(source))
    for record in records(source):
        found = table_of(record.data)
        start = None if found is None else whole(at(found, "metadata.request_start_ns"))
        if found is None or start is None:
            rows.damaged(record.number, record.line)
        elif found.get("error") or at(found, "metadata.was_cancelled") is True:
            rows.set_apart("failed", record.number)
        else:
            rows.add(record.number, _request(found, reading, start), record.line)
    return trace_of(rows)


def _request(record: Table, reading: Reading, start: int) -> Request:
    metrics = table(record.get("metrics"))
    return Request(
        arrival_ns=start,
        input_tokens=_count(metrics, PROMPT),
        output_tokens=_count(metrics, OUTPUT),
        cached_tokens=whole(at(metrics, "usage_prompt_cache_read_tokens.value")),
        ttft_s=_duration(metrics, "time_to_first_token"),
        e2e_s=_duration(metrics, "request_latency"),
        session=named(at(record, "metadata.x_correlation_id")) or named(at(record, "metadata.conversation_id")),
        group=at(record, reading.group) if reading.group else None,
    )


def _count(metrics: Table, names: tuple[str, ...]) -> int | None:
    return next((found for name in names if (found := whole(at(metrics, f"{name}.value"))) is not None), None)


def _duration(metrics: Table, name: str) -> float | None:
    """A duration by the unit beside it; without a known unit it says nothing."""
    unit = at(metrics, f"{name}.unit")
    return seconds(at(metrics, f"{name}.value"), SECONDS[unit]) if isinstance(unit, str) and unit in SECONDS else None
