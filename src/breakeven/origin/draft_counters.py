"""Draft acceptance as an engine counts it, from a page of its metrics that was saved to a file (Prometheus text)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from breakeven.errors import InputError
from breakeven.exposition import page
from breakeven.exposition.gathered import Reading
from breakeven.exposition.places import Part
from breakeven.spec.workload import Acceptance

MOST_BYTES = 64 * 10**6


@dataclass(frozen=True, kw_only=True)
class DraftCounters:
    """What an engine counted since it started, over all its ranks."""

    path: str
    engine: str
    accepted_at: tuple[float, ...]
    """Accepted tokens by position, from the first; empty where the page has them in all only."""
    accepted: float
    drafted: float
    drafts: float
    """Rounds that drafted anything: what engines divide by."""
    rounds: float | None
    """All rounds, counted back from the tokens: generated − first tokens − accepted; None where the page does not tell.

    What was accepted past an end is counted and not generated, so that the rounds come out a little few.
    """
    length: float | None = None
    """Tokens a round, the bonus token included, where that is all the page has (SGLang's gauge)."""


def read_draft_counters(path: Path) -> DraftCounters:
    """The counters of speculation on a saved page; a page without any is refused."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError("metrics_too_large", path=str(path))
        body = path.read_bytes()
    except OSError as error:
        raise InputError("metrics_unreadable", path=str(path)) from error
    found = page.read(body, target=str(path))
    if len(found.models) > 1:
        raise InputError("metrics_models", path=str(path), models=", ".join(found.models))
    return _counters(str(path), found.engine or found.adapter, found.readings)


def _counters(path: str, engine: str, readings: Sequence[Reading]) -> DraftCounters:
    drafts, accepted = _sum(readings, "drafts"), _sum(readings, "accepted_tokens")
    at = [(int(one.split), one.value) for one in readings if one.quantity == "accepted_at" and one.split.isdecimal()]
    if at and accepted is None:
        accepted = sum(value for _, value in at)
    if not drafts or accepted is None:
        return _by_gauge(path, engine, readings)
    positions = range(max((position for position, _ in at), default=-1) + 1)
    tokens, answers = _sum(readings, "output_tokens"), _sum(readings, "generated_tokens", part="count")
    rounds = None if tokens is None or answers is None else tokens - answers - accepted
    return DraftCounters(
        path=path,
        engine=engine,
        accepted_at=tuple(sum(value for where, value in at if where == position) for position in positions),
        accepted=accepted,
        drafted=_sum(readings, "draft_tokens") or 0.0,
        drafts=drafts,
        rounds=rounds if rounds is not None and rounds >= drafts else None,
    )


def _by_gauge(path: str, engine: str, readings: Sequence[Reading]) -> DraftCounters:
    """Where a page counts no rounds or not what was accepted in them: the mean over its ranks of their gauge, if it has one."""
    lengths = [one.value for one in readings if one.quantity == "accept_length_gauge" and one.value >= 1]
    if not lengths:
        raise InputError("metrics_no_drafts", path=path)
    mean = sum(lengths) / len(lengths)
    return DraftCounters(path=path, engine=engine, accepted_at=(), accepted=0, drafted=0, drafts=0, rounds=None, length=mean)


def acceptance_of(counters: DraftCounters, method: str | None) -> Acceptance:
    """What the counters give, by position where they have it: over all rounds where the page tells them, else over drafts."""
    of = counters.rounds or counters.drafts
    if counters.length is not None:
        return Acceptance(length=counters.length, method=method)
    if counters.accepted_at:
        found = tuple(value / of for value in counters.accepted_at)
        return Acceptance(cumulative=found, k=len(found), method=method)
    return Acceptance(length=1.0 + counters.accepted / of, method=method)


def _sum(readings: Sequence[Reading], quantity: str, part: Part = "") -> float | None:
    """A counter over all its ranks; None where there is none."""
    values = [one.value for one in readings if one.quantity == quantity and one.part == part]
    return sum(values) if values else None
