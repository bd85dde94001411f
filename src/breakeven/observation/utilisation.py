"""MBU, MFU and the KV share of what runs: bytes and FLOP from the ledgers, seconds as measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from breakeven.evaluator import Point, evaluate
from breakeven.kernels import matmul_rate
from breakeven.ledger import bandwidth, compute, prefill
from breakeven.model_step import measured_step, model_step
from breakeven.observation import rounds
from breakeven.observation.estimate import figure, ratio
from breakeven.observation.lengths import prompt_tokens
from breakeven.observation.quantities import Quantities
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Figure
from breakeven.spec.parallel import replicas_among
from breakeven.spec.workload import Workload
from breakeven.statement import ledgers, stages_busy


def point_at(d: Deployment, batch: float, context_tokens: float) -> tuple[Deployment, Point]:
    """The deployment with as many sequences decoding at that context, in the median world."""
    pinned = replace(d, workload=Workload(batch=batch, context_tokens=context_tokens, task=d.workload.task))
    return pinned, evaluate(pinned)


def measured_mbu(bytes_per_step: float, step_s: float, bandwidth_bytes_per_s: float) -> float:
    """MBU = bytes that the ledger says a step reads/(measured seconds of it · BW of the sheet). Unit: 1.

    Source: the definition of model bandwidth utilisation (Databricks, LLM inference performance engineering, 2023).

    >>> round(measured_mbu(16.1e9, 7.2e-3, 3.35e12), 3)
    0.667
    """
    return float(bandwidth.utilisation(bytes_per_step, step_s, bandwidth_bytes_per_s))


def figures(q: Quantities, d: Deployment, found: Mapping[str, Figure]) -> dict[str, Figure]:
    """Of one device; empty where batch, context or step time could not be measured."""
    copies = replicas_among(q.ranks, d.model)
    measured = measured_step(found, d, q.ranks)
    if measured is None:
        return {}
    pinned, point = point_at(d, measured.batch, measured.context_tokens)
    books, peak = ledgers(point, pinned), matmul_rate(d.hardware.device, point.shard.kernels["mlp"].compute)
    read, flop = books.bandwidth.bytes_per_step, books.compute.flop_per_step
    working = float(np.median(stages_busy(point)))
    mbu = working * measured_mbu(read, measured.step_s, float(np.median(point.shard.bandwidth_bytes_per_s)))
    mfu = working * float(compute.utilisation(flop, measured.step_s, peak))
    made = {
        "mbu": figure(mbu, "derived", "observed.how_mbu"),
        "mfu": figure(mfu, "derived", "observed.how_mfu"),
        "mfu_with_prompts": _with_prompts(q, point, working * flop / peak / d.engine.pipeline_parallel_size, peak * copies),
        "kv_share": figure(books.bandwidth.kv_share, "derived", "observed.how_kv_share"),
        "bytes_per_step": figure(read, "derived", "observed.how_ledger"),
        "flop_per_step": figure(flop, "derived", "observed.how_ledger"),
        "predicted_step_s": _predicted(q, d, found),
    }
    return {name: one for name, one in made.items() if one is not None}


def _predicted(q: Quantities, d: Deployment, found: Mapping[str, Figure]) -> Figure | None:
    """The model's time for the measured step, and whether prompts are in it."""
    step = model_step(found, d, q.replicas, q.ranks)
    if step is None:
        return None
    return figure(step.model_s, "derived", "observed.how_predicted_prompts" if step.with_prompts else "observed.how_predicted")


def _with_prompts(q: Quantities, point: Point, step_at_peak_s: float, peak: float) -> Figure | None:
    """MFU over the window, idle time and prompts in it: (steps·FLOP + prompts·FLOP of a prompt)/(T·F)."""
    passes, metric = rounds.steps(q)
    if passes is None or not q.replica_seconds:
        return None
    share = ratio(passes * step_at_peak_s + prompt_flop(q, point) / peak, q.replica_seconds)
    return figure(share, "derived", "observed.how_mfu_window", (*metric, *q.metrics("prompt_tokens", "prompt_tokens_computed")))


def prompt_flop(q: Quantities, point: Point) -> float:
    """FLOP that a device spent on prompts in the window: of as many prompts as began, each of mean length and mean hits. Unit: FLOP."""
    cached = q.rise("prompt_tokens_cached") or 0.0
    whole = prompt_tokens(q) or q.rise("prompt_tokens_computed")
    begun = q.moved("ttft", "count") or q.moved("requests_finished")
    if not whole or begun is None:
        return 0.0
    each = prefill.prompt_flop(point.shard, max(whole - cached, 0.0) / begun, whole / begun)
    return float(np.median(each)) * begun / point.shard.layout.ranks
