"""Rules of thumb, kept and labelled: their figure here, and where each breaks."""

from __future__ import annotations

import numpy as np

from breakeven.advice import RuleOfThumb
from breakeven.evaluator import Point
from breakeven.ledger.bandwidth import amortised_bytes_per_token
from breakeven.messages import Message
from breakeven.statement import limited_by

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


def prefix_ceiling(repeated_prefill: float, total: float) -> float:
    """The most that prefix caching can save: repeated prefill compute over total compute.

    >>> prefix_ceiling(30.0, 100.0)
    0.3
    """
    return repeated_prefill / total


def rules(p: Point, gains: dict[str, float]) -> tuple[RuleOfThumb, ...]:
    """The rules at an operating point; ``gains`` are the levers' median gains for the objective, by lever."""
    batch = float(np.median(p.batch))
    weights = p.room.weight_bytes * p.shard.tensor_parallel * p.shard.pipeline_parallel
    held = float(np.median(p.batch * p.room.sequence_bytes)) / (p.room.pool_bytes + p.room.weight_bytes) if p.room.pool_bytes else 0.0
    few = batch < FEW_SEQUENCES
    demand = limited_by(p) == "demand"
    found = [
        _rule("amortised", float(amortised_bytes_per_token(weights, max(batch, 1e-9))), True),
        _rule("kv_below_10_percent", held, (held < SMALL_SHARE) == (gains.get("kv_quant", 1.0) < 1 + SMALL_SHARE)),
        _rule("batch_below_4", batch, not few or not demand or gains.get("batching", 1.0) < 1 + SMALL_SHARE),
        _rule("prefix_ceiling", prefix_ceiling(float(np.median(p.demand.hit_rate)) * float(np.median(p.prefill_share)), 1.0), True),
    ]
    if p.rows > 1:
        target = float(np.median(p.step_s))
        claimed = historical_speculation(p.rows - 1, target * 0.1, target, target)
        found.append(_rule("historical_speculation", claimed, (claimed > 1) == (gains.get("speculation", 1.0) > 1)))
    largest = max(gains.values(), default=1.0) - 1.0
    found.append(_rule("below_10_percent", largest, True))
    return tuple(found)


def _rule(name: str, value: float, agrees: bool) -> RuleOfThumb:
    return RuleOfThumb(
        id=name,
        value=value,
        says=Message(f"judge.rule_{name}", {"value": value}),
        breaks=Message(f"judge.rule_{name}_breaks", {}),
        agrees=agrees,
    )
