"""Step time: roofs become seconds.

    t_step = t_dense + t_experts + t_attention + t_communication + t_fixed (+ what a round of speculation adds)

A :class:`StepCost` holds the coefficients, so that the simulator and every solver pay the same price for the same step. Where steps were
measured over their width, the measured ones stand inside the widths measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from breakeven.efficiencies import Efficiencies
from breakeven.ledger import bandwidth, compute, experts, measured_step, memory, slots, wire
from breakeven.ledger.measured_step import Widths
from breakeven.ledger.shard import Shard
from breakeven.spec.model import Attention
from breakeven.stats import Array


def smoothmax(a: Array | float, b: Array | float) -> Array | float:
    """The roofs' corner: (a⁴ + b⁴)^¼, the larger of two times, 19 % above both where they meet.

    End to end the corner's shape does not matter (fits of serving runs with exponents 1 to 100 score the same).

    >>> float(smoothmax(3.0, 0.0)), round(float(smoothmax(1.0, 1.0)), 4)
    (3.0, 1.1892)
    """
    aa, bb = a * a, b * b
    return np.sqrt(np.sqrt(aa * aa + bb * bb))


@dataclass(frozen=True, kw_only=True)
class StepCost:
    """Seconds of a decode step as coefficients; arrays where the deployment or the draws are arrays.

    With b sequences, r rows each, n = b·r (b and n per pipeline stage, b at least 1):
    fixed + b·(per_sequence + attention) + n·per_row + smoothmax(dense_read, n·dense_compute)
    + smoothmax(coverage(n_eff)·experts_read, n·experts_compute), or what was measured at n rows; + draft(b).
    """

    rows: int
    stages: int
    fixed_s: Array | float
    per_sequence_s: Array | float
    per_row_s: Array | float
    attention_s: Array | float
    """Per sequence at its context: cache read and attention FLOP, all rows of the sequence."""
    dense_read_s: Array | float
    dense_dequantise_s: Array | float
    """Added as soon as more than one row is in the step (formats written out in 16 bits first)."""
    dense_compute_s: Array | float
    experts_read_s: Array | float
    experts_compute_s: Array | float
    top_k: int
    experts: int
    """Routed experts; 0 without a mixture."""
    expert_sharing: Array | float
    ranks: int = 1
    """Ranks of attention data parallelism, which step together: the fullest sets the step, and the experts see the rows of all."""
    context_spread: Array | float = 0.0
    """m(R)·(deviation of the contexts over their mean): how much more the slowest rank has cached, times √sequences."""
    slots: int = 0
    """Slots with a cache of their own each, whose busy stretches take a pass each; 0 where one pass takes all sequences."""
    expert_parallel: int = 1
    expert_skew: Array | float = 1.0
    expert_imbalance: Array | float = 1.0
    draft_fixed_s: Array | float = 0.0
    draft_per_sequence_s: Array | float = 0.0
    """The host's part of a round, and the draft's cache."""
    draft_launch_s: Array | float = 0.0
    draft_read_s: Array | float = 0.0
    draft_compute_s: Array | float = 0.0
    draft_experts_read_s: Array | float = 0.0
    widths: Widths | None = None
    """Measured steps without what a round of speculation adds, at the conditions of this one, over the replica's rows."""
    one_pass: Widths | None = None
    """The same of one pass, where ``slots`` make several of a step."""
    draft_widths: Widths | None = None
    """Measured passes of the draft, all k together, over sequences."""

    @cached_property
    def linear_s(self) -> Array | float:
        """Seconds that one more sequence adds whatever the rest does."""
        return self.per_sequence_s + self.attention_s + self.rows * self.per_row_s

    @cached_property
    def dequantises(self) -> bool:
        """Whether there are weights that are written out in 16 bits first."""
        return bool(np.any(self.dense_dequantise_s))


