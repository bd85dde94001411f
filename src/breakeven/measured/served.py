"""Totals and means of a benchmark of requests as a load with its times: what every such tool gets wrong in its own words, once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from breakeven.measured.benchmark import PLAIN, Loop, Outcome, Record, refused
from breakeven.messages import Message

SURVIVED = 0.95
"""Below this share of requests served the means are of those that survived."""
REACHED = 0.85
"""A mean of requests in flight below this share of what was asked for: the load was not that."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """What a tool tells of a run; None where it does not."""

    model: str = ""
    engine: str = ""
    version: str = ""
    date: str = ""
    asked: float | None = None
    """Requests that were sent."""
    completed: float | None = None
    duration_s: float | None = None
    concurrency: float | None = None
    """Most requests in flight at once, as asked for."""
    mean_in_flight: float | None = None
    """As the tool measured it."""
    request_rate: float | None = None
    """Requests a second that were served."""
    input_tokens: float | None = None
    output_tokens: float | None = None
    tpot_s: float | None = None
    ttft_s: float | None = None
    e2e_s: float | None = None
    tokens_a_round: float | None = None
    """Where the server drafted: with the bonus token."""
    accepted: float | None = None
    """Share of the drafted tokens that were accepted."""
    random_prompts: bool = False
    notes: tuple[Message, ...] = ()
    prefix_hit_rate: float | None = None
    weights: str = ""
    cache: str = ""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    eager: bool = False


def outcome(record: Record, run: Served) -> Outcome:
    """A run as a row of a calibration, or why it is none."""
    wrong = _wrong(record, run)
    if wrong is not None:
        return wrong
    load = in_flight(run)
    if load is None:
        return refused(record, "no_load")
    name = record.where
    measured = Loop(
        model=run.model,
        device="",
        engine=run.engine,
        version=run.version,
        concurrency=load,
        input_tokens=run.input_tokens or 0.0,
        output_tokens=run.output_tokens or 0.0,
        tpot_s=run.tpot_s or 0.0,
        ttft_s=run.ttft_s,
        weights=run.weights,
        cache=run.cache,
        tensor_parallel=run.tensor_parallel,
        pipeline_parallel=run.pipeline_parallel,
        eager=run.eager,
        prefix_hit_rate=run.prefix_hit_rate,
        date=run.date,
    )
    return Outcome(where=record.where, id=name, measured=measured, notes=(*run.notes, *_notes(run, load)))


def _wrong(record: Record, run: Served) -> Outcome | None:
    """Why a run tells of no step: the first reason that applies."""
    if run.completed is not None and run.completed < 1:
        return refused(record, "none_completed")
    if run.asked and run.completed is not None and run.completed < SURVIVED * run.asked:
        return refused(record, "survivors", completed=run.completed, asked=run.asked)
    if run.tokens_a_round is not None and run.tokens_a_round > PLAIN:
        rate = -1.0 if run.accepted is None else run.accepted
        key = "drafted_random" if run.random_prompts else "drafted" if run.accepted is None else "drafted_rate"
        return refused(record, key, length=run.tokens_a_round, rate=rate)
    if not run.input_tokens or not run.output_tokens or run.input_tokens < 0 or run.output_tokens < 0:
        return refused(record, "no_lengths")
    if run.tpot_s is None or run.tpot_s <= 0 or run.output_tokens < 2:
        return refused(record, "no_tpot")
    return None


def in_flight(run: Served) -> float | None:
    """Requests in flight: as asked for where so many were kept busy, else as measured, else by Little's law (rate × time in the system)."""
    mean = _little(run) if run.mean_in_flight is None else run.mean_in_flight
    if run.concurrency and (mean is None or REACHED * run.concurrency <= mean):
        return run.concurrency
    return mean if mean is not None and mean > 0 else None


def _little(run: Served) -> float | None:
    """Mean requests in flight."""
    rate = run.request_rate
    if run.completed and run.duration_s and run.duration_s > 0:
        rate = run.completed / run.duration_s
    time = run.e2e_s
    if time is None and run.tpot_s is not None and run.ttft_s is not None and run.output_tokens:
        time = run.ttft_s + run.tpot_s * (run.output_tokens - 1)
    return rate * time if rate and time and time > 0 else None


def _notes(run: Served, load: float) -> Iterator[Message]:
    if run.asked and run.completed is not None and run.completed < run.asked:
        yield Message("bench.some_survived", {"completed": run.completed, "asked": run.asked})
    if run.concurrency and load < run.concurrency:
        if run.asked and run.asked < run.concurrency:
            yield Message("bench.fewer_than_streams", {"requests": run.asked, "asked": run.concurrency, "mean": load})
        else:
            yield Message("bench.not_reached", {"asked": run.concurrency, "mean": load})
    elif not run.concurrency:
        yield Message("bench.open_loop", {"mean": load})
