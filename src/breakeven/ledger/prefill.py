"""Prefill: what a prompt costs beside decode steps (chunked), and by itself."""

from __future__ import annotations

import numpy as np

from breakeven.efficiencies import Efficiencies
from breakeven.ledger import compute, experts, memory, wire
from breakeven.ledger.shard import Shard
from breakeven.ledger.step import smoothmax
from breakeven.spec.model import Attention
from breakeven.stats import Array


def new_tokens(prompt_tokens: Array | float, hit_rate: Array | float, block_size: int) -> Array | float:
    """Prompt tokens that are computed: I·(1 − h), and never fewer than the last block's (a whole prompt is never a hit).

    >>> float(new_tokens(1000.0, 0.5, 16)), float(new_tokens(1000.0, 1.0, 16))
    (500.0, 8.0)
    """
    last_block = prompt_tokens - np.floor(np.maximum(prompt_tokens - 1, 0) / block_size) * block_size
    return np.maximum(prompt_tokens * (1.0 - hit_rate), np.minimum(last_block, prompt_tokens))


def attention_flop(s: Shard, new: Array | float, prompt_tokens: Array | float) -> Array | float:
    """Attention FLOP of a prompt on one device, states and indexers included; cached tokens still cost attention over them.

    A prompt cut over PCP devices is cut so that each has as many pairs (the first piece with the last).
    """
    pairs = sum((g.layers * _pair_flop(g, s, new, prompt_tokens) for g in s.model.attention), 0.0)
    return (pairs + new * compute.state_flop_per_token(s.model)) / (s.tensor_parallel * s.layout.prefill_context)


def _pair_flop(g: Attention, s: Shard, new: Array | float, prompt_tokens: Array | float) -> Array | float:
    """Of all devices of a tensor group: they share the heads, and each runs the whole indexer."""
    attended = compute.prefill_flop_per_token_seen(g) * compute.pairs_attended(g, new, prompt_tokens)
    return attended + s.tensor_parallel * compute.index_flop_per_entry(g) * compute.pairs_indexed(g, new, prompt_tokens)


def prompt_flop(s: Shard, new: Array | float, prompt_tokens: Array | float) -> Array | float:
    """FLOP of a prompt on one device: matrices over the new tokens, attention over all of them."""
    return new * (s.dense_flop_per_row / s.layout.prefill_context + s.expert_flop_per_row) + attention_flop(s, new, prompt_tokens)


def expert_rows_of(s: Shard, e: Efficiencies, new: Array | float, prompts: int = 1) -> Array | float:
    """Rows that one prompt brings to the experts of a device, counted for all devices that share them: ``prompts`` ranks have one each.

    Under expert parallelism the busiest device has more than the mean.
    """
    rows = prompts * new
    if s.layout.expert_parallel == 1 or s.model.experts is None:
        return rows
    return rows * experts.busiest_load(rows, s.model.experts.top_k, s.layout.expert_parallel, s.expert_skew, e.expert_imbalance)


def linear_s(s: Shard, e: Efficiencies, new: Array | float, prompts: int = 1) -> Array | float:
    """Matrix time of the new tokens: dense and expert classes each at their own MFU; ``prompts`` ranks run one each, together."""
    dense, routed = s.dense_prefill_compute_s / e.prefill_mfu_dense, s.expert_prefill_compute_s / e.prefill_mfu_experts
    if s.layout.devices == s.tensor_parallel * s.pipeline_parallel and s.layout.expert_parallel == 1:
        return new * (dense + routed)
    return new / s.layout.prefill_context * dense + expert_rows_of(s, e, new, prompts) * routed


def shared_s(s: Shard, e: Efficiencies, new: Array | float, prompt_tokens: Array | float) -> Array | float:
    """T_mix: compute, attention and communication of a prompt whose chunks ride with decode steps, which pay weights and launches.

    Ranks of attention data parallelism step together, so that a prompt on each takes the time once.
    """
    return s.kv.prefill * (linear_s(s, e, new, s.layout.ranks) + _attention_s(s, e, new, prompt_tokens)) + wire_s(s, e, new)


def alone_s(s: Shard, e: Efficiencies, new: Array | float, prompt_tokens: Array | float, prompts: int = 1) -> Array | float:
    """T_pf: the same with weight reads and launches of its own; ``prompts`` ranks run one each, together."""
    linear = smoothmax(linear_s(s, e, new, prompts), reads_s(s, e))
    return s.kv.prefill * (linear + _attention_s(s, e, new, prompt_tokens)) + wire_s(s, e, new) + launches_s(s, e)


def reads_s(s: Shard, e: Efficiencies) -> Array | float:
    """Weight reads of a step that holds prompts alone."""
    weights = s.dense_effective_bytes / e.bandwidth_dense + s.expert_effective_bytes / e.bandwidth_experts
    return weights / s.bandwidth_bytes_per_s


def launches_s(s: Shard, e: Efficiencies) -> Array | float:
    """Launches and messages of such a step."""
    return s.model.launch_layers * e.ttft_layer_s + wire.message_s(s, e, prompt=True)


def attention_at_s(s: Shard, e: Efficiencies, position: Array | float) -> Array | float:
    """Seconds of attention of the one prompt token at a position: what :func:`attention_flop` adds up, token by token.

    It bends only where a window is full or a selection complete.
    """
    attended = sum((g.layers * _flop_at(g, s, position) for g in s.model.attention), 0.0 * position)
    flop = (attended + compute.state_flop_per_token(s.model)) / (s.tensor_parallel * s.layout.prefill_context)
    return flop / (s.flops_16_bit * e.prefill_mfu_attention)


def _flop_at(g: Attention, s: Shard, position: Array | float) -> Array | float:
    attended = compute.prefill_flop_per_token_seen(g) * memory.entries_attended(g, position)
    return attended + s.tensor_parallel * compute.index_flop_per_entry(g) * memory.entries_indexed(g, position)


def _attention_s(s: Shard, e: Efficiencies, new: Array | float, prompt_tokens: Array | float) -> Array | float:
    return attention_flop(s, new, prompt_tokens) / (s.flops_16_bit * e.prefill_mfu_attention)


def wire_s(s: Shard, e: Efficiencies, new: Array | float) -> Array | float:
    """Seconds that the rows of a prompt are on the wire."""
    return wire.rows_s(s, e, new / s.layout.prefill_context, prompt=True)
