"""Logs of chat completions and completions: a request and its response in a record, as text or as token ids, with what times there are."""

from __future__ import annotations

from itertools import islice

from breakeven.messages import Message
from breakeven.reading import Reading
from breakeven.reading.chat import Table, as_long, first_of, output_of, prompt_of, table, usage_of
from breakeven.reading.finish import trace_of
from breakeven.reading.pieces import Pieces
from breakeven.reading.records import first_table, is_lines, records, table_of
from breakeven.reading.request import Request, at, named, seconds
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.reading.stamps import stamp_ns
from breakeven.trace import Trace

PROMPTS = {"messages", "prompt", "prompt_token_ids", "input"}
REQUEST, RESPONSE = ("request.body", "request", "request_body", "body"), ("response.body", "response", "response_body")
START = (
    *("start_time", "startTime", "request_time", "request_start_time", "arrival_time", "arrival", "timestamp", "@timestamp"),
    *("created_at", "time", "ts", "date", "created"),
)
FIRST = ("first_token_time", "completionStartTime", "first_token_at", "first_token_timestamp")
END = ("end_time", "endTime", "finish_time", "completed_at", "response_time_at", "finished_at", "end")
TTFT = {"ttft_s": 1.0, "ttft": 1.0, "ttft_ms": 1e-3, "time_to_first_token_ms": 1e-3, "time_to_first_token": 1.0}
E2E = {
    "e2e_s": 1.0,
    "latency_s": 1.0,
    "duration_s": 1.0,
    "latency": 1.0,
    "duration": 1.0,
    "request_latency": 1.0,
    "e2e_ms": 1e-3,
    "latency_ms": 1e-3,
    "duration_ms": 1e-3,
    "response_ms": 1e-3,
    "elapsed_ms": 1e-3,
}
SESSION = ("session_id", "conversation_id", "chat_id", "metadata.session_id", "request.metadata.session_id", "prompt_cache_key")
NS_S = 1e-9
FAILED = 400
SAMPLED, LARGEST_SCALE = 256, 4.0
"""Records that tell how the fixed rule compares with the tokenizer; beyond that ratio a log counts what its text does not hold."""


def sniff(head: bytes) -> bool:
    """Whether the first record holds a prompt of the chat or completions interface, and is no batch."""
    first = first_table(head)
    if "custom_id" in first or {"input_length", "conversations", "startTime"} & set(first):
        return False
    body = table(first_of(first, REQUEST)) or first
    return bool(PROMPTS & set(body)) and (
        body is not first or bool({"model", "choices", "response", "usage", "prompt_token_ids"} & set(first))
    )


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file; of their text only ids of tokens or blocks are kept."""
    rows = Rows(source, reading, "openai_log", in_lines=is_lines(source))
    pieces = Pieces(reading)
    scale = None if pieces.exact else _scale(source, pieces)
    if scale is not None:
        rows.notes.append(Message("trace.scaled", {"path": source.path.name, "pieces": scale}))
    for record in records(source):
        found = table_of(record.data)
        if found is None:
            rows.damaged(record.number, record.line)
        elif _failed(found):
            rows.set_apart("failed", record.number)
        else:
            rows.add(record.number, _request(found, reading, pieces, record.number, scale), record.line)
    return trace_of(rows)


def _scale(source: Source, pieces: Pieces) -> float | None:
    """Pieces of the fixed rule that make a token, by the prompts at the head of the file whose length is logged."""
    cut, counted = 0, 0
    for record in islice(records(source), SAMPLED):
        found = table_of(record.data) or {}
        response = table(first_of(found, RESPONSE)) or found
        prompt, length = prompt_of(table(first_of(found, REQUEST)) or found, response, pieces), usage_of(found, response)[0]
        if prompt is not None and not prompt.logged and length:
            cut, counted = cut + len(prompt.ids), counted + length
    return cut / counted if counted and 1 / LARGEST_SCALE <= cut / counted <= LARGEST_SCALE else None


def _failed(record: Table) -> bool:
    status = first_of(record, ("response.status_code", "status_code", "status"))
    refused = isinstance(status, int) and status >= FAILED
    return refused or bool(record.get("error")) or bool(at(record, "response.error"))


def _request(record: Table, reading: Reading, pieces: Pieces, number: int, scale: float | None) -> Request:
    body = table(first_of(record, REQUEST)) or record
    response = table(first_of(record, RESPONSE)) or record
    prompt, output = prompt_of(body, response, pieces), output_of(record, response, pieces)
    said_prompt, said_output, cached = usage_of(record, response)
    ids = as_long(prompt, said_prompt, number, scale)
    start = first_of(record, START) if first_of(record, START) is not None else response.get("created")
    stamp = stamp_ns(start)
    return Request(
        arrival_ns=None if stamp is None else stamp[0],
        zoned=stamp[1] if stamp is not None and isinstance(start, str) else None,
        input_tokens=said_prompt if said_prompt is not None else None if ids is None else len(ids),
        output_tokens=said_output if said_output is not None else None if output is None else len(output.ids),
        prompt=as_long(prompt, said_prompt, number) if reading.keep_tokens else ids,
        identity=ids,
        output=None if output is None else output.ids,
        exact=prompt is None or prompt.exact,
        cached_tokens=cached,
        ttft_s=_took(record, TTFT, stamp, FIRST),
        e2e_s=_took(record, E2E, stamp, END),
        session=named(first_of(record, SESSION)),
        group=at(record, reading.group) if reading.group else first_of(body, ("model",)) or response.get("model"),
    )


def _took(record: Table, named_in: dict[str, float], start: tuple[int, bool] | None, ends: tuple[str, ...]) -> float | None:
    """A duration by its name and unit, or from the start to a point in time."""
    for name, unit in named_in.items():
        found = seconds(record.get(name), unit)
        if found is not None:
            return found
    end = stamp_ns(first_of(record, ends))
    return None if start is None or end is None else seconds((end[0] - start[0]) * NS_S)
