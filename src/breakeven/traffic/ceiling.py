"""What prefix caching could save at most: repeated prefill compute over all compute, in FLOP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from breakeven.draws import MEDIAN
from breakeven.ledger import prefill
from breakeven.ledger.shard import Shard, shard
from breakeven.ledger.step import attention_flop
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array
from breakeven.trace import Ints, Trace

UNSPLIT: Mapping[str, Any] = {
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "data_parallel_size": 1,
    "decode_context_parallel_size": 1,
    "prefill_context_parallel_size": 1,
    "enable_expert_parallel": False,
}


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Shares of the work of a trace that was done before, at the hits given."""

    tokens: float
    """Of all prompt tokens."""
    prefill: float | None
    """Of the FLOP of all prompts; None without a model."""
    total: float | None
    """Of the FLOP of prompts and outputs; None without a model, or where the trace tells no outputs."""
    prefill_flop: float | None
    decode_flop: float | None
    """Of the model, however it is split over devices: of the prompts, and of the outputs."""
    notes: tuple[Message, ...] = ()


def ceiling(trace: Trace, hit_tokens: Ints, deployment: Deployment | None = None) -> Ceiling:
    """Repeated prefill compute over total compute, Σ (F(I, I) − F(I − h, I)) / Σ (F(I, I) + decode(I, O)).

    F(n, I) are the FLOP of a prompt of I tokens of which the last n are computed, so that cached tokens still cost attention over them.
    ``hit_tokens`` are those of each request: of a cache without end for the ceiling, of one of some size for what it gives.
    """
    tokens = float(hit_tokens.sum() / trace.input_tokens.sum())
    if deployment is None:
        note = Message("reuse.no_model", {"path": trace.name})
        return Ceiling(tokens=tokens, prefill=None, total=None, prefill_flop=None, decode_flop=None, notes=(note,))
    # Of a device of a split model, ranks and stages would count what others do, and experts weigh otherwise than attention.
    s = shard(replace(deployment, engine=replace(deployment.engine, **UNSPLIT)), MEDIAN)
    prompts = trace.input_tokens.astype(np.float64)
    whole = np.asarray(prefill.prompt_flop(s, prompts, prompts)).sum()
    computed = np.asarray(prefill.prompt_flop(s, prompts - hit_tokens, prompts)).sum()
    decoded = None if trace.output_tokens is None else float(np.sum(decode_flop(s, prompts, trace.output_tokens.astype(np.float64))))
    return Ceiling(
        tokens=tokens,
        prefill=float(1 - computed / whole),
        total=None if decoded is None else float((whole - computed) / (whole + decoded)),
        prefill_flop=float(whole),
        decode_flop=decoded,
        notes=() if decoded is not None else (Message("reuse.no_outputs", {"path": trace.name}),),
    )


def decode_flop(s: Shard, prompt_tokens: Array | float, output_tokens: Array | float) -> Array | float:
    """FLOP of one request's decoding on one device: O − 1 steps (the first token is the prompt's), each at the mean context I + O/2.

    Exact where attention grows with the context; rejected drafts are not counted.
    """
    linear = s.dense_flop_per_row + s.expert_flop_per_row + s.head_flop_per_row
    steps = np.maximum(output_tokens - 1, 0)
    return steps * (linear + attention_flop(s, prompt_tokens + output_tokens / 2, 1))
