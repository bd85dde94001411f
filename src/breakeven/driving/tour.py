"""A plan driven: one visit after another, within what all of them together may take, ended by the first failure or by Ctrl-C."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from breakeven.driving.client import run
from breakeven.driving.dialect import Dialect
from breakeven.driving.grid import Plan, Visit
from breakeven.driving.load import VOCABULARY, Load
from breakeven.driving.outcome import Driven
from breakeven.endpoint import Endpoint

SILENCE_S = 30.0
"""A stream is given up later than its round is over."""
Progress = Callable[[int, int, Visit], None]
"""Told before a visit: its place, how many there are, and the visit."""


@dataclass(frozen=True, kw_only=True)
class Visited:
    """A visit and what came of it."""

    visit: Visit
    driven: Driven


@dataclass(frozen=True, kw_only=True)
class Tour:
    """All visits that were made."""

    visited: tuple[Visited, ...]
    planned: int
    ended: str
    """``all_sent``, or why it ended before: ``seconds``, ``failed``, ``interrupted``."""
    seconds: float
    load_before: float | None
    """Mean number of running processes of our machine in the minute before it began."""
    load_after: float | None
    placed: bool = False
    """Whether streams ran in neighbouring slots."""

    @property
    def requests(self) -> int:
        """Requests sent."""
        return sum(len(one.driven.requests) for one in self.visited)

    @property
    def input_tokens(self) -> int:
        """Prompt tokens sent."""
        return sum(one.driven.prompt_tokens for one in self.visited)

    @property
    def output_tokens(self) -> int:
        """Tokens that came back."""
        return sum(one.driven.output_tokens for one in self.visited)

    @property
    def unseen_tokens(self) -> int:
        """The most that the engine may have put out for requests that were cut off, beyond what came back of them."""
        cut = (each for one in self.visited for each in one.driven.requests if each.end != "done")
        return sum(max(each.asked_tokens - each.output_tokens, 0) for each in cut)


def tour(
    endpoint: Endpoint,
    dialect: Dialect,
    plan: Plan,
    *,
    model: str = "",
    salt: str = "0",
    vocabulary: int = VOCABULARY,
    placed: bool = False,
    progress: Progress | None = None,
) -> Tour:
    """Drive a plan. Prompts of a salt are all different; another tour of the same engine takes another salt.

    ``placed``: streams run in neighbouring slots, so that a step is one pass.
    """
    visited: list[Visited] = []
    before, start, ended = machine_load(), perf_counter(), "all_sent"
    for place, visit in enumerate(plan.visits):
        left = plan.bounds.total_seconds - (perf_counter() - start)
        if left <= 0:
            ended = "seconds"
            break
        if progress is not None:
            progress(place, len(plan.visits), visit)
        load = replace(_load(visit, min(visit.seconds, left), f"{salt}/{place}", vocabulary), placed=placed)
        driven = run(endpoint, dialect, load, model=model)
        visited.append(Visited(visit=visit, driven=driven))
        if driven.ended in ("failed", "interrupted"):
            ended = driven.ended
            break
    return Tour(
        visited=tuple(visited),
        planned=len(plan.visits),
        ended=ended,
        seconds=perf_counter() - start,
        load_before=before,
        load_after=machine_load(),
        placed=placed,
    )


def _load(visit: Visit, seconds: float, salt: str, vocabulary: int) -> Load:
    return Load(
        concurrency=visit.concurrency,
        prompt_tokens=visit.prompt_tokens,
        output_tokens=visit.output_tokens,
        requests=visit.concurrency,
        seconds=seconds,
        salt=salt,
        vocabulary=vocabulary,
        silence_s=seconds + SILENCE_S,
    )


def machine_load() -> float | None:
    """The load of the last minute, where the system tells it."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def kept(visited: Sequence[Visited]) -> list[Visited]:
    """Without what only warmed the engine up."""
    return [one for one in visited if not one.visit.warm_up]
