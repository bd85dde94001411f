"""What chat-completion requests and responses hold: prompts and outputs as token ids, counts, and none of their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from breakeven.reading.pieces import Pieces, fitted, scaled
from breakeven.reading.request import Tokens, at, count
from breakeven.trace import Ids

PROMPT_IDS = ("prompt_token_ids", "input_token_ids", "input_ids")
OUTPUT_IDS = ("token_ids", "output_token_ids", "completion_token_ids", "response_token_ids", "output_ids")
Table = Mapping[str, Any]
NOTHING: Table = {}


@dataclass(frozen=True, kw_only=True)
class Said:
    """Token ids of a prompt or of an output, and whether they are the engine's or a tokenizer's."""

    ids: Tokens
    exact: bool
    logged: bool = False
    """Whether they stood in the log, chat template and all."""


def table(value: object) -> Table:
    """A table, or an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else NOTHING


def first_of(record: Table, names: Sequence[str]) -> Any:
    """The value of the first name that has one; names may be dotted."""
    return next((found for name in names if (found := at(record, name)) is not None), None)


def token_ids(value: object) -> list[int] | None:
    """A list of token ids, or none where it is something else."""
    if isinstance(value, list) and value and all(type(name) is int and 0 <= name < 2**31 for name in value):
        return value
    return None


def prompt_of(body: Table, response: Table, pieces: Pieces) -> Said | None:
    """The prompt of a request: ids where they are logged, else messages or text as they are cut."""
    for record in (body, response):
        logged = token_ids(first_of(record, PROMPT_IDS))
        if logged is not None:
            return Said(ids=logged, exact=True, logged=True)
    plain = token_ids(body.get("prompt"))
    if plain is not None:
        return Said(ids=plain, exact=True, logged=True)
    texts = list(_prompt_texts(body))
    return Said(ids=pieces.joined([pieces.ids(text) for text in texts]), exact=pieces.exact) if texts else None


def _prompt_texts(body: Table) -> Iterator[str]:
    if body.get("tools"):
        yield msgspec.json.encode(body["tools"]).decode()
    for name in ("system", "instructions"):
        if isinstance(body.get(name), str):
            yield body[name]
    for name in ("messages", "prompt", "input"):
        value = body.get(name)
        if isinstance(value, str):
            yield value
            return
        if isinstance(value, list) and value:
            for message in value:
                yield from message_texts(message)
            return


def message_texts(message: object) -> Iterator[str]:
    """The role and the text of a message, whatever its parts are; images and audio have none."""
    if isinstance(message, str):
        yield message
        return
    said = table(message)
    if isinstance(said.get("role"), str):
        yield said["role"]
    yield from content_texts(said.get("content"))
    if said.get("tool_calls"):
        yield msgspec.json.encode(said["tool_calls"]).decode()


def content_texts(content: object) -> Iterator[str]:
    """The text of a message's content: a string, or parts of which some are text."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            words = part if isinstance(part, str) else table(part).get("text")
            if isinstance(words, str):
                yield words


def output_of(record: Table, response: Table, pieces: Pieces) -> Said | None:
    """What was generated, from ids where they are logged, else from the first choice's text."""
    choices = response.get("choices")
    choice = table(choices[0]) if isinstance(choices, list) and choices else NOTHING
    for holder in (choice, response, record):
        logged = token_ids(first_of(holder, OUTPUT_IDS))
        if logged is not None:
            return Said(ids=logged, exact=True, logged=True)
    texts = [text for text in _output_texts(record, response, choice) if text]
    return Said(ids=pieces.joined([pieces.ids(text) for text in texts]), exact=pieces.exact) if texts else None


def _output_texts(record: Table, response: Table, choice: Table) -> Iterator[str]:
    message = table(choice.get("message"))
    for name in ("reasoning_content", "reasoning"):
        yield from content_texts(message.get(name))
    yield from content_texts(message.get("content"))
    if message.get("tool_calls"):
        yield msgspec.json.encode(message["tool_calls"]).decode()
    yield from content_texts(choice.get("text"))
    for item in response.get("output") or [] if isinstance(response.get("output"), list) else []:
        yield from content_texts(table(item).get("content"))
    for holder in (record, response):
        yield from content_texts(holder.get("completion"))
    yield from content_texts(record.get("response"))


def usage_of(record: Table, response: Table) -> tuple[int | None, int | None, int | None]:
    """Prompt tokens, generated tokens and those of the prompt that came from the cache, as far as they are logged."""
    usage = table(response.get("usage")) or table(record.get("usage")) or record
    prompt = count(first_of(usage, ("prompt_tokens", "input_tokens")))
    output = count(first_of(usage, ("completion_tokens", "output_tokens")))
    cached = count(first_of(usage, ("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "cached_tokens")))
    return prompt, output, cached


def as_long(said: Said | None, length: int | None, salt: int, pieces_per_token: float | None = None) -> Tokens | None:
    """The ids of a prompt; those cut from text, which lack the chat template at the least, made as many as the log counts."""
    if said is None or said.logged:
        return None if said is None else said.ids
    ids: Ids = said.ids  # type: ignore[assignment]  # what was not logged was cut here
    if pieces_per_token is not None and not said.exact:
        ids = scaled(ids, pieces_per_token)
    return fitted(ids, length, salt)