def in_a_stage(cost: StepCost, batch: Array | float) -> Array | float:
    """Sequences in one stage of the pipeline: a step that runs has at least one, however idle the replica is on average."""
    return np.maximum(batch if cost.stages == 1 else batch / cost.stages, 1.0)


def on_a_rank(cost: StepCost, staged: Array | float) -> Array | float:
    """Sequences of the fullest rank in one stage, of those that all ranks have there."""
    return experts.slowest_rank(staged, cost.ranks)


def expert_coverage(cost: StepCost, staged: Array | float) -> Array | float:
    """Share of its experts that a device reads, the busiest where whole experts are dealt out; rows of all ranks wake them."""
    awake = bandwidth.coverage(bandwidth.effective_tokens(staged, cost.rows, cost.expert_sharing), cost.top_k, cost.experts)
    return experts.busiest_coverage(awake, cost.experts, cost.expert_parallel, cost.expert_imbalance)


def expert_rows(cost: StepCost, staged: Array | float) -> Array | float:
    """Rows that the experts' FLOP are counted for: those of all ranks, times what the busiest device has more than the mean."""
    rows = staged * cost.rows
    if cost.expert_parallel == 1:
        return rows
    return rows * experts.busiest_load(rows, cost.top_k, cost.expert_parallel, cost.expert_skew, cost.expert_imbalance)


def _experts_s(cost: StepCost, staged: Array | float) -> Array | float:
    return smoothmax(expert_coverage(cost, staged) * cost.experts_read_s, expert_rows(cost, staged) * cost.experts_compute_s)


def draft_passes_s(cost: StepCost, b: Array | float, staged: Array | float) -> Array | float:
    """Seconds of the draft's own passes by the roofline."""
    time = cost.draft_launch_s + smoothmax(cost.draft_read_s, b * cost.draft_compute_s)
    if cost.experts:
        time = time + bandwidth.coverage(staged, cost.top_k, cost.experts) * cost.draft_experts_read_s
    return time


def _draft_s(cost: StepCost, b: Array | float, staged: Array | float) -> Array | float:
    passes = draft_passes_s(cost, b, staged)
    if cost.draft_widths is not None:
        passes = measured_step.over(cost.draft_widths, b, passes)
    return cost.draft_fixed_s + b * cost.draft_per_sequence_s + passes


def _dense_read_s(cost: StepCost, n: Array | float) -> Array | float:
    """Weight reads; formats written out in 16 bits first are read again as soon as there is more than one row."""
    if not cost.dequantises:
        return cost.dense_read_s
    return cost.dense_read_s + cost.dense_dequantise_s * np.greater(n, 1.0).astype(float)


def parts(cost: StepCost, batch: Array | float) -> Mapping[str, Array | float]:
    """Seconds of a step by part, for ``batch`` sequences decoding together (all stages of a pipeline together).

    A measured step is divided up as the roofline divides its own.
    """
    passes = passes_of(cost, batch)
    staged = in_a_stage(cost, batch / passes)
    b = on_a_rank(cost, staged)
    n = b * cost.rows
    found: dict[str, Array | float] = {
        "dense": smoothmax(_dense_read_s(cost, n), n * cost.dense_compute_s),
        "experts": _experts_s(cost, staged) if cost.experts else 0.0,
        "attention": (b + extra_context(cost, b)) * cost.attention_s if cost.ranks > 1 else b * cost.attention_s,
        "communication": n * cost.per_row_s,
        "fixed": cost.fixed_s + b * cost.per_sequence_s,
    }
    if cost.slots:
        found = {name: passes * seconds for name, seconds in found.items()}
    if cost.widths is not None:
        measured = measured_factor(cost, batch)
        found = {name: measured * seconds for name, seconds in found.items()}
    return {**found, "speculation": _speculation_s(cost, batch)}


def passes_of(cost: StepCost, batch: Array | float) -> Array | float:
    """Passes that a step takes: one, but for slots with caches of their own (:mod:`breakeven.ledger.slots`)."""
    return slots.passes(batch, cost.slots) if cost.slots else 1.0


