"""What benchmarks say otherwise than it is: peaks, survivors, per cent, chunks, prompts that never fill the streams."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from benchmark_samples import EVIDENCE, GUIDELLM, METRICS, MODEL, SAMPLES, SGLANG, VLLM, csv_of, figure, latency, lines, llama_bench
from recorded_pages import observed

from breakeven import api
from breakeven.errors import InputError
from breakeven.measured.benchmark import Loop, Outcome
from breakeven.measured.benchmark_files import read_benchmark
from breakeven.measured.ggml_names import weight_format
from breakeven.measured.step_forms import StepReading
from breakeven.measured.steps import Stated
from breakeven.messages import text
from breakeven.observation.summary import summarised
from breakeven.renderers import json as as_json
from breakeven.spec.evidence import Told

DEVICE = """family = 'cpu'
memory_bytes = 16e9
bandwidth_bytes_per_s = 40e9
matmul_flops = {bf16 = 4e11, fp16 = 4e11}
sources = {all = 'made up'}
"""


def read(folder: Path, content: str) -> list[Outcome]:
    (folder / "found").write_text(content)
    found = read_benchmark(folder / "found")
    assert found is not None
    return list(found.outcomes)


def one(folder: Path, *records: dict[str, Any]) -> Outcome:
    (found,) = read(folder, lines(*records))
    return found


def loop(found: Outcome) -> Loop:
    assert isinstance(found.measured, Loop)
    return found.measured


def notes(found: Outcome) -> list[str]:
    return [note.key for note in found.notes]


def why(found: Outcome) -> str:
    assert found.refused is not None and found.measured is None
    return text(found.refused)


class TestVllm:
    def test_the_peak_is_not_the_load(self, tmp_path: Path) -> None:
        assert loop(one(tmp_path, VLLM)).concurrency == 16
        found = one(tmp_path, VLLM | {"max_concurrency": None, "request_rate": 2.0})
        assert loop(found).concurrency == pytest.approx(64 / 33.7 * (0.12 + 0.0325 * 255)) and "bench.peak" in notes(found)

    def test_fewer_prompts_than_streams_never_reach_them(self, tmp_path: Path) -> None:
        few = {"num_prompts": 20, "completed": 20, "total_input_tokens": 10240, "total_output_tokens": 5120, "duration": 10.0}
        found = one(tmp_path, VLLM | few | {"max_concurrency": 64})
        assert loop(found).concurrency == pytest.approx(20 / 10 * (0.12 + 0.0325 * 255)) and notes(found) == ["bench.fewer_than_streams"]

    def test_a_load_that_was_not_reached_is_not_taken_as_asked_for(self, tmp_path: Path) -> None:
        found = one(tmp_path, VLLM | {"max_concurrency": 32})
        assert loop(found).concurrency < 17 and notes(found) == ["bench.not_reached"]

    @pytest.mark.parametrize(("completed", "taken"), [(63, True), (40, False), (0, False)])
    def test_means_of_survivors_are_said_or_refused(self, tmp_path: Path, completed: int, taken: bool) -> None:
        found = one(tmp_path, VLLM | {"completed": completed})
        assert (found.measured is not None) is taken
        assert ("bench.some_survived" in notes(found)) if taken else "served" in why(found)

    def test_the_rate_of_acceptance_is_in_per_cent_and_the_length_has_the_bonus(self, tmp_path: Path) -> None:
        drafted = {"spec_decode_acceptance_rate": 50.0, "spec_decode_acceptance_length": 2.8}
        said = why(one(tmp_path, VLLM | drafted))
        assert "2.80 tokens a round with the bonus token" in said and "50 %" in said

    def test_random_prompts_say_nothing_of_acceptance(self, tmp_path: Path) -> None:
        assert "random prompts" in why(one(tmp_path, VLLM | {"spec_decode_acceptance_length": 1.4, "dataset_name": "random"}))

    def test_times_between_chunks_are_never_taken_for_tokens(self, tmp_path: Path) -> None:
        assert loop(one(tmp_path, VLLM | {"mean_itl_ms": 750.0, "mean_tpot_ms": 37.0})).tpot_s == pytest.approx(0.037)
        without = {name: value for name, value in VLLM.items() if name != "mean_tpot_ms"}
        assert "no time between tokens" in why(one(tmp_path, without))

    def test_older_files_call_the_client_a_backend(self, tmp_path: Path) -> None:
        older = {name: value for name, value in VLLM.items() if name not in ("endpoint_type", "max_concurrency", "max_concurrent_requests")}
        assert loop(one(tmp_path, older | {"backend": "vllm"})).engine == "vllm"
        assert loop(one(tmp_path, VLLM | {"endpoint_type": "openai-chat"})).engine == ""

    def test_two_batches_that_differ_in_their_answers_tell_the_step_between_them(self, tmp_path: Path) -> None:
        found = read(tmp_path, json.dumps([latency(160, 4.1), latency(32, 0.9)]))
        (step,) = [each.measured for each in found if each.measured is not None]
        assert isinstance(step, StepReading) and step.step_s == pytest.approx(3.2 / 128) and step.context_tokens == 32 + 96

    def test_a_sweep_is_its_runs_and_not_its_summary(self, tmp_path: Path) -> None:
        for name, clients in (("a", 16), ("b", 8)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "run=0.json").write_text(
                json.dumps(VLLM | {"max_concurrency": clients, "mean_tpot_ms": 30.0 + clients / 6.4})
            )
        (tmp_path / "summary.json").write_text(json.dumps([VLLM, VLLM]))
        (tmp_path / "plot.png").write_bytes(b"\x89PNG")
        found = api.calibrate(tmp_path, hardware="l40s", engine="vllm 0.11.0")
        assert found.document.made.rows == 2 and [file.name for file in found.document.files] == ["run=0.json", "run=0.json"]

    def test_a_recorded_file_s_peak_is_twice_its_streams_and_is_not_taken(self) -> None:
        found = read_benchmark(Path(__file__).parent / "benchmarks" / "vllm_serve_detailed_recorded.json")
        assert found is not None
        run = loop(found.outcomes[0])
        assert (run.concurrency, run.input_tokens, run.output_tokens) == (2.0, 64.0, 32.0) and run.engine == ""
        assert run.tpot_s == pytest.approx(0.027202094133093443) and run.ttft_s == pytest.approx(0.106, abs=0.001)

    def test_a_recorded_file_of_a_busy_machine_is_one_of_survivors(self) -> None:
        found = read_benchmark(Path(__file__).parent / "benchmarks" / "vllm_serve_recorded.json")
        assert found is not None
        assert "only 6 of 8 requests were served" in why(found.outcomes[0])


class TestSglang:
    def test_chunks_under_speculation_are_no_steps(self, tmp_path: Path) -> None:
        assert "2.60 tokens a round" in why(one(tmp_path, SGLANG | {"accept_length": 2.6}))

    def test_the_server_s_count_stands(self, tmp_path: Path) -> None:
        found = one(tmp_path, SGLANG | {"total_output_tokens_retokenized": 9000})
        assert loop(found).output_tokens == 256 and notes(found) == ["bench.recounted"]

    def test_what_the_server_tells_of_itself_is_taken(self, tmp_path: Path) -> None:
        found = loop(one(tmp_path, SGLANG | {"server_info": {**SGLANG["server_info"], "tp_size": 2, "kv_cache_dtype": "fp8_e5m2"}}))
        assert (found.version, found.tensor_parallel, found.cache, found.model) == ("0.5.4", 2, "fp8_e5m2", MODEL)


class TestGuidellm:
    def test_a_recorded_report_says_what_its_server_did(self) -> None:
        """A server that waits 100 ms and then writes a token every 20 ms, and was asked by two clients."""
        found = read_benchmark(Path(__file__).parent / "benchmarks" / "guidellm_recorded.json")
        assert found is not None
        run = loop(found.outcomes[0])
        assert (run.concurrency, run.input_tokens, run.output_tokens, run.model) == (2.0, 64.0, 32.0, "m")
        assert run.tpot_s == pytest.approx(0.020, rel=0.1) and run.ttft_s == pytest.approx(0.100, rel=0.1)

    def run(self, **changes: Any) -> dict[str, Any]:
        report = copy.deepcopy(GUIDELLM)
        report["benchmarks"][0] |= changes
        return report

    def test_its_time_per_output_token_holds_the_first_token_and_is_not_taken(self, tmp_path: Path) -> None:
        report = copy.deepcopy(GUIDELLM)
        report["benchmarks"][0]["metrics"]["time_per_output_token_ms"]["successful"]["mean"] = 900.0
        assert loop(one(tmp_path, report)).tpot_s == pytest.approx(0.0325)

    def test_without_its_requests_the_mean_is_weighted_and_that_is_said(self, tmp_path: Path) -> None:
        found = one(tmp_path, self.run(requests={}))
        assert loop(found).tpot_s == pytest.approx(0.0324) and notes(found) == ["bench.weighted"]

    def test_several_tokens_a_chunk_are_a_draft_or_a_gathering(self, tmp_path: Path) -> None:
        report = copy.deepcopy(GUIDELLM)
        report["benchmarks"][0]["metrics"]["output_tokens_per_iteration"]["successful"]["mean"] = 2.5
        assert "2.50 tokens a round" in why(one(tmp_path, report))

    def test_cached_prompts_are_counted_as_hits(self, tmp_path: Path) -> None:
        requests = [{"inter_token_latency_ms": 32.5, "prompt_tokens": 512, "cached_tokens": 384}]
        found = one(tmp_path, self.run(requests={"successful": requests}))
        assert loop(found).prefix_hit_rate == 0.75 and notes(found) == ["bench.cached"]

    def test_requests_that_the_end_cut_off_did_not_fail(self, tmp_path: Path) -> None:
        report = copy.deepcopy(GUIDELLM)
        report["benchmarks"][0]["metrics"]["request_totals"] |= {"incomplete": 60}
        assert one(tmp_path, report).measured is not None


class TestNamedUnits:
    @pytest.mark.parametrize(("unit", "value"), [("ns", 32.5e6), ("us", 32.5e3), ("ms", 32.5), ("sec", 0.0325)])
    def test_a_time_is_read_by_its_unit(self, tmp_path: Path, unit: str, value: float) -> None:
        record = METRICS | {"inter_token_latency": {"unit": unit, "avg": value}, "input_config": {"concurrency": 16}}
        assert loop(one(tmp_path, record)).tpot_s == pytest.approx(0.0325)

    def test_a_time_without_a_known_unit_says_nothing(self, tmp_path: Path) -> None:
        record = METRICS | {"inter_token_latency": {"unit": "fortnights", "avg": 1.0}, "input_config": {"concurrency": 16}}
        assert "no time between tokens" in why(one(tmp_path, record))

    def test_a_load_that_is_not_told_follows_from_rate_and_time(self, tmp_path: Path) -> None:
        (found,) = read(tmp_path, SAMPLES["aiperf table"].text)
        assert loop(found).concurrency == pytest.approx(1.88 * 8.4) and notes(found) == ["bench.open_loop"]


class TestLlamaBench:
    def test_the_depth_is_the_context_and_a_prompt_alone_is_no_step(self, tmp_path: Path) -> None:
        found = read(tmp_path, lines(llama_bench(0, 128, 8192, 2.6e9), llama_bench(512, 0, 0, 1e8)))
        assert isinstance(found[0].measured, StepReading) and found[0].measured.context_tokens == 8192 + 64
        assert found[0].measured.step_s == pytest.approx(2.6 / 128) and "5,120 tokens/s" in why(found[1])

    def test_a_sweep_of_ub_is_the_curve_of_verification(self, tmp_path: Path) -> None:
        (tmp_path / "sweep.json").write_text(SAMPLES["llama_bench"].text)
        found = api.calibrate(tmp_path / "sweep.json", model="llama-3.1-8b", hardware="l40s")
        (curve,) = [drawn.curve for drawn in found.curves]
        assert curve.rows == (2.0, 4.0, 8.0) and curve.step_s == pytest.approx((2.1 / 128, 1.1 / 64, 0.6 / 32))
        assert (curve.engine, curve.version) == ("llamacpp", "b6000")

    def test_every_form_of_its_output_says_the_same(self, tmp_path: Path) -> None:
        records = [llama_bench(0, 128, 0, 2.0e9), llama_bench(0, 64, 4096, 1.1e9)]
        forms = (json.dumps(records), lines(*records), csv_of(records))
        read_as = [[each.measured for each in read(tmp_path, form)] for form in forms]
        assert read_as[0] == read_as[1] == read_as[2]

    @pytest.mark.parametrize(
        ("named", "found"),
        [
            ("llama 8B Q4_K - Medium", "Q4_K_M"),
            ("qwen2 7B Q8_0", "Q8_0"),
            ("llama 8B BF16", "BF16"),
            ("gpt-oss 20B MXFP4 MoE", "MXFP4"),
            ("llama", ""),
        ],
    )
    def test_the_format_is_read_as_llama_cpp_names_it(self, named: str, found: str) -> None:
        assert weight_format(named) == found


class TestEvidence:
    def test_a_day_gives_a_row_for_each_window(self, tmp_path: Path) -> None:
        windows = {"window_s": 300.0, "requests": [1, 2, 3], "output_tokens": [0, 100_000, 300_000], "running": [0.0, 8.0, 32.0]}
        found = read(tmp_path, json.dumps(EVIDENCE | {"windows": windows}))
        loops = [loop(each) for each in found]
        assert [each.concurrency for each in loops] == [8.0, 32.0]
        assert [each.tpot_s for each in loops] == pytest.approx([8 * 300 / (1e5 - 2), 32 * 300 / (3e5 - 3)])

    def test_a_window_that_was_hardly_seen_is_no_row(self, tmp_path: Path) -> None:
        windows = {"window_s": 300.0, "requests": [1, 1], "output_tokens": [1e5, 1e5], "running": [8.0, 9.0], "observed": [1.0, 0.4]}
        assert [loop(each).concurrency for each in read(tmp_path, json.dumps(EVIDENCE | {"windows": windows}))] == [8.0]

    def test_what_a_recorded_engine_told_becomes_the_row_that_its_pages_hold(self, shared: Path, tmp_path: Path) -> None:
        """vLLM on a processor, pages before and after a load: 182.5 s of waiting, 3,540 decoded tokens in 727 steps."""
        pages = observed(shared, ("vllm_metrics_idle.txt", "vllm_metrics_load.txt", "vllm_metrics_after.txt"))
        seen = summarised(pages, Told(engine="vllm", version="0.32.0"), target="http://127.0.0.1:8000", source="live")
        (tmp_path / "seen.json").write_text(as_json.render(seen))
        (tmp_path / "here.toml").write_text(DEVICE)
        flags = {"model": "smollm2-135m", "hardware": "here", "catalog_dirs": [tmp_path]}
        found = api.calibrate(tmp_path / "seen.json", **flags)  # type: ignore[arg-type]
        (row,) = [one for one in found.fit.residuals if one.quantity in ("tpot", "step")]
        assert row.measured == pytest.approx(182.47855988699712 / 3540, rel=1e-6)
        (entry,) = found.document.deployments
        assert (entry.engine, entry.version, entry.device) == ("vllm", "0.32.0", "here")

    def test_sequences_are_counted_while_the_engine_worked(self, tmp_path: Path) -> None:
        windows = {"window_s": 300.0, "requests": [1], "output_tokens": [100_000], "running": [8.0]}
        found = one(tmp_path, EVIDENCE | {"windows": windows, "figures": EVIDENCE["figures"] | {"busy_share": figure(0.5)}})
        assert (
            loop(found).concurrency == 16 and loop(found).tpot_s == pytest.approx(0.024, rel=1e-4) and "bench.evidence_idle" in notes(found)
        )

    def test_drafting_is_no_plain_step(self, tmp_path: Path) -> None:
        assert "drafted" in why(one(tmp_path, EVIDENCE | {"figures": EVIDENCE["figures"] | {"acceptance_length": figure(2.4)}}))

    def test_without_lengths_it_is_a_step_at_its_context(self, tmp_path: Path) -> None:
        figures = {name: value for name, value in EVIDENCE["figures"].items() if not name.endswith("put_tokens")}
        found = one(tmp_path, EVIDENCE | {"figures": figures})
        assert isinstance(found.measured, StepReading) and (found.measured.width, found.measured.context_tokens) == (15.9, 640.0)

    @pytest.mark.parametrize(
        "changes", [{"figures": {}}, {"figures": 3}, {"told": None}, {"seconds": "long"}, {"seconds": -1.0}, {"of_tomorrow": 1}]
    )
    def test_what_is_no_evidence_says_why(self, tmp_path: Path, changes: dict[str, Any]) -> None:
        assert why(one(tmp_path, EVIDENCE | changes))


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.measured])
def test_each_file_makes_a_calibration_of_the_device_that_is_stated(name: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(SAMPLES[name].text)
    found = api.calibrate(
        tmp_path / "f", model="llama-3.1-8b", hardware="l40s", engine="llamacpp" if name.startswith("llama") else "vllm 0.11.0"
    )
    assert found.document.made.rows == SAMPLES[name].measured, [text(each.reason) for each in found.left_out]
    assert {entry.device for entry in found.document.deployments} == {"l40s"}


@pytest.mark.parametrize(("flags", "named"), [({}, "--hardware"), ({"hardware": "l40s"}, "--engine")])
def test_what_the_file_does_not_say_is_asked_for_by_its_option(tmp_path: Path, flags: dict[str, str], named: str) -> None:
    (tmp_path / "f").write_text(json.dumps(VLLM | {"endpoint_type": "openai"}))
    with pytest.raises(InputError, match=named):
        api.calibrate(tmp_path / "f", **flags)  # type: ignore[arg-type]


def test_a_version_that_no_file_tells_is_not_made_up(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(json.dumps(VLLM))
    found = api.calibrate(tmp_path / "f", hardware="l40s")
    assert {entry.version for entry in found.document.deployments} == {"main"}
    assert [note.key for _, note in found.notes] == ["calibrate.version_untold"]
    told = api.calibrate(tmp_path / "f", hardware="l40s", engine="vllm 0.11.0")
    assert "calibrate.version_untold" not in [note.key for _, note in told.notes]


def test_a_backtest_answers_the_runs_of_a_benchmark_and_says_why_not(tmp_path: Path) -> None:
    drafted = VLLM | {"spec_decode_acceptance_length": 2.8}
    (tmp_path / "bench.jsonl").write_text(lines(VLLM, drafted))
    (tmp_path / "llama.jsonl").write_text(lines(llama_bench(0, 128, 0, 2.0e9)))
    found = api.backtest(tmp_path, draws=64, stated=Stated(model="llama-3.1-8b", device="l40s"))
    assert [row.id for row in found.answered] == ["bench.jsonl:1", "llama.jsonl:1"]
    assert [row.id for row in found.skipped] == ["bench.jsonl:2"]
    assert all(row.tpot is not None and 0.5 < row.tpot.measured / row.tpot.predicted < 2.0 for row in found.answered)


def test_a_backtest_that_leaves_groups_out_takes_benchmarks_too(tmp_path: Path) -> None:
    (tmp_path / "bench.jsonl").write_text(lines(VLLM, VLLM | {"mean_tpot_ms": 31.0, "max_concurrency": 15}))
    (tmp_path / "llama.jsonl").write_text(lines(llama_bench(0, 128, 0, 2.0e9)))
    found = api.backtest(tmp_path, draws=16, leave_out="group", stated=Stated(model="llama-3.1-8b", device="l40s"))
    assert len(found.answered) == 3
