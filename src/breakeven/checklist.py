"""The five things a decision needs before it deserves trust."""

from __future__ import annotations

from breakeven.advice import CheckItem
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment


def checklist(d: Deployment, kv_share: float) -> tuple[CheckItem, ...]:
    """Each item with its evidence, or how to get it. A step time is never an input, so the fourth waits for a measurement."""
    batch = any(d.provenance.get(f"workload.{name}") == "measured" for name in ("batch", "concurrency"))
    hits = d.workload.prefix_hit_rate is not None
    accepted = d.workload.acceptance is not None
    return (
        _item("effective_batch_measured", batch, "measured" if batch else "predicted"),
        _item("kv_share_computed", True, "computed", share=kv_share),
        _item("prefix_hit_rate_known", hits, "given" if hits else "unknown"),
        _item("draft_acceptance_and_step_time_known", False, "acceptance_only" if accepted else "unknown"),
        _item("ledgers_recomputed_after", False, "nothing_after"),
    )


def _item(name: str, done: bool, evidence: str, **values: object) -> CheckItem:
    return CheckItem(
        id=name,
        status="done" if done else "missing",
        evidence=Message(f"judge.check_{name}_{evidence}", values),
        how=Message(f"judge.check_{name}_how", {}),
    )
