"""Rules of thumb, kept and labelled: their figure here, and where each breaks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from breakeven.advice import RuleOfThumb
from breakeven.evaluator import Point
from breakeven.ledger import prefill
from breakeven.ledger.bandwidth import amortised_bytes_per_token
from breakeven.ledger.memory import kv_share_of_memory
from breakeven.ledger.step import attention_flop, parts
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by
from breakeven.stats import Array

FEW_SEQUENCES = 4.0
SMALL_SHARE = 0.10


def historical_speculation(tokens: float, draft_s: float, target_s: float, verify_s: float) -> float:
    """(N·t_draft + t_target)/(t_verify + t_draft), as some write the speedup of speculation. No acceptance is in it.

    It grows with a slower draft, so its sign is wrong: at t_draft/t_target = 0.5 and 3 tokens it promises 1.67, while
    α = 0.6 gives τ/(1 + k·c) = 2.176/2.5, a loss.

    >>> round(historical_speculation(3, 0.5, 1.0, 1.0), 2), round((1 - 0.6**4) / (1 - 0.6) / (1 + 3 * 0.5), 2)
    (1.67, 0.87)
    """
    return (tokens * draft_s + target_s) / (verify_s + draft_s)


def prefix_ceiling(repeated_prefill: Array | float, total: Array | float) -> Array | float:
    """The most that prefix caching can save: repeated prefill compute over total compute.

    >>> prefix_ceiling(30.0, 100.0)
    0.3
    """
    return repeated_prefill / total


def ceiling_here(p: Point) -> float | None:
    """The prefix ceiling of the deployment: repeated prefill FLOP over all FLOP of a request; None where no hit rate is known."""
    prompt, output = p.demand.attention_input, p.demand.output_tokens
    if p.demand.input_tokens is None or output is None or not np.any(p.demand.hit_rate):
        return None
    s = p.shard
    whole = prefill.prompt_flop(s, prompt, prompt)
    row = s.dense_flop_per_row + s.expert_flop_per_row + s.head_flop_per_row
    decode = output * (row + attention_flop(s, p.demand.context_tokens, 1))
    return float(np.median(prefix_ceiling(whole - prefill.prompt_flop(s, p.demand.new_tokens, prompt), whole + decode)))


def draft_share(p: Point) -> float:
    """One drafted token's time over the rest of the round: t_draft/t_target."""
    share = parts(p.cost, p.batch)
    drafting = float(np.median(share["speculation"]))
    rest = sum(float(np.median(value)) for name, value in share.items() if name != "speculation")
    return drafting / (p.rows - 1) / rest


def rules(p: Point, d: Deployment, gains: Mapping[str, float]) -> tuple[RuleOfThumb, ...]:
    """The rules at an operating point; ``gains`` are the levers' median gains for the objective, by lever."""
    batch = float(np.median(p.batch))
    weights = p.room.weight_bytes * p.shard.layout.devices
    held = float(np.median(kv_share_of_memory(p.batch * p.room.sequence_bytes / p.cost.ranks, d.hardware.device.capacity_bytes)))
    few = batch < FEW_SEQUENCES and limited_by(p) == "demand"
    ceiling = ceiling_here(p)
    found = [
        _rule("amortised", float(amortised_bytes_per_token(weights, max(batch, 1e-9))), None),
        _rule("kv_below_10_percent", held, (held < SMALL_SHARE) == (gains.get("kv_quant", 1.0) < 1 + SMALL_SHARE)),
        _rule("batch_below_4", batch, gains.get("batching", 1.0) < 1 + SMALL_SHARE if few else None),
    ]
    if ceiling is not None:
        found.append(_rule("prefix_ceiling", ceiling, None))
    if p.rows > 1:
        claimed = historical_speculation(p.rows - 1, draft_share(p), 1.0, 1.0)
        found.append(_rule("historical_speculation", claimed, (claimed > 1) == (gains.get("speculation", 1.0) > 1)))
    found.append(_rule("below_10_percent", max(gains.values(), default=1.0) - 1.0, None))
    return tuple(found)


def _rule(name: str, value: float, agrees: bool | None) -> RuleOfThumb:
    return RuleOfThumb(
        id=name,
        value=value,
        says=Message(f"judge.rule_{name}", {"value": value}),
        breaks=Message(f"judge.rule_{name}_breaks", {}),
        agrees=agrees,
    )
