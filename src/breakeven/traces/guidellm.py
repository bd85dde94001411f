"""Reports of guidellm (``benchmarks.json``): the requests of every benchmark in it, with times, counts and cached tokens."""

from __future__ import annotations

from breakeven.reading import Reading
from breakeven.reading.chat import Table, first_of
from breakeven.reading.finish import trace_of
from breakeven.reading.records import elements, first_table, table_of
from breakeven.reading.request import Request, at, named, seconds, whole
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.reading.stamps import stamp_ns
from breakeven.trace import Trace

DEPTH = 5
"""A request stands within the report, its benchmarks, a benchmark, its requests, and the list of a status."""
KIND = "generative_request_stats"
START = ("info.timings.targeted_start", "request_start_time", "info.timings.request_start", "start_time")
"""When it should have been sent, where that was decided beforehand; else when it was."""
SERVED = ("completed", None)
MS = 1e-3


def sniff(head: bytes) -> bool:
    """Whether a file is a report with benchmarks of this tool."""
    first = first_table(head)
    return "benchmarks" in first and (b'"guidellm_version"' in head or b"generative_benchmark" in head or b'"request_loader"' in head)


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a report that were served; those that failed or were broken off are set apart."""
    rows = Rows(source, reading, "guidellm", in_lines=False)
    for record in elements(source, DEPTH):
        found = table_of(record.data)
        if found is None:
            rows.damaged(record.number, record.line)
        elif found.get("type_") == KIND or "request_id" in found:
            if _served(found):
                rows.add(record.number, _request(found, reading), record.line)
            else:
                rows.set_apart("failed", record.number)
    return trace_of(rows)


def _served(record: Table) -> bool:
    return at(record, "info.status") in SERVED and not record.get("error") and not at(record, "info.error")


def _request(record: Table, reading: Reading) -> Request:
    start, end = stamp_ns(first_of(record, START)), stamp_ns(first_of(record, ("request_end_time", "end_time")))
    e2e = seconds(record.get("request_latency"))
    if e2e is None and start is not None and end is not None:
        e2e = seconds((end[0] - start[0]) / 1e9)
    return Request(
        arrival_ns=None if start is None else start[0],
        input_tokens=record.get("prompt_tokens"),
        output_tokens=record.get("output_tokens"),
        cached_tokens=whole(first_of(record, ("cached_tokens", "input_metrics.cached_tokens"))),
        ttft_s=seconds(record.get("time_to_first_token_ms"), MS),
        e2e_s=e2e,
        session=named(at(record, "info.conversation_id")),
        group=at(record, reading.group) if reading.group else None,
    )
