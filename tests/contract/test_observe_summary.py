"""What an observation says: recorded pages of real engines first, then pages made by hand where their truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest
from recorded_pages import from_nothing, observed
from synthetic_engine import Engine, Request, run

from breakeven import api, observe_report
from breakeven.adapter import Alias
from breakeven.document import json_schema
from breakeven.observation import page as pages
from breakeven.observation.record import Record
from breakeven.observation.scrape import Read
from breakeven.observation.summary import summarised
from breakeven.observation.timeline import Series, Timeline
from breakeven.renderers import json as as_json
from breakeven.renderers import markdown, terminal
from breakeven.spec.deployment import Deployment
from breakeven.spec.evidence import Evidence, Told
from breakeven.spec.workload import Workload

VLLM = ("vllm_metrics_idle.txt", "vllm_metrics_load.txt", "vllm_metrics_after.txt")
LLAMA = ("llama_metrics_idle.txt", "llama_metrics_load.txt", "llama_metrics_after.txt")


def evidence(timeline: Timeline, deployment: Deployment | None = None) -> Evidence:
    return summarised(timeline, Told(engine=timeline.engine), target="http://127.0.0.1:8000", source="live", deployment=deployment)


def keys(found: Evidence) -> set[str]:
    return {one.key.partition(".")[2] for one in found.warnings}


def made(quantity: str, values: list[float], *, split: str = "", biased: bool = False, labels: dict[str, str] | None = None) -> Series:
    alias = Alias(family=f"made:{quantity}", biased=biased)
    times = np.arange(len(values), dtype=float) * 2.0
    return Series(quantity=quantity, split=split, alias=alias, times=times, values=np.array(values), labels=labels or {})


def of(*some: Series) -> Evidence:
    last = max(float(one.times[-1]) for one in some)
    return evidence(Timeline(engine="vllm", series=some, start_s=0.0, end_s=last, readings=some[0].times.size, every_s=2.0))


class TestRecordedPages:
    def test_vllm_counts_are_the_differences_of_its_pages(self, shared: Path) -> None:
        found = evidence(observed(shared, VLLM))
        assert found.counts["output_tokens"] == 3696 and found.counts["prompt_tokens"] == 32824
        assert found.counts["requests_finished"] == found.counts["ttft_count"] == 156
        assert found.figures["effective_batch"].value == pytest.approx(182.47855988699712 / 40.0)
        assert found.figures["step_s"].value == pytest.approx(182.47855988699712 / 3540)
        assert found.figures["tpot_s"].value == pytest.approx(182.47855988699712 / (3696 - 156))
        assert found.figures["batch_in_step"].value == pytest.approx(3540 / 727)
        assert found.figures["prefix_hit_rate"].value == pytest.approx(11520 / 32824)
        assert found.figures["prefix_hit_rate"].how == "observed.how_hits_prompts"

    def test_vllm_drafts_are_told_in_three_forms_that_are_kept_apart(self, shared: Path) -> None:
        """Trap 4: accepted over drafted, tokens a round with the bonus, by position and cumulative."""
        found = evidence(observed(shared, ("vllm_metrics_idle.txt", "vllm_metrics_spec_after_ngram_k3.txt")))
        assert found.figures["acceptance_rate"].value == pytest.approx(3325 / 5838)
        assert found.figures["acceptance_length"].value == pytest.approx(1 + 3325 / 1954)
        assert found.acceptance_cumulative == pytest.approx((1257 / 1954, 1131 / 1954, 937 / 1954))
        assert found.figures["acceptance_length"].value == pytest.approx(1 + sum(found.acceptance_cumulative))
        assert found.figures["tokens_per_round"].value == pytest.approx((10206 - 219) / 6788)
        assert found.figures["drafted_share"].value == pytest.approx(1954 / 6788)

    def test_a_latency_under_speculation_is_of_a_chunk_and_the_time_per_token_is_less(self, shared: Path) -> None:
        """Trap 6: the mean latency between outputs is 119 ms where a token takes 81 ms."""
        found = evidence(observed(shared, ("vllm_metrics_idle.txt", "vllm_metrics_spec_after_ngram_k3.txt")))
        assert found.latencies["itl"].mean == pytest.approx(804.4326414329917 / 6788)
        assert found.figures["tpot_s"].value == pytest.approx(804.4326414329917 / (10206 - 219))
        assert found.figures["tpot_s"].value == pytest.approx(found.latencies["tpot"].mean, rel=0.02)
        page = terminal.render(observe_report.compose(found), width=100)
        assert "chunk of several tokens" in " ".join(page.split())

    def test_llamacpp_busy_slots_are_differenced_not_taken_as_they_stand(self, shared: Path) -> None:
        found = evidence(observed(shared, LLAMA[1:]))
        batch = found.figures["batch_in_step"]
        assert batch.how == "observed.how_sequence_steps" and found.counts["steps"] == 64
        assert batch.value == pytest.approx(8.0, abs=0.01), "8 clients; the page's own mean since the start says 11.6"
        assert batch.low is not None and batch.high is not None and batch.low < 8.0 < batch.high

    def test_llamacpp_hides_latencies_and_says_what_to_do_instead(self, shared: Path) -> None:
        found = evidence(observed(shared, LLAMA))
        assert found.latencies == {} and found.figures["effective_batch"].how == "observed.how_decode_seconds"
        hidden = " ".join(str(one.values.get("quantities", "")) for one in found.missing)
        assert all(name in hidden for name in ("ttft", "itl", "kv_usage", "requests_finished"))
        assert "step_time" not in hidden, "it was made of others"
        page = terminal.render(observe_report.compose(found), width=100)
        assert "timings" in page and "/slots" in page

    def test_what_did_not_move_in_the_window_is_told_since_the_start_and_so_marked(self, shared: Path) -> None:
        found = evidence(observed(shared, ("vllm_metrics_spec_after_ngram_k3.txt",) * 2))
        for name in ("acceptance_length", "acceptance_rate", "prefix_hit_rate", "input_tokens"):
            assert found.figures[name].sure == "since_start", name
        assert found.latencies["ttft"].sure == "since_start" and found.latencies["ttft"].count == 219
        assert found.figures["output_tokens_per_s"].value == 0.0 and found.figures["output_tokens_per_s"].sure == "counted"
        assert "step_s" not in found.figures

    @pytest.mark.parametrize("names", [VLLM, LLAMA, ("vllm_metrics_idle.txt", "vllm_metrics_spec_after_ngram_k3.txt")])
    @pytest.mark.parametrize("width", [40, 59, 80, 100])
    def test_the_page_keeps_its_width_in_both_languages(self, shared: Path, names: tuple[str, ...], width: int) -> None:
        from rich.cells import cell_len

        found = evidence(observed(shared, names))
        for language in ("en", "zh"):
            document = observe_report.compose(found, language)  # type: ignore[arg-type]
            for verbose in (False, True):
                page = terminal.render(document, width=width, verbose=verbose)
                assert max(cell_len(line) for line in page.splitlines()) <= width
                assert "observed." not in page and "{" not in page.replace("{…}", "")
            assert "observed." not in markdown.render(document)

    def test_json_is_the_evidence_alone_valid_by_its_schema_and_read_back_the_same(self, shared: Path) -> None:
        found = evidence(observed(shared, VLLM))
        written = as_json.render(observe_report.compose(found, "zh"))
        assert written == as_json.render(found)
        jsonschema.validate(json.loads(written), json_schema("evidence-1.schema.json"))
        assert msgspec.json.decode(written, type=Evidence, strict=True) == found
        other = {**json.loads(written), "schema": "breakeven.other/1"}
        assert not jsonschema.Draft202012Validator(json_schema("evidence-1.schema.json")).is_valid(other)


PAGES = sorted(
    path for path in (Path(__file__).parent / "pages").glob("*/*") if path.suffix in (".txt", ".json") and ".slots" not in path.name
)


def page_of(name: str) -> Timeline:
    path = Path(__file__).parent / "pages" / name
    return from_nothing(pages.read(path.read_bytes(), "application/json" if path.suffix == ".json" else "text/plain"))


def test_the_command_to_observe_again_names_every_replica_as_it_is_typed() -> None:
    found = replace(of(made("output_tokens", [0.0, 1.0])), target="http://a:8000/metrics, http://b:8000/metrics (2)")
    [(_, command)] = observe_report.compose(found).next_steps
    assert command == "breakeven observe http://a:8000/metrics http://b:8000/metrics --for 60s"


class TestEveryEngine:
    @pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
    def test_a_page_of_it_is_told_in_both_languages_and_kept(self, path: Path) -> None:
        found = evidence(page_of(f"{path.parent.name}/{path.name}"))
        assert found.figures
        for language in ("en", "zh"):
            page = terminal.render(observe_report.compose(found, language), width=80, verbose=True)  # type: ignore[arg-type]
            assert "observed." not in page and "adapter." not in page
        assert msgspec.json.decode(as_json.render(found), type=Evidence, strict=True) == found

    def test_sglang_shares_a_latency_out_over_its_chunk_so_that_a_round_takes_longer(self) -> None:
        found = evidence(page_of("sglang/2026.txt"))
        length = found.figures["acceptance_length"].value
        assert length == pytest.approx(2.5)
        assert found.figures["step_s"].value == pytest.approx(found.latencies["itl"].mean * length)
        assert found.figures["tokens_per_round"].value == pytest.approx(length)
        assert found.figures["context_tokens"].how == "observed.how_context_told"

    def test_sglang_counts_decoded_tokens_at_every_step_where_its_output_tokens_wait_for_an_end(self) -> None:
        found = of(made("decode_tokens", [0, 800, 1600]), made("steps", [0, 100, 200]), made("output_tokens", [0, 0, 300]))
        assert found.figures["batch_in_step"].value == pytest.approx(8.0)
        assert found.figures["batch_in_step"].how == "observed.how_decoded_per_step"

    def test_an_idle_half_of_the_window_does_not_lengthen_the_context_of_llamacpps_slots(self) -> None:
        held = made("decode_context_tokens", [120.0, 120.0, 120.0])
        found = of(made("running", [2.0, 2.0, 2.0, 0.0, 0.0, 0.0]), held, made("steps", [0, 10, 20, 20, 20, 20]))
        assert found.figures["context_tokens"].value == pytest.approx(60.0)

    def test_tgi_counts_sequences_over_passes_and_drafts_without_rounds(self) -> None:
        found = evidence(page_of("tgi/3.txt"))
        counts = found.counts
        assert found.figures["batch_in_step"].value == pytest.approx(counts["busy_sequence_steps"] / counts["steps"])
        assert found.figures["tokens_per_round"].value == pytest.approx(1 + counts["accepted_tokens"] / counts["busy_sequence_steps"])
        assert found.figures["output_tokens_per_s"].how == "observed.how_rate_at_end"

    def test_a_time_per_token_that_holds_the_prompt_is_a_latency_and_no_tpot(self) -> None:
        found = evidence(page_of("tgi/3.txt"))
        assert found.latencies["tpot"].sense == "tpot_includes_prefill" and "tpot_s" not in found.figures
        assert found.figures["step_s"].how == "observed.how_step_timed"
        assert not any("tpot" in one.how for some in found.estimators.values() for one in some)
        assert not any(one.key.startswith("observed.check_tokens") for one in found.checks)

    def test_prompts_from_a_cache_that_is_not_told_are_not_taken_for_none(self) -> None:
        found = evidence(page_of("llamacpp/2024.txt"))
        assert "input_tokens_per_s" not in found.figures and "prefix_hit_rate" not in found.figures
        assert "not told" in terminal.render(observe_report.compose(found))

    def test_an_exporter_of_devices_beside_an_engine_is_no_replica(self) -> None:
        engine, device = page_of("vllm/0.32-ngram.txt"), page_of("dcgm/4.txt")
        beside = tuple(replace(one, source="http://exporter") for one in device.series)
        alone, both = evidence(engine), evidence(replace(engine, series=(*engine.series, *beside)))
        assert both.replicas == alone.replicas == 1 and both.ranks == 1
        assert both.figures["effective_batch"] == alone.figures["effective_batch"]
        assert 0.0 < both.figures["dram_active"].value < 1.0


class TestPrefixHits:
    def test_hits_are_of_prompt_tokens_where_lookups_are_counted_again(self) -> None:
        """Trap 2: looked up three times for each prompt token; hits over lookups says 10 %, the prompts say 30 %."""
        found = of(
            made("prompt_tokens", [0.0, 1000.0]),
            made("prompt_tokens_cached", [0.0, 300.0]),
            made("prefix_queries", [0.0, 3000.0], biased=True),
            made("prefix_hits", [0.0, 300.0], biased=True),
        )
        assert found.figures["prefix_hit_rate"].value == pytest.approx(0.3)
        assert found.estimators["prefix_hit_rate"][1].value == pytest.approx(0.1)
        assert "warn_lookups" in keys(found)

    def test_the_only_counters_there_are_are_taken_with_a_warning_that_they_count_twice(self) -> None:
        found = of(made("prefix_queries", [0.0, 1000.0], biased=True), made("prefix_hits", [0.0, 300.0], biased=True))
        assert found.figures["prefix_hit_rate"].how == "observed.how_hits_lookups_biased"
        assert "warn_lookups_biased" in keys(found)

    def test_sources_that_do_not_add_up_are_said_with_both_numbers(self) -> None:
        sources = [made("prompt_tokens_by_source", [0.0, value], split=name) for name, value in (("compute", 700.0), ("hit", 100.0))]
        found = of(made("prompt_tokens", [0.0, 1000.0]), made("prompt_tokens_cached", [0.0, 100.0]), *sources)
        warning = next(one for one in found.warnings if one.key == "observed.warn_sources")
        assert warning.values == {"whole": 1000.0, "added": 800.0}
        assert "warn_sources" not in keys(of(made("prompt_tokens", [0.0, 800.0]), *sources))

    def test_tokens_that_were_found_and_computed_all_the_same_are_in_two_sources(self) -> None:
        sources = [made("prompt_tokens_by_source", [0.0, value], split=name) for name, value in (("compute", 700.0), ("hit", 400.0))]
        found = of(made("prompt_tokens", [0.0, 1000.0]), made("prompt_tokens_recomputed", [0.0, 100.0]), *sources)
        assert "observed.warn_sources" not in {one.key for one in found.warnings}

    def test_no_hit_at_all_names_the_block_that_a_prefix_has_to_fill(self) -> None:
        """Trap 3."""
        config = made("cache_config", [1.0, 1.0], labels={"block_size": "784", "num_gpu_blocks": "100"})
        found = of(made("prompt_tokens", [0.0, 1000.0]), made("prompt_tokens_cached", [0.0, 0.0]), config)
        warning = next(one for one in found.warnings if one.key == "observed.warn_no_hits_block")
        assert warning.values["block"] == 784


class TestLittle:
    def test_what_clients_hold_open_is_not_the_batch(self) -> None:
        """Trap 29: 40 clients on an engine with room for 8: 40 requests in it, 8 decode."""
        requests = [Request(came=0.05 * i, prompt=50, output=40) for i in range(40)]
        for round_ in range(1, 60):
            requests += [Request(came=1.35 * 5 * round_ + 0.05 * i, prompt=50, output=40) for i in range(40)]
        engine = Engine(cap=8)
        found = evidence(run(engine, requests, 100.0, warm=10.0).timeline())
        assert found.figures["effective_batch"].value < 8.0 < 15.0 < found.figures["in_flight"].value
        assert not keys(found) & {"warn_requests", "warn_tokens"}
        assert "A client's concurrency is not the batch" in " ".join(terminal.render(observe_report.compose(found)).split())

    def test_a_gauge_that_contradicts_rate_and_latency_is_a_warning_with_both_numbers(self) -> None:
        requests = [Request(came=0.2 * i, prompt=50, output=40) for i in range(600)]
        timeline = run(Engine(), requests, 100.0, every_s=1.0, warm=10.0).timeline()
        wrong = [replace(one, values=one.values + 30.0) if one.quantity == "running" else one for one in timeline.series]
        found = evidence(replace(timeline, series=tuple(wrong)))
        warning = next(one for one in found.warnings if one.key == "observed.warn_requests")
        assert float(warning.values["right"]) > float(warning.values["left"]) + 25.0
        assert {"warn_unseen"} <= keys(found)
        assert not keys(evidence(timeline)) & {"warn_requests", "warn_unseen"}

    def test_prompts_that_are_read_run_and_do_not_decode_which_is_no_contradiction(self) -> None:
        """12 run by the gauge and 8 decode; 4 have their prompts read, by the seconds of that."""
        flat = [made("running", [12.0] * 30), *(made(name, [0.0] * 30) for name in ("itl", "itl", "prefill_time"))]
        seconds = np.arange(30.0) * 2.0
        told = [flat[0]]
        for one, part, each in zip(flat[1:], ("sum", "count", "sum"), (8.0, 400.0, 4.0), strict=True):
            told.append(replace(one, part=part, values=seconds * each))
        assert of(*told).figures["effective_batch"].value == pytest.approx(8.0)
        assert "warn_unseen" not in keys(of(*told)) and "warn_unseen" in keys(of(*told[:3]))

    def test_a_window_shorter_than_its_requests_is_not_checked_and_says_so(self) -> None:
        requests = [Request(came=0.5 * i, prompt=50, output=400) for i in range(200)]
        found = evidence(run(Engine(), requests, 32.0, every_s=1.0, warm=20.0).timeline())
        assert any(one.key == "observed.check_too_short" for one in found.checks)
        assert any("--for" in command for _, command in observe_report.compose(found).next_steps)

    def test_outputs_that_ended_and_outputs_that_run_are_told_apart(self) -> None:
        """Trap 7 of the metrics: sums of requests move when one ends, tokens with each step."""
        requests = [Request(came=0.0, prompt=50, output=2000) for _ in range(10)]
        requests += [Request(came=0.3 * i, prompt=50, output=10) for i in range(200)]
        found = evidence(run(Engine(), requests, 40.0, every_s=1.0, warm=5.0).timeline())
        finished, moving = found.estimators["output_tokens"][:2]
        assert finished.value == pytest.approx(10.0) and moving.value > 50.0
        assert "warn_differ_output_tokens" in keys(found)

    def test_a_queue_that_grows_is_said_and_one_that_stands_is_not(self) -> None:
        too_many = [Request(came=0.02 * i, prompt=50, output=100) for i in range(3000)]
        found = evidence(run(Engine(cap=8), too_many, 60.0, every_s=2.0).timeline())
        warning = next(one for one in found.warnings if one.key == "observed.warn_queue")
        assert float(warning.values["last"]) > 4 * float(warning.values["first"])
        standing = [Request(came=0.0, prompt=50, output=40) for _ in range(4000)]
        assert "warn_queue" not in keys(evidence(run(Engine(cap=8), standing, 60.0, every_s=2.0).timeline()))


class TestAcceptance:
    def test_a_higher_acceptance_rate_with_fewer_tokens_a_second_is_not_praised(self) -> None:
        """Trap 5: drafting only what is sure lifts the rate; the page names tokens a second as the aim, and has them first."""
        timid = of(*drafts(rounds=100, drafted=100, accepted=90), made("output_tokens", [0.0, 1000.0]))
        bold = of(*drafts(rounds=100, drafted=400, accepted=240), made("output_tokens", [0.0, 1400.0]))
        assert timid.figures["acceptance_rate"].value > bold.figures["acceptance_rate"].value
        assert timid.figures["acceptance_length"].value < bold.figures["acceptance_length"].value
        assert timid.figures["output_tokens_per_s"].value < bold.figures["output_tokens_per_s"].value
        for language, aim in (("en", "The aim is tokens a second, here 500 tok/s"), ("zh", "目标是每秒 token 数，这里输出 500 tok/s")):
            page = terminal.render(observe_report.compose(timid, language))  # type: ignore[arg-type]
            assert "".join(aim.split()) in "".join(page.split())

    def test_positions_that_do_not_add_up_are_said(self) -> None:
        at = [made("accepted_at", [0.0, value], split=str(place)) for place, value in enumerate((60.0, 20.0))]
        found = of(*drafts(rounds=100, drafted=200, accepted=120), *at)
        assert "warn_positions" in keys(found) and found.acceptance_cumulative == pytest.approx((0.6, 0.2))


def drafts(*, rounds: float, drafted: float, accepted: float) -> list[Series]:
    told = {"drafts": rounds, "draft_tokens": drafted, "accepted_tokens": accepted}
    return [made(name, [0.0, value]) for name, value in told.items()]


class TestLedgers:
    @staticmethod
    def deployment() -> Deployment:
        return Deployment(
            model=api.model("llama-3.1-8b"),
            hardware=api.hardware("h100-sxm"),
            engine=api.engine("vllm"),
            workload=Workload(batch=1.0, context_tokens=1.0),
        )

    @staticmethod
    def eight() -> Timeline:
        """Eight sequences in steps of 8 ms, and lengths of requests that ended: 1,000 tokens in and 200 out."""
        requests = [Request(came=0.0, prompt=1000, output=100_000) for _ in range(8)]
        timeline = run(Engine(step_s=lambda batch: 0.008), requests, 62.0, every_s=2.0, warm=2.0).timeline()
        times = timeline.series[0].times[:31]
        ended = tuple(
            replace(made(name, [0.0]), part=part, times=times, values=np.linspace(0.0, total, 31), source="http://engine")
            for name, length in (("input_tokens", 1000.0), ("generated_tokens", 200.0))
            for part, total in (("sum", 8 * length), ("count", 8.0))
        )
        return replace(timeline, series=(*timeline.series, *ended))

    def test_mbu_is_bytes_of_the_ledger_over_the_measured_step(self) -> None:
        found = evidence(self.eight(), self.deployment())
        context = found.figures["context_tokens"].value
        assert context == pytest.approx(1100.0)
        weights, cache = (8_030_261_248 - 525_336_576) * 2.0, 8 * context * 131_072
        assert found.figures["bytes_per_step"].value == pytest.approx(weights + cache, rel=1e-3)
        assert found.figures["mbu"].value == pytest.approx((weights + cache) / (0.008 * 3.35e12), rel=5e-3)
        assert found.figures["kv_share"].value == pytest.approx(cache / (weights + cache), rel=1e-3)
        assert found.figures["mfu"].value == pytest.approx(found.figures["flop_per_step"].value / (0.008 * 989.4e12), rel=5e-3)

    def test_prompts_count_for_the_window_and_idle_time_against_it(self) -> None:
        requests = [Request(came=2.0 * i, prompt=2000, output=20) for i in range(60)]
        found = evidence(run(Engine(step_s=lambda batch: 0.01), requests, 100.0, every_s=2.0, warm=10.0).timeline(), self.deployment())
        prompts = 2 * (8_030_261_248 - 2 * 525_336_576) * 2000 * 0.5
        assert found.figures["mfu_with_prompts"].value * 989.4e12 == pytest.approx(prompts, rel=0.1)
        assert found.figures["busy_share"].value < 0.2

    def test_the_steps_of_a_pipeline_hold_a_stage_s_share_of_the_sequences(self) -> None:
        """Two stages take turns: each pass has 4 of the 8 sequences, and the ledger of a pass has those 4."""
        timeline = self.eight()
        halved = tuple(replace(one, values=one.values * 2) if one.quantity == "steps" else one for one in timeline.series)
        engine = api.engine("vllm", pipeline_parallel_size=2)
        found = evidence(replace(timeline, series=halved), replace(self.deployment(), engine=engine, hardware=api.hardware("h100-sxm", 2)))
        assert found.figures["batch_in_step"].value == pytest.approx(4.0, rel=1e-3)
        weights, cache = (8_030_261_248 - 525_336_576) * 2.0, 4 * found.figures["context_tokens"].value * 131_072
        assert found.figures["bytes_per_step"].value == pytest.approx(weights + cache, rel=1e-3)

    def test_two_ranks_of_a_dense_model_use_their_devices_as_one_of_them_would(self) -> None:
        one = self.eight()
        two = tuple(replace(each, rank=rank) for rank in ("0", "1") for each in one.series)
        engine = api.engine("vllm", data_parallel_size=2)
        alone = evidence(one, self.deployment())
        both = evidence(replace(one, series=two), replace(self.deployment(), engine=engine, hardware=api.hardware("h100-sxm", 2)))
        assert both.ranks == 2 and both.figures["batch_in_step"].value == pytest.approx(16.0, rel=1e-3)
        for name in ("mbu", "mfu", "kv_share", "bytes_per_step", "predicted_step_s", "mfu_with_prompts"):
            assert both.figures[name].value == pytest.approx(alone.figures[name].value, rel=1e-6), name

    def test_without_a_deployment_they_are_absent_and_what_to_give_is_said(self, shared: Path) -> None:
        found = evidence(observed(shared, VLLM))
        assert not {"mbu", "mfu", "kv_share"} & set(found.figures)
        assert [one.key for one in found.missing][-1] == "observed.missing_deployment"
        assert "--model" in terminal.render(observe_report.compose(found))

    def test_a_deployment_without_load_says_which_measurement_is_missing(self) -> None:
        found = evidence(run(Engine(), [], 20.0).timeline(), self.deployment())
        assert "observed.missing_step_s" in {one.key for one in found.missing}


def test_nothing_at_all_is_told_as_nothing() -> None:
    found = of(made("running", [0.0, 0.0]))
    page = terminal.render(observe_report.compose(found))
    assert "nothing moved" in page and found.figures["effective_batch"].value == 0.0
    assert "warn_gauge_only" in keys(found)


def test_a_single_reading_gives_no_rates_and_no_error() -> None:
    one = made("output_tokens", [5.0])
    found = evidence(Timeline(engine="vllm", series=(one,), start_s=0.0, end_s=0.0, readings=1, every_s=2.0))
    assert "output_tokens_per_s" not in found.figures and found.seconds == 0.0
    assert terminal.render(observe_report.compose(found))


def run_for_days(steps: list[int], means: list[str]) -> Timeline:
    """llama.cpp's server after five million steps, of which it prints the mean sequences to six digits."""
    record = Record(every_s=2.0)
    for place, (step, mean) in enumerate(zip(steps, means, strict=True)):
        told = {"requests_processing": 2, "tokens_predicted_total": 9_000_000, "n_decode_total": step, "n_busy_slots_per_decode": mean}
        body = "".join(f"llamacpp:{name} {value}\n" for name, value in told.items())
        record.add(Read(source="a", at_s=1000.0 + 2.0 * place, page=pages.read(body.encode())))
    return record.timeline()


