"""Side comparisons that go with a lever: static batching, the next devices and mixtures, the schedule of k."""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from breakeven import catalog
from breakeven.evaluator import Point
from breakeven.judge import Arms
from breakeven.levers import speculation
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by

SHOWN = 3
LIKE = 2.0
"""A mixture is of like size when its parameters are within this factor."""
FEW = 4.0


def static_batching(d: Deployment, batch: float) -> float:
    """Upper bound of continuous over static batching: E[max of O over the batch]/E[O] at constant step time; 1 for one sequence.

    The expectation of the largest of b independent outputs, from the quantiles of the output lengths.
    """
    lengths = d.workload.lengths
    if lengths is None or len(lengths.output_quantiles) < 2 or batch <= 1:
        return 1.0
    q = np.asarray(lengths.output_quantiles)
    at = np.linspace(0.0, 1.0, len(q)) ** batch
    largest = float(((q[1:] + q[:-1]) / 2 * np.diff(at)).sum())
    return max(1.0, largest / lengths.mean_output)


@cache
def _devices() -> tuple[tuple[str, float], ...]:
    loaded = (catalog.load("hardware", name) for name in catalog.names("hardware"))
    return tuple(sorted(((d.name, d.bandwidth_bytes_per_s) for d in loaded), key=lambda pair: pair[1]))


def next_devices(d: Deployment) -> list[dict[str, object]]:
    """The next devices of the catalogue by bandwidth."""
    mine = d.hardware.device.bandwidth_bytes_per_s
    faster = [(name, bandwidth) for name, bandwidth in _devices() if bandwidth > mine * 1.05]
    return [{"device": name, "bandwidth_bytes_per_s": bandwidth, "bandwidth_factor": bandwidth / mine} for name, bandwidth in faster[:SHOWN]]


def like_mixtures(d: Deployment) -> list[dict[str, object]]:
    """Mixtures of experts of like size, which read fewer weights for a token at small batches."""
    if d.model.experts is not None:
        return []
    mine = d.model.parameters.total
    found = []
    for name in catalog.names("models"):
        model = catalog.load("models", name)
        total = model.parameters.total
        if model.experts is None or not mine / LIKE <= total <= mine * LIKE:
            continue
        active = total - model.parameters.experts * (1 - model.experts.top_k / model.experts.count)
        found.append((active / mine, {"model": name, "parameters": total, "active_parameters": active}))
    return [entry for _, entry in sorted(found, key=lambda pair: pair[0])[:SHOWN]]


def batching_extras(a: Arms, middle: Point) -> dict[str, object]:
    """Static batching beside continuous; under an effective batch of 4 with demand limiting, what would help instead."""
    batch = float(np.median(middle.batch))
    found: dict[str, object] = {"static_batching_upper_bound": static_batching(a.off, batch)}
    if batch < FEW and limited_by(middle) == "demand":
        found["next_devices_by_bandwidth"] = next_devices(a.off)
        found["mixtures_of_like_size"] = like_mixtures(a.off)
    return found


def extras(lever: str, a: Arms) -> dict[str, object]:
    """Fields of the advice that only this lever fills."""
    if lever == "batching":
        return {"extra": batching_extras(a, a.point_off)}
    if lever != "speculation":
        return {}
    method, _ = speculation.parse(a.setting)
    best, (low, high) = speculation.best_k(a.off, method)
    steps = speculation.schedule(a.off, method, min(int(np.median(a.point_off.cap)), 512))
    schedule = json.dumps({"num_speculative_tokens_per_batch_size": steps}) if a.off.engine.name == "vllm" else None
    return {"schedule": schedule, "extra": {"best_k": best, "k_range": [low, high]}}
