"""llama.cpp's ``/slots``: which slots decode, how much each holds and has written so far; its metrics tell none of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from breakeven.adapter import Alias
from breakeven.endpoint import Endpoint, get
from breakeven.errors import BreakevenError
from breakeven.observation.page import Page, Reading

ENGINE, PATH = "llamacpp", "/slots"
MOST_BYTES = 4 * 2**20
MOST_TOKENS = 2**40
"""Of a slot; what is beyond is no count."""
DECODING = Alias(family=PATH, sense="decoding_slots")
HELD = Alias(family=PATH, sense="context_slots")
WRITTEN = Alias(family=PATH, sense="written_slots")


def beside(endpoint: Endpoint, page: Page) -> tuple[Reading, ...]:
    """What the slots tell while one of them works; nothing of another engine, or where the server does not show its slots."""
    busy = any(one.quantity == "running" and one.value > 0.0 for one in page.readings)
    if page.engine != ENGINE or not busy:
        return ()
    try:
        said = msgspec.json.decode(get(endpoint, PATH, most_bytes=MOST_BYTES, accept="application/json").body)
    except (BreakevenError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    return tuple(told(said))


def told(said: object) -> Iterator[Reading]:
    """How many slots decode, what they have written so far and, where the build tells it of all of them, what they hold."""
    slots = [one for one in said if isinstance(one, dict) and isinstance(one.get("is_processing"), bool)] if isinstance(said, list) else []
    if not slots:
        return
    decoding = [slot for slot in slots if _written(slot)]
    yield Reading(quantity="running_decode", alias=DECODING, value=float(len(decoding)))
    yield Reading(quantity="decode_output_tokens", alias=WRITTEN, value=float(sum(map(_written, decoding))))
    if all(map(_held, decoding)):
        yield Reading(quantity="decode_context_tokens", alias=HELD, value=float(sum(map(_held, decoding))))


def _written(slot: Mapping[str, object]) -> int:
    """Tokens of its answer so far; 0 of a slot that does not decode: before the first of them its prompt is read, or waits to be."""
    following = slot.get("next_token")
    following = following[0] if isinstance(following, list) and following else following
    return _count(following.get("n_decoded")) if slot.get("is_processing") is True and isinstance(following, dict) else 0


def _held(slot: Mapping[str, object]) -> int:
    """Prompt and answer of a slot that decodes; before the first token of an answer it is the last request's."""
    return _count(slot.get("n_prompt_tokens"))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS else 0
