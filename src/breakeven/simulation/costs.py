"""The ledgers' coefficients handed to the simulation as numbers: what every step that can occur takes, and how the engine schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from breakeven import evaluator
from breakeven.demand import context_deviation
from breakeven.draws import MEDIAN, Draws
from breakeven.errors import NotModelledError
from breakeven.evaluator import Noise
from breakeven.ledger import prefill
from breakeven.ledger.step import step_time
from breakeven.setting import Setting
from breakeven.simulation.arrays import Costs, Engine, Floats
from breakeven.spec.deployment import Deployment
from breakeven.spec.model import Attention
from breakeven.stats import Array

FIRST_NODE, NODE_RATIO = 64.0, 1.25
LONGEST = 131072.0
"""Tokens of context to which steps are tabulated where neither the engine nor the model says; beyond, the last two nodes go on."""
TOKENLESS = 1 << 40
"""Tokens of a block where the model's cache takes none: a sequence is one block."""


def costs_of(d: Deployment, draws: Draws = MEDIAN) -> Costs:
    """Seconds of every step that one replica can take, in the median world or in one draw of it (``Draws(size=1, seed=…)``)."""
    if d.disaggregation is not None:
        raise NotModelledError("simulation_pools")
    x = evaluator.prepare(d, draws, Noise())
    contexts = nodes(d)
    decode = _decode_s(x, d, draws, contexts)
    plain = d if x.rows == 1 else replace(d, engine=replace(d.engine, speculative=None))
    speculation = np.maximum(decode - _decode_s(x, plain, draws, contexts), 0.0) if x.rows > 1 else np.zeros_like(decode)
    return Costs(contexts=contexts, decode_s=decode, speculation_s=speculation, **_prompt_costs(x, contexts))


def engine_of(d: Deployment, draws: Draws = MEDIAN) -> Engine:
    """How one replica schedules, and the blocks that the memory ledger leaves it."""
    x, engine = evaluator.prepare(d, draws, Noise()), d.engine
    ranks = x.shard.layout.ranks
    block_tokens, blocks, beside = _blocks(x)
    return Engine(
        cap=engine.max_num_seqs * ranks,
        token_budget=engine.max_num_batched_tokens * ranks,
        rows=x.rows,
        blocks=blocks,
        block_tokens=block_tokens,
        sequence_blocks=beside,
        max_model_len=engine.max_model_len or 0,
        reserve_whole=engine.kv_reserve == "whole",
        mixes_prompts=engine.enable_chunked_prefill or engine.mixes_prompts,
        prefix_cache=engine.enable_prefix_caching,
    )


def acceptance_of(d: Deployment, draws: Draws = MEDIAN) -> tuple[float, ...]:
    """Cumulative acceptance of each drafted position, at the workload's mean context; none without speculation."""
    spec = d.engine.speculative
    found = evaluator.curve(d, evaluator.prepare(d, draws, Noise()).demand.context_tokens, draws)
    if spec is None or found is None:
        return ()
    return tuple(_number(found.cumulative(position)) for position in range(1, spec.num_speculative_tokens + 1))


def nodes(d: Deployment) -> Floats:
    """Contexts at which steps are tabulated: 0, then a quarter apart, and wherever a layer stops seeing more."""
    longest = max(float(d.engine.max_model_len or 0), float(d.model.max_context or 0), 2 * FIRST_NODE) or LONGEST
    steps = int(np.ceil(np.log(longest / FIRST_NODE) / np.log(NODE_RATIO)))
    bends = {float(bend) for group in d.model.attention for bend in _bends(group)}
    return np.array(sorted({0.0, *(np.ceil(FIRST_NODE * NODE_RATIO**i) for i in range(steps + 1)), *bends}))


def _bends(g: Attention) -> list[int]:
    """Contexts at which a group of layers starts to see no more: its window is full, or its selection complete."""
    found = [g.window] if g.window is not None else []
    if g.selected is not None:
        found.append(g.selected * (g.compression or 1))
    return found


def _decode_s(x: Setting, d: Deployment, draws: Draws, contexts: Floats) -> Floats:
    """t_step over sequences and contexts; no step without a sequence."""
    load = x.demand
    cost = evaluator.priced(d, x.shard, x.efficiencies, draws, contexts[None, :], context_deviation(load, d.workload))
    batch = np.arange(1.0, d.engine.max_num_seqs * x.shard.layout.ranks + 1)[:, None]
    seconds = np.broadcast_to(x.factor * step_time(cost, batch), (len(batch), len(contexts)))
    return np.concatenate((np.zeros((1, len(contexts))), seconds))


def _prompt_costs(x: Setting, contexts: Floats) -> dict[str, Any]:
    """Seconds of prompts: beside decoding times ξ and over the stages, which work on other sequences meanwhile; alone as they are."""
    s, e = x.shard, x.efficiencies
    factor = x.prompt_factor
    dense, routed = _linear_s(x)
    beside = e.interference / s.pipeline_parallel
    wire = prefill.wire_s(s, e, 1.0)
    attention = np.broadcast_to(factor * (s.kv.prefill * prefill.attention_at_s(s, e, contexts) + wire), contexts.shape)
    return {
        "token_s": _number(beside * factor * dense),
        "expert_token_s": _number(beside * factor * routed),
        "attention_s": np.asarray(beside * attention),
        "alone_token_s": _number(factor * dense),
        "alone_expert_token_s": _number(factor * routed),
        "alone_attention_s": np.array(attention),
        "alone_read_s": _number(factor * s.kv.prefill * prefill.reads_s(s, e)),
        "alone_fixed_s": _number(factor * prefill.launches_s(s, e)),
        "start_s": _number(e.ttft_start_s),
        "ranks": s.layout.ranks,
    }


def _linear_s(x: Setting) -> tuple[Array | float, Array | float]:
    """Matrix time of one prompt token: of a rank's own, and of the experts that all ranks share (one number where there is one rank).

    The busiest device of expert parallelism is taken as in a step of the whole token budget.
    """
    s, e, budget = x.shard, x.efficiencies, float(x.deployment.engine.max_num_batched_tokens)
    if s.layout.ranks == 1:
        return s.kv.prefill * prefill.linear_s(s, e, budget) / budget, 0.0
    dense = prefill.linear_s(replace(s, expert_prefill_compute_s=0.0), e, budget)
    routed = prefill.linear_s(replace(s, dense_prefill_compute_s=0.0), e, budget, s.layout.ranks)
    return s.kv.prefill * dense / budget, s.kv.prefill * routed / (budget * s.layout.ranks)


def _blocks(x: Setting) -> tuple[int, int, int]:
    """Tokens of a block, blocks of all ranks, and those that a sequence takes for its states."""
    split, space = x.shard.layout, x.room
    block = x.deployment.engine.block_size * split.cache_shards
    if not space.kv_bytes_per_token:
        return TOKENLESS, int(_number(space.fits_sequences)), 0
    beside = int(np.ceil(space.state_bytes / (space.kv_bytes_per_token * block)))
    return block, int(space.pool_tokens // block) * split.ranks, beside


def _number(value: Array | float) -> float:
    """What may be an array of one."""
    return float(np.asarray(value).reshape(-1)[0])
