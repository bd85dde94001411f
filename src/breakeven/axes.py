"""The axes a boundary is drawn along: how a deployment is moved on each, and how far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breakeven.advice import Axis
from breakeven.evaluator import Point
from breakeven.ledger.draft import method_of
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Acceptance
from breakeven.stats import Array

POINTS = 29
LONGEST_CONTEXT = 131_072


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
        return replace(d, workload=replace(w, batch=values, request_rate=None, concurrency=None))
    if axis == "request_rate":
        return replace(d, workload=replace(w, request_rate=values, batch=None, concurrency=None, context_tokens=None))
    if axis == "prefix_hit_rate":
        return replace(d, workload=replace(w, prefix_hit_rate=values))
    if axis == "acceptance_length":
        k = d.engine.speculative.num_speculative_tokens if d.engine.speculative is not None else None
        return replace(d, workload=replace(w, acceptance=Acceptance(length=values, k=k)))
    if axis == "output_tokens":
        return replace(d, workload=replace(w, output_tokens=values, context_tokens=None))
    if axis == "draft_tokens":
        spec = d.engine.speculative
        if spec is None:
            return d
        return replace(
            d,
            engine=replace(d.engine, speculative=replace(spec, num_speculative_tokens=int(np.asarray(values).item()), verify_tokens=None)),
        )
    return _with_context(d, values)


def _with_context(d: Deployment, context: Array | float) -> Deployment:
    """Mean cached tokens of a decoding sequence: the prompt is what is moved, the output stays."""
    w = d.workload
    if w.batch is not None and (w.input_tokens is None or w.output_tokens is None):
        return replace(d, workload=replace(w, context_tokens=context))
    output = np.asarray(_number(w.output_tokens))
    return replace(d, workload=replace(w, input_tokens=np.maximum(context - output / 2, 1.0), context_tokens=None, lengths=None))


def _number(value: object) -> float:
    from breakeven import stats

    return float(np.median(stats.median(value))) if value is not None else 0.0  # type: ignore[arg-type]


def grid(d: Deployment, point: Point, axis: Axis) -> Grid | None:
    """Where to look along an axis, from where the deployment stands; None where the axis means nothing here."""
    w = d.workload
    lengths = w.input_tokens is not None and w.output_tokens is not None
    here = _here(d, point)
    if axis == "batch":
        most = float(np.clip(np.median(point.room.fits_sequences), 2.0, 1024.0))
        return _log(axis, 1.0, max(most, 2.0), here["batch"])
    if axis == "context_tokens":
        longest = float(min(d.model.max_context or LONGEST_CONTEXT, LONGEST_CONTEXT))
        return _log(axis, min(128.0, longest / 2), longest, here["context_tokens"])
    if axis == "output_tokens":
        return _log(axis, 8.0, 8192.0, here["output_tokens"]) if lengths else None
    if axis == "request_rate":
        if point.demand.mode != "open" or point.max_request_rate is None:
            return None
        most = float(np.median(point.max_request_rate))
        return _log(axis, most / 300, most * 1.5, here["request_rate"])
    if axis == "prefix_hit_rate":
        return Grid(axis=axis, values=np.linspace(0.0, 0.98, POINTS), here=here["prefix_hit_rate"], logarithmic=False) if lengths else None
    spec = d.engine.speculative
    if spec is None:
        return None
    if axis == "acceptance_length":
        return Grid(
            axis=axis, values=np.linspace(1.01, spec.num_speculative_tokens + 1, POINTS), here=here["acceptance_length"], logarithmic=False
        )
    return Grid(axis=axis, values=np.arange(1.0, 11.0), here=float(spec.num_speculative_tokens), logarithmic=False)


def _here(d: Deployment, point: Point) -> dict[str, float]:
    rate = point.request_rate
    return {
        "batch": float(np.median(point.batch)),
        "context_tokens": float(np.median(point.demand.context_tokens)),
        "output_tokens": float(np.median(point.demand.output_tokens)) if point.demand.output_tokens is not None else 0.0,
        "request_rate": float(np.median(rate)) if rate is not None else 0.0,
        "prefix_hit_rate": float(np.median(point.demand.hit_rate)),
        "acceptance_length": float(np.median(point.tau)),
    }


def _log(axis: Axis, low: float, high: float, here: float) -> Grid:
    return Grid(axis=axis, values=np.geomspace(low, high, POINTS), here=here, logarithmic=True)


def methods_in_force(d: Deployment) -> str | None:
    """The draft method in force, for axes that belong to it."""
    return None if d.engine.speculative is None else method_of(d.engine.speculative)
