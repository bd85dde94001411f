"""What a benchmark's own file becomes: a load and its times, or a pinned step, before any name is looked up; and how a reader says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from breakeven.measured.step_forms import StepReading
from breakeven.messages import Message

Fields = Mapping[str, Any]
LARGEST = 1e300
PLAIN = 1.01
"""Tokens a round up to which nothing was drafted."""
MS = 1e-3


@dataclass(frozen=True, kw_only=True)
class Record:
    """One object of JSON, or one row of a table, with its place."""

    where: str
    fields: Fields


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Requests that were served, and their mean times."""

    model: str
    device: str
    engine: str
    version: str
    concurrency: float
    """Requests in flight, on average."""
    input_tokens: float
    output_tokens: float
    tpot_s: float
    """(last token − first token)/(tokens − 1) of a request, the mean over requests."""
    ttft_s: float | None = None
    weights: str = ""
    cache: str = ""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    eager: bool = False
    prefix_hit_rate: float | None = None
    """Share of the prompt tokens that came from the prefix cache, where it is told."""
    date: str = ""

    @property
    def width(self) -> float:
        """Sequences that the engine has to be able to run."""
        return self.concurrency


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one record says: a measurement, or why it is none."""

    where: str
    id: str
    measured: Loop | StepReading | None = None
    refused: Message | None = None
    notes: tuple[Message, ...] = ()
    """What was taken otherwise than it is written, and what a reader should know."""
    curve_context: float | None = None
    """Of steps whose contexts differ a little and that are one curve all the same: the context that it is said to hold for."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A tool's file: how it is recognised by its first record, and how all of its records are read."""

    recognises: Callable[[Fields], bool]
    read: Callable[[Sequence[Record]], Iterable[Outcome]]


def at(fields: Fields, path: str) -> Any:
    """What stands at a path of names joined by points; None where there is nothing."""
    found: Any = fields
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def figure(fields: Fields, *paths: str) -> float | None:
    """The first finite number of several paths, also where it is written as text; a truth value is none.

    >>> figure({"a": "inf", "b": {"c": " 2.5 "}}, "a", "b.c")
    2.5
    """
    for path in paths:
        value = at(fields, path)
        if isinstance(value, str):
            value = _number(value)
        if is_number(value):
            return float(value)
    return None


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that can be counted with: no truth value, finite, and not a whole number beyond all floats.

    >>> is_number(2), is_number(True), is_number(10**400), is_number(float("nan"))
    (True, False, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _number(text: str) -> float | None:
    try:
        return float(text.strip())
    except ValueError:
        return None


def milliseconds(fields: Fields, *paths: str) -> float | None:
    """A time in seconds that is written in milliseconds; one that is not above 0 was not measured.

    >>> milliseconds({"mean_tpot_ms": 12.5}, "mean_tpot_ms"), milliseconds({"mean_tpot_ms": 0}, "mean_tpot_ms")
    (0.0125, None)
    """
    found = figure(fields, *paths)
    return found * MS if found is not None and found > 0 else None


def word(fields: Fields, *paths: str) -> str:
    """The first text of several paths that is not empty."""
    found = (at(fields, path) for path in paths)
    return next((each.strip() for each in found if isinstance(each, str) and each.strip()), "")


def refused(record: Record, key: str, **values: object) -> Outcome:
    """A record that is no measurement of a step."""
    return Outcome(where=record.where, id=record.where, refused=Message(f"bench.{key}", values))