def test_a_batch_that_is_hidden_in_the_digits_of_a_mean_is_none_and_no_restart() -> None:
    timeline = run_for_days([5_000_000, 5_000_004, 5_000_008], ["1.98765", "1.98764", "1.98764"])
    found = summarised(timeline, Told(engine="llamacpp"), target="a", source="live")
    assert timeline.notes == ()
    assert found.figures["effective_batch"].value == 2.0 and found.counts["busy_sequence_steps"] == 0.0
    assert "observed.how_sequence_steps" not in {one.how for one in found.estimators.get("batch_in_step", ())}
    assert [one.values["steps"] for one in found.warnings if one.key == "observed.warn_digits"] == [8]


def test_over_enough_steps_the_same_mean_tells_the_batch() -> None:
    timeline = run_for_days([5_000_000, 5_000_500, 5_001_000], ["1.98765", "1.98775", "1.98785"])
    found = summarised(timeline, Told(engine="llamacpp"), target="a", source="live")
    batch = found.figures["batch_in_step"]
    assert batch.how == "observed.how_sequence_steps" and batch.value == pytest.approx(2.99, abs=0.01)
    assert batch.low is not None and batch.high is not None and batch.high - batch.low == pytest.approx(0.2, abs=0.01)
    assert not any(one.key == "observed.warn_digits" for one in found.warnings)
