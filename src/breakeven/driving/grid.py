"""The points of a calibration: streams and contexts in a balanced order, each bounded, and all that they send counted beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from breakeven.errors import InputError

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
WIDEST = WIDTHS[-1]
"""Of the grid that is taken unless one is said."""
CONTEXTS = (128, 1024)
PROMPTS = (16, 256, 1536)
"""Prompts sent alone, for the time to their first token."""
ANSWER = 8
"""Tokens asked for behind such a prompt."""
ROUNDS = 3
SETTLE, STEPS = 4, 24
"""Steps let go by when all streams decode, and steps measured."""
CHUNK = 512
"""Prompt tokens of a step, where the engine does not tell: while others' prompts run, a stream takes a step for each such piece."""
SECONDS, TOTAL_SECONDS, TOKENS = 60.0, 900.0, 2_000_000


@dataclass(frozen=True, kw_only=True)
class Room:
    """What the engine has room for."""

    sequences: int
    """That run at one time."""
    tokens: int
    """Of one sequence, prompt and answer."""
    pool_tokens: float = float("inf")
    """Of all together."""
    step_tokens: int = CHUNK
    fine: int = 1
    """Widths up to here are all taken at the shortest context: an engine's kernels may cut rows into small tiles."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Where the load ends, whatever the engine does."""

    requests: int | None = None
    """Of one point."""
    seconds: float = SECONDS
    """Of one point, all its rounds together."""
    total_seconds: float = TOTAL_SECONDS
    tokens: int = TOKENS
    """Of prompts and answers, all points together."""


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One round of a point: so many streams that start together."""

    concurrency: int
    context: int
    """That the steps are meant to have in the mean; of a prompt sent alone: its length."""
    prompt_tokens: int
    output_tokens: int
    seconds: float
    alone: bool = False
    """Whether it is sent for its first token."""
    warm_up: bool = False

    @property
    def tokens(self) -> int:
        """Of prompts and answers."""
        return self.concurrency * (self.prompt_tokens + self.output_tokens)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All visits in their order, and where they end."""

    visits: tuple[Visit, ...]
    bounds: Bounds
    left_out: tuple[tuple[int, int], ...] = ()
    """Points that do not fit the engine: streams and context."""

    @property
    def points(self) -> int:
        """Different points that are measured."""
        return len({(v.concurrency, v.context, v.alone) for v in self.visits if not v.warm_up})

    @property
    def requests(self) -> int:
        """Requests of all visits."""
        return sum(visit.concurrency for visit in self.visits)

    @property
    def input_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(visit.concurrency * visit.prompt_tokens for visit in self.visits)

    @property
    def output_tokens(self) -> int:
        """Tokens of all answers."""
        return sum(visit.concurrency * visit.output_tokens for visit in self.visits)

    @property
    def counted(self) -> dict[str, float]:
        """What it sends, for whoever has to agree to it."""
        return {
            "points": self.points,
            "requests": self.requests,
            "input": self.input_tokens,
            "output": self.output_tokens,
            "seconds": self.seconds,
        }

    @property
    def seconds(self) -> float:
        """The longest that it can take."""
        return min(self.bounds.total_seconds, sum(visit.seconds for visit in self.visits))


def plan(widths: Sequence[int], contexts: Sequence[int], prompts: Sequence[int], room: Room, bounds: Bounds) -> Plan:
    """Visits of every point that fits: one to warm up, then each point once a round, the order turned round from one round to the next."""
    chosen = tuple(dict.fromkeys(widths)) or _widths(room)
    asked = tuple(dict.fromkeys(contexts)) or CONTEXTS
    fine = chosen if widths else tuple(sorted({*chosen, *range(1, min(room.fine, room.sequences, WIDEST) + 1)}))
    points = [(width, context) for context in asked for width in (fine if context == min(asked) else chosen)]
    rounds = _rounds(chosen, bounds)
    found = {point: _visit(*point, room, bounds.seconds / rounds) for point in points}
    visits = [visit for visit in found.values() if visit is not None]
    if not visits:
        raise InputError("drive_no_point", sequences=room.sequences, tokens=room.tokens)
    alone = [_alone(length, bounds.seconds / rounds) for length in dict.fromkeys(prompts) if length + ANSWER <= room.tokens]
    once = [*visits, *alone]
    ordered = [visit for turn in range(rounds) for visit in (once if turn % 2 == 0 else reversed(once))]
    whole = Plan(
        visits=(_warm(visits), *ordered),
        bounds=bounds,
        left_out=tuple(point for point, visit in found.items() if visit is None),
    )
    if whole.input_tokens + whole.output_tokens > bounds.tokens:
        raise InputError("drive_tokens", tokens=whole.input_tokens + whole.output_tokens, most=bounds.tokens)
    return whole


def _widths(room: Room) -> tuple[int, ...]:
    """Doubling, to what the engine serves at most: beyond the widest point nothing is known of the steps' own staircase.

    >>> _widths(Room(sequences=12, tokens=2048)), _widths(Room(sequences=256, tokens=2048))
    ((1, 2, 4, 8, 12), (1, 2, 4, 8, 16, 32, 64))
    """
    widest = min(room.sequences, WIDEST)
    return (*(width for width in WIDTHS if width < widest), widest)


def _rounds(widths: Sequence[int], bounds: Bounds) -> int:
    """How often each point is visited: a round of the widest takes as many requests as it has streams."""
    if bounds.requests is None:
        return ROUNDS
    if bounds.requests < max(widths):
        raise InputError("drive_requests", requests=bounds.requests, width=max(widths))
    return min(ROUNDS, bounds.requests // max(widths))


def _visit(width: int, context: int, room: Room, seconds: float) -> Visit | None:
    """A point's visit: the prompt is shorter than the context by half of what is written while it is measured; None: no room."""
    behind = ceil(width * context / min(room.step_tokens, CHUNK)) if width > 1 else 0
    output = 1 + behind + SETTLE + STEPS
    prompt = max(context - output // 2, 1)
    if width > room.sequences or prompt + output > room.tokens or width * (prompt + output) > room.pool_tokens:
        return None
    return Visit(concurrency=width, context=context, prompt_tokens=prompt, output_tokens=output, seconds=seconds)


def _alone(length: int, seconds: float) -> Visit:
    return Visit(concurrency=1, context=length, prompt_tokens=length, output_tokens=ANSWER, seconds=seconds, alone=True)


def _warm(visits: Sequence[Visit]) -> Visit:
    """The widest point with the shortest context, run once before anything is kept."""
    widest = max(visits, key=lambda one: (one.concurrency, -one.context))
    return Visit(**{**{name: getattr(widest, name) for name in Visit.__dataclass_fields__}, "warm_up": True})
