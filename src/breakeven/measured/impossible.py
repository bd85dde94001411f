"""Rows understood that no such deployment can have measured: faster than their own bytes and FLOP allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven.evaluator import Point, evaluate
from breakeven.ledger.step import roofline_floor_s
from breakeven.measured.pair import Pair
from breakeven.measured.row import NotUnderstood, Row
from breakeven.measured.run import Run
from breakeven.measured.words.metrics import metric
from breakeven.measured.words.quantities import number
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import peak_flops, read_bytes, step_flop
from breakeven.stats import Value, median

NARROWEST_CACHE = "fp8"
"""Stands for a cache whose format nobody recorded: no floor counts more bytes than there can have been."""
OUTPUT = ("output_throughput", "decode_speed")
RATES = ("tok/s", "tokens/s")


def impossible_run(run: Run) -> Message | None:
    """A time per token below the floor of a step at the row's own batch, which its own times tell by Little's law.

    b = C·D/(D + TTFT), D = (O − 1)·TPOT, and no more than its memory holds.
    """
    floor = floor_s(run)
    if floor is None or run.tpot_s >= floor:
        return None
    return Message("doubt.below_roofline", {"tpot": run.tpot_s, "floor": floor})


def floor_s(run: Run) -> float | None:
    """Seconds that no step of a run can be faster than; None where it is not a closed loop of stated lengths."""
    d, load = run.deployment, run.deployment.workload
    clients, output = _one(load.concurrency), _one(load.output_tokens)
    decode = max(output - 1.0, 0.0) * run.tpot_s
    if load.input_tokens is None or clients <= 0.0 or decode <= 0.0 or d.disaggregation is not None:
        return None
    batch = clients / d.replicas * decode / (decode + (run.ttft_s or 0.0))
    return floor_at(d, batch, _one(load.input_tokens) + output / 2)[1]


def _one(value: Value | None) -> float:
    return 0.0 if value is None else float(np.max(median(value)))


def floor_at(d: Deployment, batch: float, context: float) -> tuple[float, float]:
    """Sequences of a replica that run of those asked for, and the floor of their step in seconds."""
    engine = replace(d.engine, kv_cache_dtype=NARROWEST_CACHE)
    pinned = replace(d, engine=engine, workload=replace(d.workload, concurrency=None, batch=max(batch, 1.0), context_tokens=context))
    point = evaluate(pinned)
    held = float(np.median(point.room.fits_sequences))
    if 1.0 <= held < batch:
        batch, pinned = held, replace(pinned, workload=replace(pinned.workload, batch=held))
        point = evaluate(pinned)
    return batch, _floor(point, pinned)


def _floor(point: Point, d: Deployment) -> float:
    weights, cache = read_bytes(point)
    linear, attention = step_flop(point)
    return float(roofline_floor_s(point.shard, weights + cache, linear + attention, peak_flops(point, d)))


def impossible_pair(pair: Pair, row: Row) -> Message | None:
    """An arm that writes more tokens a second than its batch can at the floor of its step: b/t_floor(b), of all replicas."""
    if pair.lever == "speculation" or not _counts_output(row):
        return None
    for name, d in (("value_off", pair.off), ("value_on", pair.on)):
        rate, load = number(row.fields.get(name, "")), d.workload
        asked = _one(load.batch) or _one(load.concurrency) / d.replicas
        if rate is None or asked < 1.0 or d.disaggregation is not None:
            continue
        context = _one(load.context_tokens) or _one(load.input_tokens) + _one(load.output_tokens) / 2
        batch, floor = floor_at(d, asked, context)
        if rate > d.replicas * batch / floor:
            return Message("doubt.above_roofline", {"value": row.fields[name], "most": d.replicas * batch / floor})
    return None


def _counts_output(row: Row) -> bool:
    """Whether a row's values are output tokens a second, of one sequence or of all."""
    try:
        found = metric(row.fields.get("metric", ""), row.fields.get("unit", ""))
    except NotUnderstood:
        return False
    return found.kind in OUTPUT and row.fields.get("unit", "").lower() in RATES and not found.per_device
