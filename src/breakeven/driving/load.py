"""What a load is: so many clients that each wait for their answer, prompts of exact lengths, and where it ends."""

from __future__ import annotations

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
    vocabulary: int = VOCABULARY
    silence_s: float = 120.0
    """A stream that says nothing for so long is given up."""
    placed: bool = False
    """Whether each client takes the slot of its own number, so that those that run are neighbours."""


def prompt_ids(load: Load, number: int) -> tuple[int, ...]:
    """The token ids of a request's prompt: no two requests of a salt have a beginning in common.

    >>> load = Load(concurrency=1, prompt_tokens=3, output_tokens=1, requests=1, seconds=1.0)
    >>> first, second = prompt_ids(load, 0), prompt_ids(load, 1)
    >>> len(first), first[0] == second[0]
    (3, False)
    """
    random, low = Random(f"{load.salt}/{number}"), min(FIRST_ID, load.vocabulary // 4)
    return tuple(random.randrange(low, max(load.vocabulary, low + 1)) for _ in range(load.prompt_tokens))


def prompt_text(load: Load, number: int) -> str:
    """The same for engines that take text only: single letters, each one token of most vocabularies.

    >>> len(prompt_text(Load(concurrency=1, prompt_tokens=5, output_tokens=1, requests=1, seconds=1.0), 0).split())
    5
    """
    drawn = prompt_ids(load, number)
    return " ".join(LETTERS[each % len(LETTERS)] for each in drawn)
