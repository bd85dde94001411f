"""Side comparisons that go with a lever: static batching, the next devices and mixtures, the schedule of k."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from breakeven import catalog, schedule
from breakeven.draws import Draws
from breakeven.evaluator import Point
from breakeven.judge import Arms
from breakeven.ledger import memory
from breakeven.levers import speculation
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by
from breakeven.stats import Array, is_uncertain

SHOWN = 3
LIKE = 2.0
"""A mixture is of like size when its parameters are within this factor."""
STEP = 1.3
"""The next device by bandwidth is one with this much more of it."""
FEW = 4.0
LARGEST_SCHEDULED = 512
QUANTILES = 1001


def static_batching(d: Deployment, batch: float) -> float:
    """Upper bound of continuous over static batching: E[max of O over the batch]/E[O] at constant step time; 1 for one sequence.

    The expectation of the largest of b independent outputs, from the quantiles of the output lengths.
    """
    q = output_quantiles(d)
    if q is None or batch <= 1:
        return 1.0
    at, middles = np.linspace(0.0, 1.0, len(q)), (q[1:] + q[:-1]) / 2
    return max(1.0, float((middles * np.diff(at**batch)).sum() / (middles * np.diff(at)).sum()))


def output_quantiles(d: Deployment) -> Array | None:
    """Quantiles of the output's length, evenly spaced: of the trace, or of the range or spread that was given; None when constant."""
    lengths, output = d.workload.lengths, d.workload.output_tokens
    if lengths is not None and len(lengths.output_quantiles) > 1:
        return np.asarray(lengths.output_quantiles)
    if output is None or not is_uncertain(output):
        return None
    return np.sort(np.asarray(Draws(QUANTILES).value("output_tokens", output)))


def next_devices(d: Deployment, p: Point) -> list[dict[str, object]]:
    """The next devices of the same maker by bandwidth that hold what this one holds, each a step above the one before."""
    mine, held = d.hardware.device.bandwidth_bytes_per_s, p.room.weight_bytes + p.room.draft_bytes + p.room.reserve_bytes
    found: list[dict[str, object]] = []
    last = mine
    for name, device in sorted(catalog.figures("hardware").items(), key=lambda pair: float(pair[1]["bandwidth_bytes_per_s"])):
        rate = float(device["bandwidth_bytes_per_s"])
        alike = device["vendor"] == d.hardware.device.vendor and memory.usable_bytes(device["memory_bytes"], d.engine) >= held
        if alike and rate >= last * STEP and len(found) < SHOWN:
            found.append({"device": name, "title": device["title"], "bandwidth_bytes_per_s": rate, "bandwidth_factor": rate / mine})
            last = rate
    return found


def like_mixtures(d: Deployment) -> list[dict[str, object]]:
    """Mixtures of experts of like size, which read fewer weights for a token at small batches."""
    if d.model.experts is not None:
        return []
    mine = d.model.parameters.total
    found = []
    for name, mixture in catalog.figures("models").items():
        total, active = mixture["parameters"], mixture["active_parameters"]
        if mine / LIKE <= total <= mine * LIKE:
            found.append((active / mine, {"model": name, "parameters": total, "active_parameters": active}))
    return [entry for _, entry in sorted(found, key=lambda pair: pair[0])[:SHOWN]]


@dataclass(frozen=True, kw_only=True)
class Extras:
    """What only one lever has: further figures, what to say of them, and vLLM's schedule of k."""

    figures: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()
    schedule: str | None = None


def batching_extras(a: Arms, middle: Point) -> Extras:
    """Static batching beside continuous; under an effective batch of 4 with demand limiting, what would help instead."""
    batch = float(np.median(middle.batch))
    bound = static_batching(a.off, batch)
    figures: dict[str, object] = {"static_batching_upper_bound": bound}
    notes = [Message("lever.batching_static", {"bound": bound})] if bound > 1.0 else []
    if batch < FEW and limited_by(middle) == "demand":
        devices, mixtures = next_devices(a.off, middle), like_mixtures(a.off)
        figures |= {"next_devices_by_bandwidth": devices, "mixtures_of_like_size": mixtures}
        if devices:
            notes.append(
                Message("lever.batching_devices", {"devices": ", ".join(f"{d['title']} ×{d['bandwidth_factor']:.2g}" for d in devices)})
            )
        if mixtures:
            notes.append(Message("lever.batching_mixtures", {"models": ", ".join(str(m["model"]) for m in mixtures)}))
    return Extras(figures=figures, notes=tuple(notes))


def extras(lever: str, a: Arms, draws: Draws) -> Extras:
    """The extras of a lever; most have none."""
    if lever == "batching":
        return batching_extras(a, a.point_off)
    return speculation_extras(a, draws) if lever == "speculation" else Extras()


def speculation_extras(a: Arms, draws: Draws) -> Extras:
    """The range of k that is as good as the best, and k by batch size as vLLM takes it; with a trace how sure each border is."""
    method = speculation.parse(a.setting).method
    best, (low, high) = speculation.best_k(a.off, method)
    figures: dict[str, object] = {"best_k": best, "k_range": [low, high]}
    found = schedule.stretches(a.off, method, draws, a.sigma) if a.off.workload.trace is not None else ()
    steps = [[one.first, one.to, one.k] for one in found]
    if found:
        figures["k_by_batch"] = [asdict(one) for one in found]
    else:
        steps = speculation.schedule(a.off, method, min(int(np.median(a.point_off.cap)), LARGEST_SCHEDULED))
    as_set = (
        json.dumps({"num_speculative_tokens": max(k for _, _, k in steps), "num_speculative_tokens_per_batch_size": steps})
        if a.off.engine.name == "vllm"
        else None
    )
    as_set = schedule.setting(found, a.off) if found else as_set
    told = ", ".join(f"{lo}–{hi}: k={k}" for lo, hi, k in steps)
    if low < high:
        note = Message("lever.spec_k_range", {"best": best, "low": low, "high": high, "schedule": told})
    else:
        note = Message("lever.spec_k_best", {"best": best, "schedule": told})
    return Extras(figures=figures, notes=(note,), schedule=as_set)
