"""A bare roofline: max(bytes/BW, FLOP/F) at sheet rates, no fixed cost and no efficiency, over the product's own counts.

It is what a reader would write on one sheet of paper: a step for each token at the batch the clients make, a prompt its FLOP at the peak,
nothing that prompts and steps do to each other. Bytes, FLOP and what fits are those of the ledgers, so that what differs is the time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accuracy.parts import nothing
from breakeven import evaluator
from breakeven.draws import MEDIAN, Draws
from breakeven.evaluator import Noise, Point
from breakeven.kernels import matmul_rate
from breakeven.ledger import memory, prefill
from breakeven.ledger.bandwidth import coverage
from breakeven.ledger.compute import active_expert_parameters, head_parameters
from breakeven.ledger.shard import Shard
from breakeven.ledger.step import attention_flop
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

Number = Array | float


def point(d: Deployment, draws: Draws = MEDIAN, *, noise: Noise | None = None, exact: bool = True) -> Point:
    """An operating point by the roofline, in the shape of the evaluator's, so that a row's own measure reads it.

    Noise is the evaluator's: none of it is taken here.
    """
    return timed(d, evaluator.evaluate(nothing().without(d), draws, noise=noise or Noise(), exact=exact))


def timed(d: Deployment, found: Point) -> Point:
    """The same point with its times by the roofline; what fits and what is asked are kept."""
    batch, clients = batch_of(found)
    step = np.asarray(step_s(d, found, batch))
    prompt = np.asarray(prompt_s(d, found), dtype=float)
    tpot = step / found.tau
    output = found.demand.output_tokens
    new = replace(found, batch=batch, step_s=step, tpot_s=tpot, prefill_alone_s=prompt, interference_s=prompt, ttft_s=prompt)
    if output is None:
        return replace(new, throughput=np.asarray(found.replicas * batch / tpot))
    most = batch / (batch * prompt + output * tpot)
    asked = found.demand.rate
    served = most if asked is None else np.minimum(asked, most)
    wait = np.maximum(clients - batch, 0.0) / most
    return replace(
        new,
        wait_s=wait,
        e2e_s=prompt + wait + output * tpot,
        request_rate=found.replicas * served,
        max_request_rate=found.replicas * most,
        throughput=np.asarray(found.replicas * most * output),
    )


def batch_of(p: Point) -> tuple[Array, Array]:
    """Sequences that decode together, and those that would: all clients, or in an open loop as many as fit."""
    asked = next((x for x in (p.demand.batch, p.demand.clients) if x is not None), p.cap)
    clients = np.asarray(asked, dtype=float)
    return (clients if p.demand.batch is not None else np.minimum(clients, p.cap)), clients


def step_s(d: Deployment, p: Point, batch: Number) -> Number:
    """Seconds of a step of one device: the larger of its bytes at the sheet's bandwidth and its FLOP at the sheet's rates."""
    s, (staged, here) = p.shard, _sequences(p, batch)
    matrices = _matrix_s(d, s, ("attention", "mlp", "head"), here * p.rows) + _matrix_s(d, s, ("experts",), staged * p.rows)
    flop = matrices + here * attention_flop(s, p.demand.context_tokens, p.rows) / s.flops_16_bit
    drafted = p.cost.draft_read_s + p.cost.draft_experts_read_s if p.rows > 1 else 0.0
    return np.maximum(read_bytes(p, batch) / s.bandwidth_bytes_per_s, flop) + drafted


def read_bytes(p: Point, batch: Number) -> Number:
    """Bytes a device reads in a step: weights, the experts that are awake, the cache once a sequence."""
    s, (staged, here) = p.shard, _sequences(p, batch)
    awake = coverage(staged * p.rows, s.model.experts.top_k, s.model.experts.count) if s.model.experts else 0.0
    cache = memory.kv_read_bytes(s.model, s.kv, p.demand.context_tokens, tensor_parallel=s.tensor_parallel) / s.layout.cache_shards
    return s.dense_bytes + awake * s.expert_bytes + here * (cache + 2.0 * s.state_bytes)


def _sequences(p: Point, batch: Number) -> tuple[Array, Array]:
    """Sequences in a stage of the pipeline, and on one rank of it."""
    staged = np.maximum(np.asarray(batch, dtype=float) / p.cost.stages, 1.0)
    return staged, np.maximum(staged / p.shard.layout.ranks, 1.0)


def prompt_s(d: Deployment, p: Point) -> Number:
    """Seconds of a prompt of one device: its FLOP at the sheet's rates; 0 where the workload states no prompt."""
    if p.demand.input_tokens is None:
        return 0.0
    s, new = p.shard, p.demand.new_tokens
    matrices = _matrix_s(d, s, ("attention", "mlp"), new) + _matrix_s(d, s, ("experts",), new)
    return matrices + prefill.attention_flop(s, new, p.demand.attention_input) / s.flops_16_bit


def _matrix_s(d: Deployment, s: Shard, classes: tuple[str, ...], rows: Number) -> Number:
    """2·N·rows over the devices that share the class, at the rate of the type computed in."""
    counts = {**memory.counts_by_class(s.model), "head": head_parameters(s.model), "experts": active_expert_parameters(s.model)}
    shards = {"experts": s.layout.expert_shards}
    device = d.hardware.device
    return sum(
        (2.0 * counts[c] * rows / shards.get(c, s.tensor_parallel) / matmul_rate(device, s.kernels[c].compute) for c in classes), 0.0
    )
