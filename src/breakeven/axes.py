"""The axes a boundary is drawn along: how a deployment is moved on each, and how far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breakeven import stats
from breakeven.advice import Axis
from breakeven.demand import shape
from breakeven.judge import Arms
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Acceptance
from breakeven.stats import Array

POINTS = 29
SHORTEST_CONTEXT, LONGEST_CONTEXT = 128.0, 131_072
MOST_SEQUENCES = 1024.0
MOST_DRAFTED = 10


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Values to look at along an axis, and where the deployment stands."""

    axis: Axis
    values: Array
    here: float
    logarithmic: bool


def move(d: Deployment, axis: Axis, values: Array | float) -> Deployment:
    """The deployment at other values of one axis. ``batch`` pins it; ``request_rate`` solves each arm anew."""
    w = d.workload
    if axis == "batch":
        return replace(d, workload=replace(w, batch=values, request_rate=None, concurrency=None, arrivals=None))
    if axis == "request_rate":
        return replace(d, workload=replace(w, request_rate=values, batch=None, concurrency=None, context_tokens=None))
    if axis == "prefix_hit_rate":
        return replace(d, workload=replace(w, prefix_hit_rate=values, reuse=None))
    if axis == "acceptance_length":
        k = d.engine.speculative.num_speculative_tokens if d.engine.speculative is not None else None
        return replace(d, workload=replace(w, acceptance=Acceptance(length=values, k=k)))
    if axis == "output_tokens":
        return replace(d, workload=replace(w, output_tokens=values, context_tokens=None))
    if axis == "draft_tokens":
        return _with_drafted(d, int(np.asarray(values).item()))
    return _with_context(d, values)


def _with_drafted(d: Deployment, k: int) -> Deployment:
    """Chains of k drafted tokens; an acceptance that does not say at which k it was measured was measured at the one in force."""
    spec, accepted = d.engine.speculative, d.workload.acceptance
    if spec is None:
        return d
    if accepted is not None:
        accepted = replace(accepted, k=accepted.k or spec.num_speculative_tokens)
    chain = replace(spec, num_speculative_tokens=k, topk=1, verify_tokens=None)
    return replace(d, engine=replace(d.engine, speculative=chain), workload=replace(d.workload, acceptance=accepted))


def _with_context(d: Deployment, context: Array | float) -> Deployment:
    """Mean cached tokens of a decoding sequence: the prompt is what is moved; the output and the lengths' shape stay."""
    w = d.workload
    if w.batch is not None and (w.input_tokens is None or w.output_tokens is None):
        return replace(d, workload=replace(w, context_tokens=context))
    cross, square, _ = shape(w)
    return replace(d, workload=replace(w, input_tokens=np.maximum((context - _output(d) * square / 2) / cross, 1.0), context_tokens=None))


def _output(d: Deployment) -> float:
    """The output's median, 0 where the workload states none."""
    output = d.workload.output_tokens
    return 0.0 if output is None else float(np.median(stats.median(output)))


def grid(arms: Arms, axis: Axis) -> Grid | None:
    """Where to look along an axis, from where the deployment stands; None where the axis means nothing here."""
    d, point = arms.on, arms.point_on
    here = standing(arms, axis)
    lengths = d.workload.input_tokens is not None and d.workload.output_tokens is not None
    if axis == "batch":
        return _log(axis, 1.0, float(np.clip(np.median(point.room.fits_sequences), 2.0, MOST_SEQUENCES)), here)
    if axis == "context_tokens":
        longest = float(min(d.model.max_context or LONGEST_CONTEXT, LONGEST_CONTEXT))
        shortest = max(SHORTEST_CONTEXT, 1.0 + _output(d) * shape(d.workload)[1] / 2 if lengths else 0.0)
        if point.demand.mode == "pinned":
            longest = max(2 * shortest, min(longest, here * float(np.median(point.room.fits_sequences / point.batch))))
        return _log(axis, min(shortest, longest / 2), longest, here)
    if axis == "output_tokens":
        return _log(axis, 8.0, 8192.0, here) if lengths else None
    if axis == "request_rate":
        if point.demand.mode != "open" or point.max_request_rate is None:
            return None
        most = float(np.median(point.max_request_rate))
        return _log(axis, most / 300, most * 1.5, here)
    if axis == "prefix_hit_rate":
        return Grid(axis=axis, values=np.linspace(0.0, 0.98, POINTS), here=here, logarithmic=False) if lengths else None
    return _of_drafting(d, axis, here)


def _of_drafting(d: Deployment, axis: Axis, here: float) -> Grid | None:
    spec = d.engine.speculative
    if spec is None:
        return None
    if axis == "acceptance_length":
        values = np.linspace(1.01, spec.num_speculative_tokens + 1, POINTS)
        return Grid(axis=axis, values=values, here=here, logarithmic=False)
    return Grid(axis=axis, values=np.arange(1.0, MOST_DRAFTED + 1.0), here=here, logarithmic=False)


def standing(arms: Arms, axis: Axis) -> float:
    """Where the deployment stands on an axis: without the lever, but for the axes of drafting, which it has only with it."""
    w, off = arms.off.workload, arms.point_off if arms.fits_off else arms.point_on
    if axis == "batch":
        return float(np.median(off.batch))
    if axis == "context_tokens":
        return float(np.median(off.demand.context_tokens))
    if axis == "output_tokens":
        return _output(arms.off)
    if axis == "request_rate":
        return float(np.median(stats.median(w.request_rate))) if w.request_rate is not None else 0.0
    if axis == "prefix_hit_rate":
        return float(np.median(stats.median(w.prefix_hit_rate))) if w.prefix_hit_rate is not None else 0.0
    if axis == "acceptance_length":
        return float(np.median(arms.point_on.tau))
    return float(arms.point_on.rows - 1)


def _log(axis: Axis, low: float, high: float, here: float) -> Grid:
    return Grid(axis=axis, values=np.geomspace(low, high, POINTS), here=here, logarithmic=True)
