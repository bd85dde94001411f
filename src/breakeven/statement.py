"""The ledgers of an operating point: bytes, FLOP and seconds of one device, and the checks that must close."""

from __future__ import annotations

import numpy as np

from breakeven import advice
from breakeven.advice import LimitedBy
from breakeven.errors import InputError
from breakeven.evaluator import Point
from breakeven.kernels import matmul_rate
from breakeven.ledger import bandwidth, compute, memory, wire
from breakeven.ledger.step import (
    attention_flop,
    expert_coverage,
    expert_rows,
    in_a_stage,
    on_a_rank,
    parts,
    passes_of,
    roofline_floor_s,
)
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

CLOSES = 1e-6
HALF = 0.5
"""Share of requests that wait for a place from which the cap or the pool is said to limit, where the rate varies."""
FULL = 0.98
"""Use of the prefill pool from which it is what limits a closed loop, whose clients never fill it altogether."""


class SelfCheckError(RuntimeError):
    """A prediction that breaks its own books: a bug of ours, never an answer."""


def stage_batch(p: Point) -> Array | float:
    """Sequences in one stage of the pipeline; of the fullest rank, where attention is data parallel."""
    return on_a_rank(p.cost, in_a_stage(p.cost, p.batch))


def routed_batch(p: Point) -> Array | float:
    """Sequences whose rows the experts of one stage see: those of all ranks."""
    return in_a_stage(p.cost, p.batch)


def stages_busy(p: Point) -> Array | float:
    """Share of a pipeline's stages that work at a time: fewer sequences than stages leave the others idle (the bubble)."""
    return np.minimum(np.maximum(p.batch, 1.0) / p.cost.stages, 1.0)


def passes(p: Point) -> Array | float:
    """Passes over the weights that a step takes: one, but for slots with caches of their own."""
    return passes_of(p.cost, p.batch)


def routed_in_a_pass(p: Point) -> Array | float:
    """Sequences of all ranks that one pass of a stage takes."""
    return in_a_stage(p.cost, p.batch / passes(p))


def pass_batch(p: Point) -> Array | float:
    """Sequences of one rank that one pass of a stage takes."""
    return on_a_rank(p.cost, routed_in_a_pass(p))


def covered(p: Point) -> Array | float:
    """Share of its experts that a device reads in a pass, the busiest of expert parallelism; 0 without experts."""
    return 0.0 if p.shard.model.experts is None else expert_coverage(p.cost, routed_in_a_pass(p))


def kv_read_bytes(p: Point) -> Array | float:
    """Cache bytes one device reads in a step, once per sequence, and its constant states, read and written."""
    s = p.shard
    cache = memory.kv_read_bytes(s.model, s.kv, p.demand.context_tokens, tensor_parallel=s.tensor_parallel) / s.layout.cache_shards
    return stage_batch(p) * (cache + 2.0 * s.state_bytes)


def read_bytes(p: Point) -> tuple[Array | float, Array | float]:
    """Weight bytes and cache bytes one device reads in a step, the weights once a pass."""
    return (p.shard.dense_bytes + p.shard.expert_bytes * covered(p)) * passes(p), kv_read_bytes(p)


def step_flop(p: Point) -> tuple[Array | float, Array | float]:
    """Linear and attention FLOP of one device in a step."""
    b = stage_batch(p)
    routed = expert_rows(p.cost, routed_in_a_pass(p)) / (pass_batch(p) * p.rows)
    linear = b * p.rows * (p.shard.dense_flop_per_row + p.shard.expert_flop_per_row * routed + p.shard.head_flop_per_row)
    return linear, b * attention_flop(p.shard, p.demand.context_tokens, p.rows)


def ridge_rows(p: Point) -> Array | float:
    """Rows of a rank at which the matrices take as long to multiply as to read, of a mixture what those rows wake and meet."""
    c = p.cost
    if not c.experts:
        return c.dense_read_s / c.dense_compute_s
    return compute.mixture_ridge_rows(
        lambda n: c.dense_read_s + expert_coverage(c, _routed(p, n)) * c.experts_read_s,
        lambda n: c.dense_compute_s + expert_rows(c, _routed(p, n)) / n * c.experts_compute_s,
    )


def _routed(p: Point, rows: Array | float) -> Array | float:
    """Sequences whose rows the experts see, with so many rows in each rank."""
    return rows / p.rows * p.cost.ranks


def ridge_experts(p: Point) -> tuple[float, float]:
    """Share of the experts read at the ridge, and rows that they multiply for one row of a rank there (medians)."""
    rows = _middle(ridge_rows(p))
    staged = _routed(p, rows)
    return _middle(expert_coverage(p.cost, staged)), _middle(expert_rows(p.cost, staged)) / rows


def ridge_batch(p: Point) -> Array | float:
    """The ridge in sequences: n*/(k + 1), all stages and ranks together."""
    return ridge_rows(p) / p.rows * p.cost.stages * p.cost.ranks


def limited_by(p: Point) -> LimitedBy:
    """What holds the batch where it is."""
    if p.demand.mode == "pinned":
        return "pinned"
    if prompts_limit(p):
        return "prefill_pool"
    cap, fits = float(np.median(p.cap)), float(np.median(p.room.fits_sequences))
    by_cap: LimitedBy = "kv_pool" if fits < cap + 1 else "max_num_seqs"
    if p.demand.mode == "closed":
        clients = float(np.median(p.demand.clients if p.demand.clients is not None else 0.0))
        return "concurrency" if clients <= cap else by_cap
    if p.demand.unwaited:
        return "demand"
    if p.rate_groups is not None and not bool(np.median(p.saturated)):
        return by_cap if float(np.median(p.rate_groups.waiting_share)) >= HALF else "demand"
    waits = float(np.median(np.where(p.saturated, 1.0, p.wait_s / np.maximum(p.tpot_s, 1e-12)))) >= 1.0
    return by_cap if waits else "demand"


