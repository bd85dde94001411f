"""Raw exports of genai-perf and perf_analyzer (``profile_export.json``): payloads, and the times at which responses came."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.reading import Reading
from breakeven.reading.chat import Table, as_long, content_texts, prompt_of, table, usage_of
from breakeven.reading.finish import trace_of
from breakeven.reading.pieces import Pieces
from breakeven.reading.records import elements, first_table, table_of
from breakeven.reading.request import Request, at, seconds, whole
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import Trace

DEPTH = 4
"""A request stands within the export, its experiments, an experiment, and its requests."""
NS_S = 1e-9


def sniff(head: bytes) -> bool:
    """Whether a file is an export with experiments."""
    first = first_table(head)
    return "experiments" in first and (b'"request_inputs"' in head or b'"response_timestamps"' in head or "service_kind" in first)


def read(source: Source, reading: Reading) -> Trace:
    """The requests of all experiments; one without a response failed and is set apart."""
    rows = Rows(source, reading, "genai_perf", in_lines=False)
    pieces = Pieces(reading)
    for record in elements(source, DEPTH):
        found = table_of(record.data)
        if found is None or ("response_timestamps" in found and whole(found.get("timestamp")) is None):
            rows.damaged(record.number, record.line)
        elif "response_timestamps" in found:
            if found.get("success") is False or not found["response_timestamps"]:
                rows.set_apart("failed", record.number)
            else:
                rows.add(record.number, _request(found, reading, pieces, record.number), record.line)
    return trace_of(rows)


def _request(record: Table, reading: Reading, pieces: Pieces, number: int) -> Request:
    start, ends = whole(record.get("timestamp")) or 0, record["response_timestamps"]
    first, last = (whole(ends[place]) if isinstance(ends, list) else None for place in (0, -1))
    body = _payload(at(record, "request_inputs.payload"))
    prompt = prompt_of(body, {}, pieces)
    answers = list(_answers(record.get("response_outputs")))
    texts = [text for answer in answers for text in _texts(answer)]
    output = pieces.ids("".join(texts))
    said_prompt, said_output, cached = _usage(answers)
    return Request(
        arrival_ns=start,
        input_tokens=said_prompt if said_prompt is not None else None if prompt is None else len(prompt.ids),
        output_tokens=said_output if said_output is not None else len(output),
        prompt=as_long(prompt, said_prompt, number),
        output=output,
        exact=pieces.exact,
        cached_tokens=cached,
        ttft_s=None if first is None else seconds((first - start) * NS_S),
        e2e_s=None if last is None else seconds((last - start) * NS_S),
        group=at(body, reading.group or "model"),
    )


def _usage(answers: list[Table]) -> tuple[int | None, int | None, int | None]:
    """Counts of the first response that states them: in a stream the last one does, if any."""
    stated = (usage_of({}, answer) for answer in answers)
    return next((found for found in stated if found[0] is not None), (None, None, None))


def _payload(value: object) -> Table:
    if isinstance(value, str):
        return table_of(value.encode("utf-8", "surrogatepass")) or {}
    return table(value)


def _answers(outputs: object) -> Iterator[Table]:
    """The responses of a stream, each line of it an event, or the one response."""
    for output in map(table, outputs if isinstance(outputs, list) else []):
        words = output.get("response")
        for line in words.split("\n") if isinstance(words, str) else []:
            found = table_of(line.strip().removeprefix("data:").encode("utf-8", "surrogatepass"))
            if found is not None:
                yield found


def _texts(answer: Table) -> Iterator[str]:
    choices = answer.get("choices")
    for choice in map(table, choices[:1] if isinstance(choices, list) else []):
        for holder in (table(choice.get("delta")), table(choice.get("message"))):
            yield from content_texts(holder.get("reasoning_content"))
            yield from content_texts(holder.get("content"))
        yield from content_texts(choice.get("text"))
