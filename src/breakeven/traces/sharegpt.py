"""Conversations as ShareGPT and chat data sets hold them: every answer is a request whose prompt is all that was said before."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.reading import Reading
from breakeven.reading.chat import Table, content_texts, first_of, table
from breakeven.reading.finish import trace_of
from breakeven.reading.pieces import Pieces
from breakeven.reading.records import Record, first_table, is_lines, records, table_of
from breakeven.reading.request import Request, at
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import Ids, Trace

TURNS = ("conversations", "conversation", "messages")
ANSWERS = {"gpt", "assistant", "chatgpt", "bing", "bard", "model"}
LOGGED = {"model", "choices", "response", "usage", "prompt_token_ids", "custom_id"}
"""What a log has and a data set has not."""


def sniff(head: bytes) -> bool:
    """Whether the first record holds the turns of a conversation."""
    first = first_table(head)
    if not LOGGED & set(first) and first.get("messages"):
        return True
    return bool({"conversations", "conversation"} & set(first)) and "input_length" not in first


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file, conversation after conversation; it has no times."""
    rows = Rows(source, reading, "sharegpt", in_lines=is_lines(source))
    pieces = Pieces(reading)
    for record in records(source):
        found = table_of(record.data)
        turns = None if found is None else first_of(found, TURNS)
        if found is None or not isinstance(turns, list):
            rows.damaged(record.number, record.line)
        else:
            _take(rows, record, found, list(_turns(turns, pieces)))
    return trace_of(rows)


def _turns(turns: list[object], pieces: Pieces) -> Iterator[tuple[str, Ids]]:
    """Who speaks, and the ids of what is said, each turn cut on its own so that what is repeated is cut alike."""
    for turn in map(table, turns):
        speaker = first_of(turn, ("from", "role"))
        texts = list(content_texts(first_of(turn, ("value", "content"))))
        if isinstance(speaker, str) and texts:
            yield speaker, pieces.joined([pieces.ids(text) for text in (speaker, *texts)])


def _take(rows: Rows, record: Record, found: Table, turns: list[tuple[str, Ids]]) -> None:
    answers = [place for place, (speaker, _) in enumerate(turns) if speaker in ANSWERS]
    if not answers or answers == [0]:
        rows.set_apart("no_answer", record.number)
    for place in answers:
        if place == 0:
            continue
        prompt = Pieces.joined([ids for _, ids in turns[:place]])
        answer = turns[place][1]
        rows.add(
            record.number,
            Request(
                input_tokens=len(prompt),
                output_tokens=len(answer),
                prompt=prompt,
                output=answer,
                exact=rows.reading.tokenizer is not None,
                session=record.number,
                group=at(found, rows.reading.group) if rows.reading.group else None,
            ),
            record.line,
        )
