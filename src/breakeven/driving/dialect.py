"""How an engine is asked for a stream of tokens, and how it tells what came: one file of ``dialects/`` each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from breakeven import registry

OF_ENGINE: Mapping[str, str] = {"vllm": "completions", "trtllm": "completions", "sglang": "sglang", "llamacpp": "llamacpp", "tgi": "text"}
"""Engine of the catalogue to its dialect; any other is sent text, which all take."""
MOST_COUNTED = 2**40
"""Tokens of a request."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request to be written."""

    prompt: tuple[int, ...] | str
    output_tokens: int
    model: str
    slot: int | None = None
    """Where it is to run, of the engine's slots; None where the engine chooses, or cannot be told."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one event of a stream says; None where it does not say it."""

    total: int | None = None
    """Tokens put out since the request began."""
    new: int | None = None
    """Tokens of this event."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One way of asking."""

    name: str
    path: str
    takes_ids: bool
    places: bool = field(default=False, kw_only=True)
    """Whether a request can say which slot it is to run in."""
    body: Callable[[Ask], Mapping[str, object]]
    read: Callable[[Mapping[str, object]], Piece]


def dialect_of(engine: str) -> Dialect:
    """The dialect of an engine of the catalogue.

    >>> dialect_of("llamacpp").path, dialect_of("sglang").takes_ids
    ('/completion', True)
    """
    found = registry.module("driving.dialects", OF_ENGINE.get(engine, "text")).DIALECT
    if not isinstance(found, Dialect):
        raise TypeError(engine)
    return found


def counted(said: Mapping[str, object], name: str) -> int | None:
    """A count that an event has under a name, None where it has none, or one that cannot be."""
    value = said.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNTED else None


def part(said: Mapping[str, object], name: str) -> Mapping[str, object]:
    """An object within an event, empty where there is none."""
    value = said.get(name)
    return value if isinstance(value, dict) else {}
