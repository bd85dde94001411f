"""OpenAI batch files: the requests that went in, or the responses that came out; without times."""

from __future__ import annotations

from breakeven.reading import Reading
from breakeven.reading.chat import NOTHING, Table, as_long, output_of, prompt_of, table, usage_of
from breakeven.reading.finish import trace_of
from breakeven.reading.pieces import Pieces
from breakeven.reading.records import first_table, is_lines, records, table_of
from breakeven.reading.request import Request, at
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import Trace

FAILED = 400


def sniff(head: bytes) -> bool:
    """Whether the first record has a custom id, and a body or a response."""
    first = first_table(head)
    return "custom_id" in first and bool({"body", "response", "error"} & set(first))


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file. What a request may generate at most says nothing of what it did."""
    rows = Rows(source, reading, "openai_batch", in_lines=is_lines(source))
    pieces = Pieces(reading)
    for record in records(source):
        found = table_of(record.data)
        if found is None or not ({"body", "response", "error"} & set(found)):
            rows.damaged(record.number, record.line)
        elif _failed(found):
            rows.set_apart("failed", record.number)
        else:
            rows.add(record.number, _request(found, reading, pieces, record.number), record.line)
    return trace_of(rows)


def _failed(record: Table) -> bool:
    status = at(record, "response.status_code")
    return bool(record.get("error")) or (isinstance(status, int) and status >= FAILED)


def _request(record: Table, reading: Reading, pieces: Pieces, number: int) -> Request:
    body, answer = table(record.get("body")), table(at(record, "response.body"))
    prompt = prompt_of(body, answer, pieces)
    output = output_of(NOTHING, answer, pieces)
    said_prompt, said_output, cached = usage_of(NOTHING, answer)
    return Request(
        input_tokens=said_prompt if said_prompt is not None else None if prompt is None else len(prompt.ids),
        output_tokens=said_output if said_output is not None else None if output is None else len(output.ids),
        prompt=as_long(prompt, said_prompt, number),
        output=None if output is None else output.ids,
        exact=(prompt is None or prompt.exact) and (output is None or said_output is not None or output.exact),
        cached_tokens=cached,
        group=at(record, reading.group) if reading.group else body.get("model") or answer.get("model"),
    )
