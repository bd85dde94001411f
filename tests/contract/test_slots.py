"""llama.cpp counts no requests, and slots that read prompts are busy: what is made of its tokens, seconds and slots is near the truth."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from slot_engine import SlotEngine, Watched, watch

import breakeven as be
from breakeven import api, observe_report
from breakeven.advisor import Question, best_arms
from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.observation import edges, little, slots, summary
from breakeven.observation.quantities import Quantities
from breakeven.origin.evidence_layer import evidence_layer
from breakeven.renderers import terminal
from breakeven.spec.evidence import Evidence, Figure, Told

LONG = [(500, 20)] * 400
SHORT = [(40, 200)] * 400
FLAGS = {"model": "llama-3.1-8b", "hardware": "rtx-4090"}
TOLD = Told(engine="llamacpp", settings={"max_num_seqs": 4, "max_model_len": 4096})


def evidence(seen: Watched) -> Evidence:
    return summary.summarised(seen.record.timeline(), TOLD, target="http://one", source="live")


def varied(seed: int, prompt: int, output: int) -> list[tuple[int, int]]:
    drawn = random.Random(seed)
    return [(drawn.randrange(prompt // 2, prompt * 3 // 2), 1 + int(drawn.expovariate(1.0 / output))) for _ in range(3000)]


class TestTheBatch:
    @pytest.mark.parametrize("requests", [LONG, SHORT, varied(1, 1200, 80), varied(2, 100, 150)], ids=["long", "short", "varied", "chatty"])
    @pytest.mark.parametrize("seconds", [40.0, 200.0])
    def test_is_of_slots_that_decode_not_of_those_that_read_prompts(self, requests: list[tuple[int, int]], seconds: float) -> None:
        seen = watch(SlotEngine(list(requests)), seconds)
        found = evidence(seen).figures["effective_batch"]
        assert found.value == pytest.approx(seen.batch, rel=0.1)
        assert found.low is not None and found.high is not None and found.low - 0.02 <= seen.batch <= found.high + 0.02

    def test_is_far_below_the_busy_slots_where_prompts_are_long(self) -> None:
        seen = watch(SlotEngine(list(LONG)), 200.0)
        found = evidence(seen)
        assert seen.batch < 1.0 and found.levels["running"].values == (4.0,)
        assert found.figures["effective_batch"].value < 1.0

    def test_of_a_build_that_shows_no_lengths_is_without_what_its_slots_spent_on_prompts(self) -> None:
        seen = watch(SlotEngine(list(LONG), old=True), 200.0, shows_slots=False)
        found = evidence(seen).figures["effective_batch"]
        assert found.low is not None and found.high is not None and found.low - 0.02 <= seen.batch <= found.high + 0.02
        assert found.value < 1.0

    def test_by_busy_steps_of_such_a_build_is_as_near(self) -> None:
        seen = watch(SlotEngine(varied(6, 600, 60), old=True), 200.0, shows_slots=False)
        [busy] = [one for one in evidence(seen).estimators["effective_batch"] if one.how == "observed.how_busy_steps_share"]
        assert seen.batch < 3.5 and busy.value == pytest.approx(seen.batch, rel=0.15)

    def test_by_slots_has_idle_time_in_it(self) -> None:
        seen = watch(SlotEngine([(40, 200)] * 8), 80.0, warm=1.0)
        [sampled] = [one for one in evidence(seen).estimators["effective_batch"] if one.how == "observed.how_decoding_slots"]
        assert seen.batch < 1.2 and sampled.value == pytest.approx(seen.batch, rel=0.15)

    def test_that_lies_within_the_interval_of_another_is_not_contradicted_by_it(self) -> None:
        best = Figure(value=2.3, low=2.2, high=2.4, sure="derived", how="observed.how_decode_seconds_slots")
        other = Figure(value=3.4, low=2.2, high=3.5, sure="derived", how="observed.how_busy_steps_share")
        assert little.disagreements("effective_batch", (best, other), 60.0) == ()
        assert little.disagreements("effective_batch", (best, replace(other, low=3.3)), 60.0) != ()

    def test_where_slots_are_hidden_the_interval_holds_it(self) -> None:
        seen = watch(SlotEngine(list(LONG)), 60.0, shows_slots=False)
        found = evidence(seen).figures["effective_batch"]
        assert found.low is not None and found.high is not None and found.low <= seen.batch <= found.high

    def test_contradicts_nothing(self) -> None:
        found = evidence(watch(SlotEngine(varied(5, 600, 60)), 100.0))
        assert not {one.key for one in found.warnings} & {f"observed.warn_{name}" for name in ("differ_effective_batch", "unseen", "cut")}

    def test_in_a_step_is_of_busy_slots_alone_where_no_prompt_was_read(self) -> None:
        reading, none = evidence(watch(SlotEngine(list(LONG)), 60.0)), evidence(watch(SlotEngine([(40, 5000)] * 3, clients=3), 6.0))
        assert reading.figures["batch_in_step"].how == "observed.how_written_per_step"
        assert none.figures["batch_in_step"].how == "observed.how_sequence_steps"
        assert none.figures["batch_in_step"].value == pytest.approx(3.0)


class TestTokens:
    @pytest.mark.parametrize("requests", [LONG, SHORT, varied(3, 800, 120)], ids=["long", "short", "varied"])
    def test_a_second_are_those_of_the_window_though_they_are_counted_at_an_end(self, requests: list[tuple[int, int]]) -> None:
        seen = watch(SlotEngine(list(requests)), 30.0)
        found = evidence(seen).figures["output_tokens_per_s"]
        assert found.value == pytest.approx(seen.tokens_per_s, rel=0.01) and found.how == "observed.how_rate_under_way"

    def test_are_told_where_not_one_request_ends(self) -> None:
        seen = watch(SlotEngine([(40, 5000)] * 3, clients=3), 30.0)
        found = evidence(seen)
        assert found.figures["output_tokens_per_s"].value == pytest.approx(seen.tokens_per_s, rel=0.01)
        assert found.figures["effective_batch"].value == pytest.approx(3.0)

    def test_of_a_server_that_began_anew_are_not_mended_by_what_was_under_way(self) -> None:
        timeline = watch(SlotEngine(list(SHORT)), 20.0).record.timeline()
        fallen = [replace(one, values=one.values[::-1]) if one.quantity == "steps" else one for one in timeline.series]
        found = summary.summarised(replace(timeline, series=tuple(fallen)), TOLD, target="http://one", source="live")
        assert found.figures["output_tokens_per_s"].how == "observed.how_rate_at_end"

    def test_of_a_reading_that_tells_no_running_requests_are_not_taken_as_those_of_an_idle_server(self) -> None:
        """The page came without the gauge, so that no slots were asked: what they had written by then is not known."""
        timeline = watch(SlotEngine([(40, 5000)] * 3, clients=3), 30.0).record.timeline()
        gauges = {"running", "running_decode", "decode_output_tokens", "decode_context_tokens"}
        cut = [replace(one, times=one.times[:-1], values=one.values[:-1]) if one.quantity in gauges else one for one in timeline.series]
        whole, untold = (Quantities(replace(timeline, series=tuple(some))) for some in (timeline.series, cut))
        assert edges.written(whole) is not None and edges.written(untold) is None

    def test_of_a_reading_with_nobody_running_are_none(self) -> None:
        timeline = watch(SlotEngine([(40, 100)] * 8), 60.0, warm=1.0).record.timeline()
        assert timeline.series and all(one.values[-1] == 0.0 for one in timeline.series if one.quantity == "running")
        found = edges.written(Quantities(timeline))
        assert found is not None and found.last == 0.0


class TestLengths:
    def test_of_the_context_are_of_slots_that_decode(self) -> None:
        found = evidence(watch(SlotEngine(list(LONG)), 200.0)).figures["context_tokens"]
        assert found.how == "observed.how_context_told" and found.value == pytest.approx(510, rel=0.02)

    @pytest.mark.parametrize(
        ("requests", "near"), [(LONG, 0.05), (SHORT, 0.1), (varied(4, 1000, 100), 0.25)], ids=["long", "short", "varied"]
    )
    def test_and_rate_are_made_of_tokens_and_of_what_slots_hold(self, requests: list[tuple[int, int]], near: float) -> None:
        seen = watch(SlotEngine(list(requests)), 400.0)
        found = evidence(seen).figures
        mean = [sum(parts) / len(requests) for parts in zip(*requests, strict=True)]
        assert found["input_tokens"].value == pytest.approx(mean[0], rel=near)
        assert found["output_tokens"].value == pytest.approx(mean[1], rel=near)
        assert found["request_rate_per_s"].value == pytest.approx(seen.requests_per_s, rel=near)
        assert found["request_rate_per_s"].sure == found["output_tokens"].sure == "derived"

    def test_are_not_told_where_long_prompts_have_short_answers_and_short_ones_long(self) -> None:
        found = evidence(watch(SlotEngine([(3000, 5), (20, 300)] * 400), 400.0)).figures
        assert "output_tokens" not in found and "request_rate_per_s" not in found

    def test_are_not_told_where_too_few_came_and_went(self) -> None:
        found = evidence(watch(SlotEngine(list(SHORT)), 8.0)).figures
        assert "output_tokens" not in found and "request_rate_per_s" not in found
        assert found["input_tokens"].value == pytest.approx(40, abs=1)

    def test_of_a_build_that_counts_no_cached_prompts_are_not_guessed(self) -> None:
        found = evidence(watch(SlotEngine(list(LONG), old=True), 200.0))
        assert not {"input_tokens", "output_tokens", "request_rate_per_s", "prompt_share"} & set(found.figures)

    def test_are_told_on_the_page_with_where_they_are_from(self) -> None:
        found = evidence(watch(SlotEngine(list(LONG)), 200.0))
        said = " ".join(terminal.render(observe_report.compose(found)).split())
        assert "prompt tokens a second over the prompt that slots hold" in said and "steps that read prompts take" in said


class TestAdvice:
    def test_is_of_the_rate_and_the_lengths_and_says_what_they_are_made_of(self) -> None:
        found = evidence(watch(SlotEngine(list(LONG)), 200.0))
        d, warnings = be.load(evidence=found, flags=FLAGS)
        assert d.workload.request_rate == found.figures["request_rate_per_s"].value and d.workload.batch is None
        assert d.workload.input_tokens == pytest.approx(500, rel=0.05)
        assert "warning.evidence_derived" in {one.key for one in warnings}
        assert "warning.evidence_derived" not in {one.key for one in be.load(evidence=found, flags={**FLAGS, "rate": 1})[1]}

    def test_takes_slots_for_those_of_one_cache_where_a_server_tells_as_many_as_it_has_by_itself(self) -> None:
        found = evidence(watch(SlotEngine(list(LONG)), 60.0))

        def unified(slots: int, **more: object) -> bool:
            told = replace(found.told, version="b9000", settings={**found.told.settings, "max_num_seqs": slots})
            return be.load(evidence=replace(found, told=told), **{"flags": FLAGS, **more})[0].engine.kv_unified

        assert unified(4) and not unified(8)
        assert not unified(4, launch="llama-server -m m.gguf -np 4") and not unified(4, flags={**FLAGS, "max_num_seqs": 4})
        assert not unified(4, flags={**FLAGS, "kv_unified": False}) and unified(8, flags={**FLAGS, "kv_unified": True})

    def test_of_a_batch_alone_says_that_prompts_are_not_in_it(self) -> None:
        found = evidence(watch(SlotEngine([(40, 5000)] * 3, clients=3), 30.0))
        d, warnings = be.load(evidence=found, flags=FLAGS)
        assert d.workload.batch == pytest.approx(3.0, abs=0.05) and d.workload.request_rate is None
        assert {"warning.evidence_no_requests"} <= {one.key for one in warnings}
        advice = be.advise(d, draws=32)
        assert advice.operating_point.prefill_share is None
        lever = advice.levers["prefix_cache"]
        assert lever.verdict == "undecided" and not lever.metrics and not lever.boundaries
        assert [one.key for one in lever.because] == ["lever.prefix_prompts_observed"]
        assert lever.measure_next is not None and "observe" in lever.measure_next.command

    def test_of_a_window_in_which_prompts_alone_were_read_is_refused(self) -> None:
        found = evidence(watch(SlotEngine([(100_000, 10)]), 30.0))
        assert found.figures["effective_batch"].value == 0.0 and found.figures["prompt_share"].value == pytest.approx(1.0, abs=0.05)
        assert (
            "prompts alone were read" in observe_report.compose(found).headline
            and "读 prompt" in observe_report.compose(found, "zh").headline
        )
        assert "workload.batch" not in evidence_layer(found).table
        with pytest.raises(InputError, match="--rate or --concurrency"):
            be.load(evidence=found, flags=FLAGS)

    def test_of_a_server_that_tells_no_lengths_asks_for_them_and_speaks_of_no_batch_that_nobody_pinned(self) -> None:
        found = evidence(watch(SlotEngine(list(SHORT), old=True), 60.0, shows_slots=False))
        with pytest.raises(InputError) as refused:
            be.load(evidence=found, flags=FLAGS)
        for language, counts in (("en", "llama.cpp counts no requests"), ("zh", "llama.cpp 不统计请求数")):
            said = text(refused.value.message, language)
            assert counts in said and "\n" not in said and all(flag in said for flag in ("--input", "--output", "--rate", "--context"))
            assert "pinned" not in said and "固定" not in said
        for typed in ({"context": 500}, {"input": 40, "output": 200}):
            d, _ = be.load(evidence=found, flags={**FLAGS, **typed})
            assert d.provenance["workload.batch"] == "measured"
        with pytest.raises(InputError, match=r"workload\.output_tokens: not told"):
            be.load(evidence=found, flags={**FLAGS, "input": 40})

    def test_of_an_idle_window_is_refused(self) -> None:
        found = evidence(watch(SlotEngine([]), 30.0))
        assert found.figures["prompt_share"].value == 0.0
        with pytest.raises(InputError, match="--rate or --concurrency"):
            be.load(evidence=found, flags=FLAGS)


def test_slots_that_show_no_lengths_tell_who_decodes_and_what_is_written() -> None:
    works = {"is_processing": True, "next_token": [{"n_decoded": 5}]}
    reads = {"is_processing": True, "next_token": [{"n_decoded": 0}]}
    told = {one.quantity: one.value for one in slots.told([works, reads, {"is_processing": False}])}
    assert told == {"running_decode": 1.0, "decode_output_tokens": 5.0}


@pytest.mark.parametrize("said", [None, {}, [], [None, 3, {}], [{"next_token": []}]])
def test_a_page_of_no_slots_tells_nothing(said: object) -> None:
    assert list(slots.told(said)) == []


class TestPromptsMeasured:
    @staticmethod
    def advised(hits: float, times: float | None = None) -> tuple[str, list[str]]:
        """The verdict on the prefix cache where prompts were measured to take so many times the model's share."""
        found = evidence(watch(SlotEngine(list(LONG)), 200.0))
        figures = {**found.figures, "prefix_hit_rate": replace(found.figures["prefix_hit_rate"], value=hits)}
        share = None
        if times is not None:
            d, _ = be.load(evidence=replace(found, figures=figures), flags=FLAGS)
            share = times * (be.advise(d, draws=16).operating_point.prefill_share or 0.0)
        changed = {"prompt_share": replace(found.figures["prompt_share"], value=share)} if share is not None else {}
        d, _ = be.load(evidence=replace(found, figures={**figures, **changed}), flags=FLAGS)
        lever = be.advise(d, draws=64).levers["prefix_cache"]
        return lever.verdict, [one.key for one in lever.because]

    @pytest.mark.parametrize(("times", "verdict"), [(0.3, "undecided"), (1.0, "does_not_pay"), (1.5, "does_not_pay"), (30.0, "undecided")])
    def test_a_share_of_the_time_far_from_the_model_s_leaves_the_prefix_cache_undecided(self, times: float, verdict: str) -> None:
        assert self.advised(0.02, times) == (verdict, ["lever.prefix_hits", "lever.prefix_share_measured"])

    @pytest.mark.parametrize(("times", "contradicted"), [(0.3, True), (1.0, False), (1.5, False), (30.0, True)])
    def test_with_the_cache_off_it_is_held_against_the_share_of_all_prompts_computed(self, times: float, contradicted: bool) -> None:
        """What ran had no hits: those that the cache would have take nothing from the share that was measured."""
        found = evidence(watch(SlotEngine([(3000, 20)] * 400), 400.0))
        flags = {**FLAGS, "enable_prefix_caching": False, "prefix_hit_rate": 0.9}
        off, _ = be.load(evidence=found, flags=flags)
        share = times * float(be.evaluate(off).prefill_share)
        changed = {**found.figures, "prompt_share": replace(found.figures["prompt_share"], value=share)}
        d, _ = be.load(evidence=replace(found, figures=changed), flags=flags)
        assert d.observed is not None and d.observed.corrects
        judged = best_arms(api.lever_named("prefix_cache"), d, Question(metric="e2e", threshold=0.1, draws=Draws(16, 0)))
        assert judged is not None and judged[0].contradicted == contradicted

    def test_where_nothing_comes_from_the_cache_nothing_hangs_on_it(self) -> None:
        assert self.advised(0.0, 30.0)[0] == "does_not_pay"
