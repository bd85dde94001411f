"""The five items of the check-list say no more than is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.checklist import checklist
from breakeven.messages import text
from breakeven.origin.resolve import resolve
from breakeven.spec.deployment import Deployment
from breakeven.spec.observed import Observed
from breakeven.spec.workload import Acceptance
from breakeven.stats import Range, Value

IDS = [
    "effective_batch_measured",
    "kv_share_computed",
    "prefix_hit_rate_known",
    "draft_acceptance_and_step_time_known",
    "ledgers_recomputed_after",
]


def deployment(**flags: object) -> Deployment:
    return resolve(flags={"model": "llama-3.1-8b", "hardware": "h100-sxm", "input": 1000, "output": 200, "batch": 8, **flags}).deployment


def done(d: Deployment) -> list[str]:
    return [item.id for item in checklist(d, 0.2) if item.status == "done"]


def test_the_items_are_the_five() -> None:
    assert [item.id for item in checklist(deployment(), 0.2)] == IDS


def test_a_batch_that_is_stated_is_not_measured() -> None:
    d = deployment()
    assert done(d) == ["kv_share_computed"]
    measured = replace(d, provenance={**d.provenance, "workload.batch": "measured"})
    assert "effective_batch_measured" in done(measured)


@pytest.mark.parametrize("given", [0.3, 0.0, Range(low=0.1, high=0.5)])
def test_a_hit_rate_that_is_given_is_known_as_a_range_too(given: Value) -> None:
    d = deployment()
    assert "prefix_hit_rate_known" in done(replace(d, workload=replace(d.workload, prefix_hit_rate=given)))


def test_an_acceptance_without_a_measured_step_leaves_its_item_open() -> None:
    d = deployment()
    item = checklist(replace(d, workload=replace(d.workload, acceptance=Acceptance(length=2.4))), 0.2)[3]
    assert item.status == "missing" and item.evidence.key.endswith("acceptance_only")


AFTER = Observed(target="a", start="b", end="c", seconds=60.0, tpot_s=0.01, model_tpot_s=0.011, corrects=True)


@pytest.mark.parametrize(
    ("seen", "status", "evidence"),
    [
        (AFTER, "done", "after"),
        (replace(AFTER, differs=("engine.dtype",), corrects=False), "missing", "before"),
        (replace(AFTER, tpot_s=None), "missing", "nothing_after"),
        (replace(AFTER, model_tpot_s=None), "missing", "does_not_fit"),
        (replace(AFTER, far=4.2), "missing", "far"),
    ],
)
def test_ledgers_are_recomputed_where_the_model_does_not_contradict_what_ran(seen: Observed, status: str, evidence: str) -> None:
    item = checklist(replace(deployment(), observed=seen), 0.2)[4]
    assert (item.status, item.evidence.key) == (status, f"judge.check_ledgers_recomputed_after_{evidence}")
    assert all("{" not in text(item.evidence, language) for language in ("en", "zh"))
