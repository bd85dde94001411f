"""llama.cpp's ``/slots``: how many tokens each slot holds, which its metrics no longer tell (PR 13660)."""

from __future__ import annotations

import msgspec

from breakeven.adapter import Alias
from breakeven.endpoint import Endpoint, get
from breakeven.errors import BreakevenError
from breakeven.observation.page import Page, Reading

ENGINE, PATH = "llamacpp", "/slots"
MOST_BYTES = 4 * 2**20
MOST_TOKENS = 2**40
"""Of a slot; what is beyond is no count."""
HELD = Alias(family=PATH, sense="context_slots")


def beside(endpoint: Endpoint, page: Page) -> tuple[Reading, ...]:
    """What the slots hold while one of them works; nothing of another engine, or where the server does not show its slots."""
    busy = any(one.quantity == "running" and one.value > 0.0 for one in page.readings)
    if page.engine != ENGINE or not busy:
        return ()
    try:
        said = msgspec.json.decode(get(endpoint, PATH, most_bytes=MOST_BYTES, accept="application/json").body)
    except (BreakevenError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    tokens = held(said)
    return (Reading(quantity="decode_context_tokens", alias=HELD, value=float(tokens)),) if tokens else ()


def held(said: object) -> int:
    """Tokens that the slots which decode hold together."""
    return sum(map(_held, said)) if isinstance(said, list) else 0


def _held(slot: object) -> int:
    """Tokens in a slot that decodes: ``n_prompt_tokens`` has the output too, and before the first of it is the last request's."""
    if not isinstance(slot, dict) or slot.get("is_processing") is not True:
        return 0
    following = slot.get("next_token")
    following = following[0] if isinstance(following, list) and following else following
    decoded = following.get("n_decoded") if isinstance(following, dict) else None
    tokens = slot.get("n_prompt_tokens")
    if not decoded or not isinstance(tokens, int) or isinstance(tokens, bool):
        return 0
    return tokens if 0 <= tokens <= MOST_TOKENS else 0
