"""Pages recorded from real engines while a client of known requests used them: what is observed equals what that client sent and got."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_pages import observed

from breakeven.observation import page as pages
from breakeven.observation import slots, summary
from breakeven.observation.record import Record
from breakeven.observation.scrape import Read
from breakeven.origin.evidence_layer import evidence_layer
from breakeven.spec.evidence import Evidence, Told

PAGES = Path(__file__).parent / "pages"
EVERY_S = 4.0


def evidence(engine: str, version: str) -> Evidence:
    record = Record(every_s=EVERY_S)
    for place, moment in enumerate(("before", "amid", "after")):
        body = (PAGES / engine / f"{version}-four-clients-{moment}.txt").read_bytes()
        record.add(Read(source="http://one", at_s=1_796_000_000.0 + place * EVERY_S, page=pages.read(body, "text/plain; version=0.0.4")))
    return summary.summarised(record.timeline(), Told(engine=engine), target="http://one", source="live")


def held(said: object) -> float:
    """Tokens that the slots which decode hold together."""
    return sum(one.value for one in slots.told(said) if one.quantity == "decode_context_tokens")


def test_vllm_counts_the_requests_tokens_and_hits_of_its_client() -> None:
    found = evidence("vllm", "0.32")
    assert found.counts["requests_finished"] == 12
    assert found.counts["prompt_tokens"] == found.counts["prefix_queries"] == 12 * 296
    assert found.counts["prompt_tokens_cached"] == found.counts["prefix_hits"] == 12 * 256
    assert found.counts["output_tokens"] == 12 * 60
    assert found.counts["step_tokens_sum"] == 12 * (296 - 256 + 60)
    assert found.figures["prefix_hit_rate"].value == pytest.approx(256 / 296)
    assert sum(found.acceptance_cumulative) * found.counts["drafts"] == pytest.approx(found.counts["accepted_tokens"])
    assert found.levels["running"].values[-1] == 4


def test_llamacpp_counts_the_tokens_hits_and_drafts_of_its_client() -> None:
    found = evidence("llamacpp", "2026.10")
    assert found.counts["output_tokens"] == 10 * 100
    # By the timings of the client's ten answers.
    assert (found.counts["prompt_tokens_computed"], found.counts["prompt_tokens_cached"]) == (624, 576)
    assert (found.counts["draft_tokens"], found.counts["accepted_tokens"]) == (1020, 650)
    assert sum(found.acceptance_cumulative) * found.counts["drafts"] == pytest.approx(650)
    assert found.figures["batch_in_step"].value == pytest.approx(4, rel=0.2)


def test_llamacpps_slots_tell_the_context_that_its_metrics_do_not() -> None:
    said = json.loads((PAGES.parent / "slots/llamacpp-four-clients.json").read_text(encoding="utf-8"))
    # Three slots have 120 tokens of prompt and 19 that came, the last of them not cached yet; the fourth is a token ahead.
    assert held(said) == 3 * 138 + 139


def test_llamacpps_slots_tell_the_tokens_that_no_counter_has_before_a_request_ends() -> None:
    said = json.loads((PAGES.parent / "slots/llamacpp-four-clients.json").read_text(encoding="utf-8"))
    record = Record(every_s=EVERY_S)
    for place, moment in enumerate(("before", "amid")):
        page = pages.read((PAGES / f"llamacpp/2026.10-four-clients-{moment}.txt").read_bytes(), "text/plain; version=0.0.4")
        readings = (*page.readings, *(slots.told(said) if place else ()))
        record.add(Read(source="http://one", at_s=1_796_000_000.0 + place * EVERY_S, page=replace(page, readings=readings)))
    found = summary.summarised(record.timeline(), Told(engine="llamacpp"), target="http://one", source="live")
    assert found.counts["output_tokens"] == 0
    assert found.figures["output_tokens_per_s"].value == pytest.approx((3 * 19 + 20) / EVERY_S)
    assert found.figures["prompt_share"].value == 1.0, "4.8 s of steps that read prompts, more than the readings are put apart here"
    assert [(one.quantity, one.value) for one in slots.told(said)] == [
        ("running_decode", 4.0),
        ("decode_output_tokens", 77.0),
        ("decode_context_tokens", 553.0),
    ]


def test_a_recorded_slot_that_waits_for_its_prompt_does_not_decode(shared: Path) -> None:
    said = json.loads((shared / "snapshots/llama_slots_load.json").read_text(encoding="utf-8"))
    assert sum(slot["is_processing"] for slot in said) == 1
    assert [one.value for one in slots.told(said)] == [0.0, 0.0, 0.0]


def test_recorded_seconds_of_prompts_are_those_of_steps_not_of_slots(shared: Path) -> None:
    found = summary.summarised(
        observed(shared, ("llama_metrics_load.txt", "llama_metrics_after.txt")), Told(engine="llamacpp"), target="a", source="live"
    )
    # Eight prompts of 64 tokens in 1.65 s: a slot of its own took 8.2 s for one, by its response's timings.
    assert found.figures["prompt_share"].value * found.seconds == pytest.approx(58.7763 - 57.1261)
    assert found.counts["prompt_tokens_computed"] == 8 * 64 and found.figures["batch_in_step"].value == pytest.approx(8.0, abs=0.01)
    alone = json.loads((shared / "snapshots/llama_timings.json").read_text(encoding="utf-8"))
    assert alone["prompt_n"] == 64 and alone["prompt_ms"] / 1000 > 1.6502


@pytest.mark.parametrize("said", [None, {}, [], [None, 3, {}], [{"is_processing": True, "next_token": [], "n_prompt_tokens": "7"}]])
def test_slots_of_another_form_tell_nothing(said: object) -> None:
    assert held(said) == 0


def test_a_slot_that_reads_its_prompt_tells_nothing_yet() -> None:
    assert held([{"is_processing": True, "n_prompt_tokens": 120, "next_token": [{"n_decoded": 0}]}]) == 0


def test_a_slot_that_waits_for_a_request_holds_the_last_one_s_tokens_and_is_not_counted() -> None:
    works = {"is_processing": True, "n_prompt_tokens": 120, "next_token": [{"n_decoded": 5}]}
    assert held([works, {**works, "is_processing": False, "n_prompt_tokens": 900}]) == 120


def test_an_engine_that_ended_no_request_meanwhile_stands_at_its_measured_batch() -> None:
    found = evidence("vllm", "0.32")
    rate = replace(found.figures["request_rate_per_s"], value=0.0)
    layer = evidence_layer(replace(found, figures={**found.figures, "request_rate_per_s": rate}))
    assert layer.table["workload.batch"].value == found.figures["batch_in_step"].value
    assert "workload.request_rate" not in layer.table
    assert [note.key for note in layer.notes] == ["warning.evidence_none_ended"]
