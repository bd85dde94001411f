"""What a load told, as rows of a fit: a step for each point, a first token for each prompt that was alone, and curves over width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from breakeven.calibration.calibrate import CalibrationRows
from breakeven.calibration.points import MeasuredPoint, points_of
from breakeven.driving.grid import Visit
from breakeven.driving.outcome import Request
from breakeven.driving.tour import Tour, kept
from breakeven.errors import BreakevenError
from breakeven.measured.curves import curves_of
from breakeven.measured.impossible import floor_at
from breakeven.measured.row import Skipped
from breakeven.measured.run import Run
from breakeven.measured.step import Step
from breakeven.measured.steps import runs_of_steps
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Workload


def rows_of(tour: Tour, d: Deployment, source: str) -> CalibrationRows:
    """Rows of a tour on a deployment; a point that no such device can have done, or that never ran together, is left out and named."""
    if tour.placed:
        d = replace(d, engine=replace(d.engine, kv_unified=True))  # neighbouring slots are one pass, as one cache is
    points, never = points_of(tour)
    left = [_left(one, Message("driving.never_together", {"width": one.concurrency, "context": one.context})) for one in never]
    steps: list[Step] = []
    for point in points:
        reason = _impossible(point, d)
        if reason is None:
            steps.append(_step(point, d, source, one_pass=tour.placed))
        else:
            left.append(_left(point.visit, reason))
    return CalibrationRows(
        runs=(*_first_tokens(tour, d), *runs_of_steps(steps)), curves=tuple(curves_of(_level(steps))), left_out=tuple(left)
    )


def _step(point: MeasuredPoint, d: Deployment, source: str, *, one_pass: bool) -> Step:
    width, context = width_of(point.visit, d), point.context_tokens
    name = _name(point.visit)
    return Step(
        id=name,
        where=name,
        deployment=replace(d, workload=Workload(batch=width, context_tokens=context)),
        width=width,
        context_tokens=context,
        step_s=point.step_s,
        spread=point.spread,
        one_pass=one_pass,
        source=source,
    )


def width_of(visit: Visit, d: Deployment) -> float:
    """Sequences that step together: streams are dealt out over replicas, each of which steps by itself."""
    return max(visit.concurrency / d.replicas, 1.0)


def _name(visit: Visit) -> str:
    return f"{visit.concurrency}x{visit.context}"


def _left(visit: Visit, reason: Message) -> Skipped:
    return Skipped(id=_name(visit), where=_name(visit), reason=reason, fields={})


def _impossible(point: MeasuredPoint, d: Deployment) -> Message | None:
    """A step below the floor of its own bytes and FLOP: then the device, the model or its formats are not what was said."""
    try:
        _, floor = floor_at(d, width_of(point.visit, d), point.context_tokens)
    except BreakevenError as error:
        return error.message
    return None if point.step_s >= floor else Message("doubt.below_roofline", {"tpot": point.step_s, "floor": floor})


def _level(steps: Sequence[Step]) -> list[Step]:
    """Steps that were meant for one context, at the mean of the contexts they had: what one curve holds for."""
    meant: dict[str, list[Step]] = {}
    for step in steps:
        meant.setdefault(step.id.partition("x")[2], []).append(step)
    return [
        replace(step, context_tokens=round(float(np.mean([one.context_tokens for one in of])), 1)) for of in meant.values() for step in of
    ]


def _first_tokens(tour: Tour, d: Deployment) -> list[Run]:
    """A row of each length of prompt that was sent alone: medians of its rounds."""
    alone: dict[int, list[Request]] = {}
    for one in kept(tour.visited):
        if one.visit.concurrency == 1:
            done = [request for request in one.driven.requests if request.end == "done" and request.tpot_s is not None]
            for request in done:
                alone.setdefault(request.counted_prompt, []).append(request)
    return [_run(length, requests, d) for length, requests in sorted(alone.items())]


def _run(length: int, requests: Sequence[Request], d: Deployment) -> Run:
    group = f"{d.model.name} | {d.hardware.device.name} | {d.engine.name}"
    name = f"1x{length}"
    output = float(np.median([one.output_tokens for one in requests]))
    return Run(
        id=name,
        where=name,
        deployment=replace(d, workload=Workload(input_tokens=float(length), output_tokens=output, concurrency=1.0)),
        group=group,
        batch_of_runs=group,
        tpot_s=float(np.median([one.tpot_s for one in requests if one.tpot_s is not None])),
        ttft_s=float(np.median([one.ttft_s for one in requests if one.ttft_s is not None])),
    )
