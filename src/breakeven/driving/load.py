"""What a load is: so many clients that each wait for their answer, prompts of exact lengths, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

FIRST_ID = 1000
"""Special tokens and single bytes stand at the beginning of a vocabulary, or behind all others."""
VOCABULARY = 30_000
"""Taken where it is not known: what every model in use has."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, kw_only=True)
class Load:
    """A closed loop of ``concurrency`` clients, ended by requests or by seconds, whichever comes first."""

    concurrency: int
    prompt_tokens: int
    output_tokens: int
    requests: int
    """Requests that are sent in all."""
    seconds: float
    salt: str = "0"
    """What prompts are drawn from: another salt, other prompts."""
    shared_tokens: int = 0
    """Tokens at the beginning that all prompts have in common."""
    vocabulary: int = VOCABULARY
    silence_s: float = 120.0
    """A stream that says nothing for so long is given up."""


def prompt_ids(load: Load, number: int) -> tuple[int, ...]:
    """The token ids of a request's prompt: no two requests of a salt have a beginning in common but what is shared.

    >>> load = Load(concurrency=1, prompt_tokens=3, output_tokens=1, requests=1, seconds=1.0, shared_tokens=1)
    >>> first, second = prompt_ids(load, 0), prompt_ids(load, 1)
    >>> len(first), first[0] == second[0], first[1] == second[1]
    (3, True, False)
    """
    shared = _ids(Random(f"{load.salt}/shared"), min(load.shared_tokens, load.prompt_tokens), load.vocabulary)
    return (*shared, *_ids(Random(f"{load.salt}/{number}"), load.prompt_tokens - len(shared), load.vocabulary))


def prompt_text(load: Load, number: int) -> str:
    """The same for engines that take text only: single letters, each one token of most vocabularies.

    >>> len(prompt_text(Load(concurrency=1, prompt_tokens=5, output_tokens=1, requests=1, seconds=1.0), 0).split())
    5
    """
    drawn = prompt_ids(load, number)
    return " ".join(LETTERS[each % len(LETTERS)] for each in drawn)


def _ids(random: Random, count: int, vocabulary: int) -> Sequence[int]:
    low = min(FIRST_ID, vocabulary // 4)
    return [random.randrange(low, max(vocabulary, low + 1)) for _ in range(count)]
