"""Public reports of what a lever did, every row of them put to the product, and its verdict held to the report's.

How a row becomes deployments is in ``case_words``, ``case_loads``, ``case_arms`` and ``case_sides``; what counts as right is in
``case_mapping`` and ``case_score``:

- pays: the median gain is 1.05 or more · hurts: below 0.98 · does_not_pay: between · boundary: so at the stated points on both sides;
- on every device, model, k or format in turn that a row lists or leaves open;
- undecided at a threshold of 5 % is right where an input that the row itself calls for is not in it, and the product says what to measure;
- a loss is also met by a refusal of the support matrix (no kernel, no unit, it would run on the processor); a format that the product
  does not know at all is no answer;
- not_enough_information: undecided with what to measure, or the line that asks for the device or the model that is missing.

Binding are rows of high and medium confidence that name a device and a model; the others are listed apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from case_mapping import absent, is_binding
from case_score import Scored, read_cases, score, scored, share, table
from published_models import ModelOf

LEAST_SHARE = 0.85
DIFFERS: Mapping[str, str] = {
    "wq-awq-llama3-8b-trt": "TensorRT-LLM's AWQ kernel takes a step at batch 8 (0.75 measured elsewhere); ours has one kernel for all",
    "wq-fp8-scout-8xh200": "1.16 against 1.03 to 1.09 measured: at TP8 a step of 9.1 ms is fixed costs, of which the prior has too little",
    "kv-fp8-qwen3.5-35b-sm90": "1.00 against 0.964 measured: what an fp8 cache adds a layer at head width 256 is not told apart",
    "sd-gptoss-eagle-b200": "480 in flight: verification is bound by compute whatever is accepted: hurts; the report has no baseline",
    "cb-trt-maxutil-70b": "eviction and computing again are no cost of a growing cache, and its policy is no lever",
}
"""Binding rows that come out otherwise, and the mechanism; a row that comes right must leave it."""
OTHERS_DIFFER: Mapping[str, str] = {
    "sd-draft-qwen3-k-sweep": "neither the acceptance of Chinese prompts nor a change of engine between the arms is in the model",
    "sd-mtp-qwen3.6-27b-ctx": "acceptance at position 1 is all that is given; that a reused MTP layer falls off faster behind it is not",
    "sd-glm45air-batch-curve": "a fork's IQ1 kernels multiply two rows at three times the time of one: GEMV against GEMM of a build",
    "kv-q8q4-asym-prefill": "a cache of two types is refused as not modelled, whatever it costs",
    "wq-awq-vllm-2023": "the first AWQ kernel read its weights slowly even at batch 1; the unnamed 4-bit family does not",
    "sd-disabled-not-free": "drafting that is configured and switched off is no setting",
}
"""The same of the rows that do not bind."""


@pytest.fixture(scope="module")
def scores(shared: Path) -> dict[str, Scored]:
    return {row.id: row for row in score(shared)}


def binding(scores: dict[str, Scored]) -> list[Scored]:
    return [row for row in scores.values() if row.binding]


def others(scores: dict[str, Scored]) -> list[Scored]:
    return [row for row in scores.values() if not row.binding]


def test_every_row_of_the_file_is_scored_or_is_an_exact_test(shared: Path, scores: dict[str, Scored]) -> None:
    assert list(scores) == [str(row["id"]) for row in read_cases(shared)]
    exact = [row for row in scores.values() if row.right is None]
    assert {row.verdict_class for row in exact} == {"fixture"}
    assert all(row.outcomes or row.reason for row in scores.values() if row.right is not None)


def test_the_right_class_comes_out_on_85_percent_of_the_rows_that_bind(scores: dict[str, Scored]) -> None:
    right, rows = share(binding(scores))
    assert rows >= 30
    assert right / rows >= LEAST_SHARE, table(binding(scores))


def test_most_of_them_are_right_by_their_gain_and_not_by_being_undecided(scores: dict[str, Scored]) -> None:
    firm = [row for row in binding(scores) if row.right and not any(o.came == "undecided" for o in row.outcomes)]
    assert len(firm) >= 0.7 * len(binding(scores)), table(binding(scores))


def test_the_opposite_of_what_was_reported_would_be_wrong_on_seven_rows_in_ten(shared: Path, model_of: ModelOf) -> None:
    opposite = {"pays": "hurts", "hurts": "pays", "does_not_pay": "pays"}
    rows = [row for row in read_cases(shared) if is_binding(row) and row["verdict_class"] in opposite]
    turned = [scored({**row, "verdict_class": opposite[str(row["verdict_class"])]}, model_of) for row in rows]
    right, count = share(turned)
    assert count >= 20
    assert right / count <= 0.30, table(turned)


def test_rows_that_differ_are_those_whose_mechanism_is_written_down(scores: dict[str, Scored]) -> None:
    wrong = {row.id for row in binding(scores) if row.right is False}
    assert wrong == set(DIFFERS), "a row that comes right now leaves the list; one that goes wrong needs its mechanism"
    assert {row.id for row in others(scores) if row.right is False} == set(OTHERS_DIFFER)


def test_what_is_not_enough_information_is_answered_by_what_to_measure_or_to_state(scores: dict[str, Scored]) -> None:
    unanswerable = [row for row in scores.values() if row.verdict_class == "not_enough_information"]
    assert len(unanswerable) >= 5
    for row in unanswerable:
        if row.id in DIFFERS:
            continue
        assert row.right, row
        assert row.reason.startswith(("no hardware", "no model")) or (row.reason.startswith("measure ") and ": " in row.reason), row


def test_undecided_counts_only_where_the_row_lacks_what_it_calls_for_itself(shared: Path, scores: dict[str, Scored]) -> None:
    rows = {str(row["id"]): row for row in read_cases(shared)}
    undecided = [
        (name, o) for name, row in scores.items() for o in row.outcomes if o.came == "undecided" and o.want != "not_enough_information"
    ]
    assert undecided
    for name, o in undecided:
        assert absent(rows[name]), name
        assert o.why.startswith("measure "), (name, o)


def test_rows_that_cannot_be_put_to_the_product_have_a_reason_of_a_kind_and_are_few(scores: dict[str, Scored]) -> None:
    reasons = Counter(row.reason.split(":")[0] for row in scores.values() if row.ours == "not encodable")
    assert reasons == {"no lever for it": 1, "drafting that is configured and switched off by a threshold is no setting": 1}


def test_a_refusal_meets_a_loss_only_by_a_rule_of_the_support_matrix(scores: dict[str, Scored]) -> None:
    refused = [o for row in scores.values() for o in row.outcomes if o.came in ("not_supported", "not_modelled")]
    assert {o.came for o in refused} == {"not_supported", "not_modelled"}
    assert not [o for o in refused if o.came == "not_modelled" and o.right]
    assert not [o for o in refused if o.right and o.want not in ("hurts", "no_gain")]
    assert all(o.why for o in refused)
