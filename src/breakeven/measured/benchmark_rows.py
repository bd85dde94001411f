"""What a benchmark tells, on a deployment: names looked up, and refused where no such deployment can have measured it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from breakeven.errors import BreakevenError
from breakeven.measured.benchmark import Loop, Outcome
from breakeven.measured.impossible import impossible_run
from breakeven.measured.row import NotUnderstood, Skipped
from breakeven.measured.run import Run
from breakeven.measured.step import Step
from breakeven.measured.step_forms import StepReading
from breakeven.measured.steps import Stated, deployment_of, stepped
from breakeven.measured.twins import doubted
from breakeven.messages import Message
from breakeven.spec.check import check_deployment
from breakeven.spec.workload import Workload


@dataclass(frozen=True, kw_only=True)
class BenchmarkRows:
    """Measurements of benchmarks, understood."""

    runs: tuple[Run, ...] = ()
    steps: tuple[Step, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[tuple[str, Message], ...] = ()
    """Place and note, of the rows that were taken."""


def rows_of(outcomes: Iterable[Outcome], stated: Stated) -> BenchmarkRows:
    """All outcomes as rows; what the user states stands before what a client guesses of the server."""
    runs, steps, skipped = list[Run](), list[Step](), list[Skipped]()
    notes = list[tuple[str, Message]]()
    for outcome in outcomes:
        try:
            if outcome.refused is not None:
                raise NotUnderstood(outcome.refused)
            if outcome.measured is not None:
                _check_named(outcome.measured, stated)
            if isinstance(outcome.measured, Loop):
                runs.append(_run(outcome, outcome.measured, stated))
            elif outcome.measured is not None:
                steps.append(_step(outcome, outcome.measured, stated))
            notes += [(outcome.where, note) for note in outcome.notes]
        except NotUnderstood as error:
            skipped.append(Skipped(id=outcome.id, where=outcome.where, reason=error.message, fields={}))
    good, lost = _believed(runs)
    return BenchmarkRows(runs=tuple(good), steps=tuple(steps), skipped=(*skipped, *lost), notes=tuple(notes))


def _check_named(measured: Loop | StepReading, stated: Stated) -> None:
    """Refuse what nobody names, with the option that does."""
    for option, told in (
        ("--model", stated.model or measured.model),
        ("--hardware", stated.device or measured.device),
        ("--engine", stated.engine or measured.engine),
    ):
        if not told:
            raise NotUnderstood(Message("bench.not_named", {"option": option}))


def _run(outcome: Outcome, loop: Loop, stated: Stated) -> Run:
    d = deployment_of(replace(loop, device=stated.device or loop.device, engine=stated.engine or loop.engine), stated)
    load = Workload(input_tokens=loop.input_tokens, output_tokens=loop.output_tokens, concurrency=max(loop.concurrency, 1.0))
    d = replace(d, workload=load)
    if loop.prefix_hit_rate is not None:
        d = replace(d, engine=replace(d.engine, enable_prefix_caching=True), workload=replace(load, prefix_hit_rate=loop.prefix_hit_rate))
    try:
        check_deployment(d)
    except BreakevenError as error:
        raise NotUnderstood(error.message) from None
    group = f"{d.model.name} | {d.hardware.device.name} | {d.engine.name}"
    made = f"{group} | {d.engine.version} | {loop.date}"
    return Run(id=outcome.id, where=outcome.where, deployment=d, group=group, batch_of_runs=made, tpot_s=loop.tpot_s, ttft_s=loop.ttft_s)


def _step(outcome: Outcome, read: StepReading, stated: Stated) -> Step:
    told = replace(read, device=stated.device or read.device, engine=stated.engine or read.engine)
    return replace(stepped(told, outcome.where, outcome.id, stated), curve_context=outcome.curve_context)


def _believed(runs: list[Run]) -> tuple[list[Run], list[Skipped]]:
    """Runs that nothing speaks against, and the others with what does."""
    good, lost = list[Run](), list[Skipped]()
    for run in doubted([replace(run, doubt=impossible_run(run)) for run in runs]):
        if run.doubt is None:
            good.append(run)
        else:
            lost.append(Skipped(id=run.id, where=run.where, reason=run.doubt, fields={}))
    return good, lost