def roofline_s(cost: StepCost, batch: Array | float) -> Array | float:
    """Seconds of a step by the roofline alone, without what a round of speculation adds: of all its passes, each as wide as their mean."""
    if not cost.slots:
        return pass_s(cost, batch)
    passes = slots.passes(batch, cost.slots)
    return passes * pass_s(cost, np.maximum(batch, 1.0) / passes)


def pass_s(cost: StepCost, batch: Array | float) -> Array | float:
    """Seconds of one pass of ``batch`` sequences by the roofline."""
    staged = in_a_stage(cost, batch)
    b = on_a_rank(cost, staged)
    n = b * cost.rows if cost.rows != 1 else b
    time = cost.fixed_s + b * cost.linear_s + smoothmax(_dense_read_s(cost, n), n * cost.dense_compute_s)
    if cost.experts:
        time = time + _experts_s(cost, staged)
    if cost.ranks > 1:
        time = time + extra_context(cost, b) * cost.attention_s
    return time


def measured_factor(cost: StepCost, batch: Array | float) -> Array | float:
    """Measured step over the roofline's; 1 where nothing was measured."""
    if cost.widths is None:
        return 1.0
    roofline = roofline_s(cost, batch)
    return measured_step.over(cost.widths, np.maximum(batch, 1.0) * cost.rows, roofline) / roofline


def step_time(cost: StepCost, batch: Array | float) -> Array | float:
    """t_step(b) in seconds: the sum of its parts, or the step that was measured, and what a round of speculation adds."""
    time = roofline_s(cost, batch)
    if cost.widths is not None:
        time = measured_step.over(cost.widths, np.maximum(batch, 1.0) * cost.rows, time)
    return time + _speculation_s(cost, batch) if cost.rows > 1 else time


def _speculation_s(cost: StepCost, batch: Array | float) -> Array | float:
    """What a round of speculation adds: the draft takes its passes over all sequences together."""
    if cost.rows == 1:
        return 0.0
    staged = in_a_stage(cost, batch)
    return _draft_s(cost, on_a_rank(cost, staged), staged)


def extra_context(cost: StepCost, b: Array | float) -> Array | float:
    """Sequences' worth of cache that the slowest rank reads beyond the mean of b sequences: m(R)·c_v·√b."""
    return cost.context_spread * np.sqrt(b)


def attention_s(s: Shard, e: Efficiencies, context_tokens: Array | float, rows: int) -> Array | float:
    """Seconds of attention and states of one sequence: smoothmax((K(c)/φ + 2·S)/(BW·η_kv), FLOP/(F·η_fa))·(1 + ρ·(rows − 1)).

    S is the constant state of linear and state-space layers, read and written once a step.
    """
    cache = memory.kv_read_bytes(s.model, s.kv, context_tokens, tensor_parallel=s.tensor_parallel)
    if s.layout.cache_shards > 1:
        cache = cache / s.layout.cache_shards
    read = (cache / s.kv_phi + 2.0 * s.state_bytes) / (s.bandwidth_bytes_per_s * e.bandwidth_kv)
    flop = attention_flop(s, context_tokens, rows)
    return smoothmax(read, flop / (s.flops_16_bit * e.prefill_mfu_attention)) * (1.0 + e.width_penalty * (rows - 1))


def attention_flop(s: Shard, context_tokens: Array | float, rows: int) -> Array | float:
    """Attention FLOP of one sequence on one device in a decode step, states and indexers included."""
    seen = sum((g.layers * _flop_over(g, s, context_tokens) for g in s.model.attention), 0.0 * context_tokens)
    if s.layout.prefill_context > 1:
        seen = seen / s.layout.prefill_context
    return rows * (seen + compute.state_flop_per_token(s.model)) / s.tensor_parallel