def prompts_limit(p: Point) -> bool:
    """Whether the prefill pool, or the link from it, serves no more than it does here."""
    if p.pool is None or p.request_rate is None:
        return False
    asked = p.demand.rate * p.replicas if p.demand.rate is not None else p.request_rate
    return bool(np.median(asked / p.pool.max_rate) >= FULL)


def peak_flops(p: Point, d: Deployment) -> Array | float:
    """The largest dense rate that any of the step's kernels computes at."""
    return max(matmul_rate(d.hardware.device, kernel.compute) for kernel in p.shard.kernels.values()) * p.shard.compute_factor


def _middle(value: Array | float) -> float:
    return float(np.median(value))


def memory_ledger(p: Point, d: Deployment) -> advice.MemoryLedger:
    """The memory ledger as figures."""
    in_use = _middle(p.batch * p.room.sequence_bytes / p.cost.ranks) if p.fits else 0.0
    return advice.MemoryLedger(
        capacity_bytes=d.hardware.device.capacity_bytes,
        usable_bytes=memory.usable_bytes(d.hardware.device.capacity_bytes, d.engine),
        weight_bytes=p.room.weight_bytes,
        draft_weight_bytes=p.room.draft_bytes,
        reserve_bytes=p.room.reserve_bytes,
        kv_pool_bytes=p.room.pool_bytes,
        kv_pool_tokens=p.room.pool_tokens,
        kv_bytes_per_token=p.room.kv_bytes_per_token,
        state_bytes_per_sequence=p.room.state_bytes,
        sequence_bytes=_middle(p.room.sequence_bytes),
        kv_in_use_bytes=in_use,
        kv_share=float(memory.kv_share_of_memory(in_use, d.hardware.device.capacity_bytes)),
        pool_use=in_use / p.room.pool_bytes if p.room.pool_bytes else 0.0,
        sequences_that_fit=_middle(p.room.fits_sequences),
        fits=p.fits,
    )


def ledgers(p: Point, d: Deployment) -> advice.Ledgers:
    """All books of one device at the median of the point."""
    weights, kv = (_middle(x) for x in read_bytes(p))
    linear, attention = (_middle(x) for x in step_flop(p))
    step_s, busy = _middle(p.step_s), _middle(stages_busy(p))
    share = {name: _middle(p.time_factor * value) for name, value in parts(p.cost, p.batch).items()}
    peak = matmul_rate(d.hardware.device, p.shard.kernels["mlp"].compute)
    return advice.Ledgers(
        memory=memory_ledger(p, d),
        bandwidth=advice.BandwidthLedger(
            bytes_per_step=weights + kv,
            weight_bytes=weights,
            expert_bytes=_middle(p.shard.expert_bytes * covered(p) * passes(p)),
            expert_coverage=_middle(covered(p)) if d.model.experts else None,
            kv_bytes=kv,
            state_bytes=_middle(stage_batch(p) * 2.0 * p.shard.state_bytes),
            kv_share=_middle(bandwidth.kv_share_of_traffic(kv, weights)),
            mbu=busy * _middle(bandwidth.utilisation(weights + kv, step_s, p.shard.bandwidth_bytes_per_s)),
        ),
        compute=advice.ComputeLedger(
            flop_per_step=linear + attention,
            linear_flop=linear,
            attention_flop=attention,
            mfu=busy * _middle(compute.utilisation(linear + attention, step_s, peak)),
            ridge_rows=_middle(ridge_rows(p)),
            ridge_batch=_middle(ridge_batch(p)),
        ),
        interconnect=advice.InterconnectLedger(
            bytes_per_step=_middle(stage_batch(p) * p.rows * sum(one.bytes for one in wire.wire(p.shard).values())),
            share_of_step=share["communication"] / step_s,
            by_kind={kind: _middle(stage_batch(p) * p.rows * one.bytes) for kind, one in wire.wire(p.shard).items()},
        ),
        step_parts_s=share,
    )


def check(p: Point, d: Deployment) -> None:
    """The self-checks: the roofline holds, the parts add up, Little's law closes. A failure is a bug and is raised."""
    weights, kv = read_bytes(p)
    linear, attention = step_flop(p)
    floor = roofline_floor_s(p.shard, weights + kv, linear + attention, peak_flops(p, d))
    if np.any(p.step_s / p.time_factor < floor * (1 - CLOSES)):
        if p.cost.widths is not None and d.calibration is not None and d.calibration.basis is not None:
            raise InputError("calibration_below_roofline", name=d.calibration.basis.name, step=_middle(p.step_s), floor=_middle(floor))
        raise SelfCheckError(f"step of {_middle(p.step_s)} s is below its own roofline of {_middle(floor)} s")
    added = sum(parts(p.cost, p.batch).values(), np.zeros(()))
    if not np.allclose(added * p.time_factor, p.step_s, rtol=CLOSES):
        raise SelfCheckError("the parts of a step do not add up to it")
    _check_little(p)


def _check_little(p: Point) -> None:
    if p.demand.mode == "pinned" or p.request_rate is None or p.demand.output_tokens is None:
        return
    decode = p.tpot_s * (p.demand.output_tokens if p.demand.mode == "open" else np.maximum(p.demand.output_tokens - 1, 1e-9))
    held = p.request_rate / p.replicas * decode
    calm = np.logical_not(p.saturated) & (np.asarray(p.demand.output_tokens) > 1)
    if np.any(calm & ~np.isclose(held, p.batch, rtol=1e-3, atol=1e-6)):
        raise SelfCheckError(f"Little's law does not close: {_middle(held)} against {_middle(p.batch)}")
