"""The five things a decision needs before it deserves trust."""

from __future__ import annotations

from breakeven.advice import CheckItem
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.spec.observed import Observed


def checklist(d: Deployment, kv_share: float) -> tuple[CheckItem, ...]:
    """Each item with its evidence, or how to get it. A step time is never an input: the fourth and the fifth wait for an observation."""
    seen = d.observed
    batch = any(d.provenance.get(f"workload.{name}") == "measured" for name in ("batch", "concurrency"))
    observed = seen is not None and seen.effective_batch is not None
    hits = d.workload.prefix_hit_rate is not None
    how = "observed" if observed else "measured" if batch else "predicted"
    return (
        _item("effective_batch_measured", batch or observed, how, **_seen(seen)),
        _item("kv_share_computed", True, "computed", share=kv_share),
        _item("prefix_hit_rate_known", hits, _how(d, "prefix_hit_rate") if hits else "unknown"),
        _acceptance_and_step(d),
        _recomputed(seen),
    )


def _seen(seen: Observed | None) -> dict[str, object]:
    return {} if seen is None else {"batch": seen.effective_batch, "seconds": seen.seconds, "end": seen.end, "tpot": seen.tpot_s}


def _how(d: Deployment, name: str) -> str:
    return "measured" if d.provenance.get(f"workload.{name}") == "measured" else "given"


def _acceptance_and_step(d: Deployment) -> CheckItem:
    """The step time by observation; the acceptance by counters or as given."""
    name, seen, accepted = "draft_acceptance_and_step_time_known", d.observed, d.workload.acceptance is not None
    if seen is None or not seen.corrects:
        return _item(name, False, "acceptance_only" if accepted else "unknown")
    if accepted:
        return _item(name, True, "observed", **_seen(seen))
    return _item(name, False, "step_only", **_seen(seen))


def _recomputed(seen: Observed | None) -> CheckItem:
    """Done with an observation of the settings in force: one of other settings was taken before the last change, and one that the model
    contradicts is of something else than the ledgers are."""
    name = "ledgers_recomputed_after"
    if seen is None or seen.tpot_s is None:
        return _item(name, False, "nothing_after")
    if seen.differs:
        return _item(name, False, "before", settings=", ".join(seen.differs))
    if seen.corrects and seen.model_tpot_s is None:
        return _item(name, False, "does_not_fit", **_seen(seen))
    if seen.far is not None:
        return _item(name, False, "far", times=seen.far, **_seen(seen))
    return _item(name, True, "after", **_seen(seen))


def _item(name: str, done: bool, evidence: str, **values: object) -> CheckItem:
    return CheckItem(
        id=name,
        status="done" if done else "missing",
        evidence=Message(f"judge.check_{name}_{evidence}", values),
        how=Message(f"judge.check_{name}_how", {}),
    )