def _flop_over(g: Attention, s: Shard, context_tokens: Array | float) -> Array | float:
    """Of all devices of a tensor group: they share the heads, and each runs the whole indexer."""
    attended = compute.decode_flop_per_token_seen(g) * memory.entries_attended(g, context_tokens)
    return attended + s.tensor_parallel * compute.index_flop_per_entry(g) * memory.entries_indexed(g, context_tokens)


def attention_launches_s(s: Shard, e: Efficiencies, engine_name: str) -> tuple[Array | float, Array | float]:
    """What MLA and the cache's format add to a layer's launches, spread over all layers: those that keep a state attend to nothing."""
    model = s.model
    attending = sum(g.layers for g in model.attention) / model.launch_layers
    latent = sum(g.layers for g in model.attention if g.kind == "mla") / model.launch_layers
    return e.mla_layer_s * latent, s.kv.layer_s_by_engine.get(engine_name, s.kv.layer_s) * attending


def step_cost(
    s: Shard,
    e: Efficiencies,
    engine_name: str,
    context_tokens: Array | float,
    rows: int = 1,
    *,
    context_deviation: Array | float = 0.0,
    own_slots: int = 0,
) -> StepCost:
    """The coefficients of a decode step at a mean context (model.md 6) and its deviation between sequences, in tokens.

    ``own_slots`` is how many slots have a cache of their own each, 0 where all sequences share one.
    """
    model, rate = s.model, s.bandwidth_bytes_per_s
    moe_layers = model.experts.layers if model.experts else 0
    mla, penalty = attention_launches_s(s, e, engine_name)
    layers_s = model.launch_layers * (e.layer_s + mla + penalty) + moe_layers * e.moe_layer_s
    return StepCost(
        rows=rows,
        stages=s.pipeline_parallel,
        fixed_s=e.host_s + layers_s + wire.message_s(s, e),
        per_sequence_s=e.sequence_s + rows * model.vocabulary * e.logit_bytes / s.tensor_parallel / rate,
        per_row_s=wire.rows_s(s, e, 1.0),
        attention_s=attention_s(s, e, context_tokens, rows),
        dense_read_s=s.dense_effective_bytes / (rate * e.bandwidth_dense),
        dense_dequantise_s=s.dense_dequantised_bytes / (rate * e.bandwidth_dense),
        dense_compute_s=s.dense_decode_compute_s / e.mfu_decode,
        experts_read_s=s.expert_effective_bytes / (rate * e.bandwidth_experts),
        experts_compute_s=s.expert_decode_compute_s / e.mfu_decode_experts,
        top_k=model.experts.top_k if model.experts else 0,
        experts=model.experts.count if model.experts else 0,
        expert_sharing=e.expert_sharing,
        ranks=s.layout.ranks,
        context_spread=spread_over_ranks(context_tokens, context_deviation, s.layout.ranks),
        slots=own_slots,
        expert_parallel=s.layout.expert_parallel,
        expert_skew=s.expert_skew,
        expert_imbalance=e.expert_imbalance,
    )


def spread_over_ranks(context_tokens: Array | float, deviation: Array | float, ranks: int) -> Array | float:
    """m(R)·σ_c/c: the mean of the largest of R sums of contexts, taken as normal, beyond the mean and over the mean context.

    >>> spread_over_ranks(1000.0, 300.0, 1), round(float(spread_over_ranks(1000.0, 300.0, 8)), 3)
    (0.0, 0.43)
    """
    return 0.0 if ranks == 1 else experts.expected_maximum(ranks) * deviation / np.maximum(context_tokens, 1.0)


def roofline_floor_s(s: Shard, read_bytes: Array | float, flop: Array | float, peak_flops: Array | float) -> Array | float:
    """What no step can be faster than: its own bytes at full bandwidth, or its own FLOP at the full rate."""
    return np.maximum(read_bytes / s.bandwidth_bytes_per_s, flop / peak_flops)
