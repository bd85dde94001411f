"""An observation as input: read strictly, a layer of its own, and said where it says otherwise than the user."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from observations import MEASURED, TOLD, figures, observation, without, written

import breakeven as be
from breakeven.cli import run
from breakeven.compose import compose
from breakeven.document import json_schema
from breakeven.errors import InputError
from breakeven.messages import Message, text
from breakeven.origin.evidence_file import LARGEST_BYTES, parse_evidence, read_evidence
from breakeven.renderers import json as as_json
from breakeven.renderers import markdown, terminal
from breakeven.spec.evidence import Evidence, Figure, Levels, Quantiles, Said, Told, Windowed

RANGE = {"value": 1.0, "sure": "counted", "how": "observed.how_rate", "low": 3.0, "high": 2.0}


def keys(warnings: tuple[Message, ...]) -> list[str]:
    return [warning.key for warning in warnings]


def pool_tokens(d: be.Deployment) -> float:
    return float(be.evaluate(d, exact=False).room.pool_tokens)


class TestItsFile:
    def test_what_was_written_is_read_back(self, tmp_path: Path) -> None:
        evidence = observation(
            acceptance_cumulative=(0.7, 0.5),
            checks=(Said(key="error.evidence_two"),),
            windows=Windowed(window_s=60.0, requests=(3.0, 4.0), output_tokens=(800.0, 900.0)),
        )
        path = tmp_path / "evidence.json"
        path.write_bytes(b"\xef\xbb\xbf" + written(evidence))
        assert read_evidence(path) == evidence

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b"", "not JSON"),
            (b"[1, 2]", "no observation"),
            (b"{}", "no observation"),
            (b"schema: breakeven.evidence/1", "not JSON"),
            (b"\xff\xfe{}", "not JSON"),
            (b'{"schema": "breakeven.evidence/2"}', "does not know"),
            (b'{"schema": "breakeven.calibration/1"}', "breakeven.calibration/1"),
            (b'{"schema": 7}', "its schema is 7"),
            (b'{"schema": "breakeven.evidence/1"}', "breakeven"),
            (b"[" * 100_000, "not JSON"),
            (b'{"schema": "breakeven.evidence/1", "seconds": NaN}', "not JSON"),
        ],
    )
    def test_what_is_none_is_refused_in_one_line(self, body: bytes, said: str) -> None:
        with pytest.raises(InputError) as refused:
            parse_evidence(body, "evidence.json")
        line = str(refused.value)
        assert "evidence.json" in line and said in line and "\n" not in line and len(line) < 400

    @pytest.mark.parametrize(
        ("path", "value", "said"),
        [
            (("seconds",), "300", "seconds"),
            (("seconds",), -3.0, "seconds"),
            (("seconds",), 1e999, "JSON"),
            (("readings",), 1.5, "readings"),
            (("readings",), 10**400, "readings"),
            (("told", "kv_tokens"), 10**400, "kv_tokens"),
            (("told",), {}, "engine"),
            (("told", "settings"), {"block_size": [16]}, "settings"),
            (("figures", "prefix_hit_rate", "value"), 1.2, "prefix_hit_rate"),
            (("figures", "tpot_s", "value"), -0.01, "tpot_s"),
            (("figures", "tpot_s", "sure"), "guessed", "sure"),
            (("acceptance_cumulative",), [1.4], "acceptance_cumulative"),
            (("levels", "waiting", "shares"), [7.0], "shares"),
            (("latencies", "ttft", "mean"), None, "mean"),
            (("secret",), 1, "secret"),
            (("told", "sittings"), {}, "settings"),
            (("told", "settings"), {"max_model_len": "lots"}, r"^evidence.json: told.settings.max_model_len = lots: a number"),
            (("told", "settings"), {"enforce_eager": "perhaps"}, r"^evidence.json: told.settings.enforce_eager = perhaps"),
            (("start",), "yesterday", r"^evidence.json: start = yesterday: no moment"),
            (("replicas",), 0, r"^evidence.json: replicas: 0 cannot be"),
            (("figures", "tpot_s"), RANGE, r"^evidence.json: figures.tpot_s: low 3"),
            (("estimators",), {"tpot_s": [RANGE]}, r"estimators.tpot_s\[0\]: low 3"),
        ],
    )
    def test_a_damaged_value_is_named(self, path: tuple[str, ...], value: object, said: str) -> None:
        raw = json.loads(written(observation()))
        inner = raw
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value
        with pytest.raises(InputError, match=said):
            parse_evidence(json.dumps(raw).encode(), "evidence.json")

    def test_every_cut_of_a_file_is_refused_and_not_half_read(self) -> None:
        body = written(observation())
        for end in range(0, len(body) - 2, 97):
            with pytest.raises(InputError):
                parse_evidence(body[:end], "evidence.json")

    def test_a_folder_an_absent_and_a_huge_file_are_refused(self, tmp_path: Path) -> None:
        huge = tmp_path / "huge.json"
        with huge.open("wb") as handle:
            handle.truncate(LARGEST_BYTES + 1)
        for path in (tmp_path, tmp_path / "absent.json", huge):
            with pytest.raises(InputError, match=path.name):
                read_evidence(path)

    def test_a_field_more_would_be_a_version_more(self) -> None:
        """Readers refuse what they do not know: see the decision on documents that come back in."""
        kinds = (Evidence, Told, Figure, Levels, Quantiles, Windowed, Said)
        of = {kind.__name__: " ".join(field.name for field in fields(kind)) for kind in kinds}
        assert of == {
            "Evidence": "schema breakeven source target start end seconds readings missed every_s replicas ranks told figures estimators "
            "acceptance_cumulative counts levels latencies windows checks warnings missing",
            "Told": "engine version model settings speculative kv_tokens kv_tokens_local device devices devices_seen sources silent",
            "Figure": "value sure how metrics low high",
            "Levels": "values shares sure metric",
            "Quantiles": "mean count p50 p90 p95 p99 metric sense sure",
            "Windowed": "window_s requests output_tokens running observed",
            "Said": "key values",
        }


class TestItsLayer:
    def test_every_value_that_it_fills_is_measured(self) -> None:
        d, warnings = be.load(evidence=observation())
        filled = [
            "model",
            "hardware.device",
            "hardware.count",
            "calibration",
            *(f"engine.{name}" for name in (*TOLD.settings, "name", "version", "runtime_reserve_bytes")),
            *(f"workload.{name}" for name in ("input_tokens", "output_tokens", "request_rate", "prefix_hit_rate")),
        ]
        assert {path: d.provenance[path] for path in filled} == dict.fromkeys(filled, "measured")
        assert (d.model.name, d.hardware.device.name, d.hardware.count) == ("llama-3.1-8b", "h100-sxm", 1) and not warnings
        assert d.workload.request_rate == 4.0 and d.workload.input_tokens == 1000.0 and d.engine.version == "0.11.0"

    def test_the_cache_holds_the_tokens_that_the_engine_tells(self) -> None:
        d, _ = be.load(evidence=observation())
        assert pool_tokens(d) == pytest.approx(400_000, abs=16)

    def test_a_flag_wins_and_that_is_said(self) -> None:
        d, warnings = be.load(evidence=observation(), flags={"rate": 9, "block_size": 32, "input": "900..1100"})
        assert (d.workload.request_rate, d.engine.block_size) == (9.0, 32)
        said = [text(warning) for warning in warnings]
        assert any("request_rate" in line and "4 was measured" in line for line in said)
        assert any("block_size" in line and "32 is taken" in line for line in said)
        assert not any("input_tokens" in line for line in said), "a range that holds the measured mean does not contradict it"

    def test_it_wins_over_a_launch_command_and_that_is_said(self) -> None:
        launch = "vllm serve meta-llama/Llama-3.1-8B-Instruct --no-enable-prefix-caching"
        d, warnings = be.load(evidence=observation(), launch=launch)
        assert d.engine.enable_prefix_caching
        assert "warning.evidence_contradicts" in keys(warnings)

    def test_a_setting_that_is_another_now_keeps_the_memory_that_the_engine_left_beside_its_cache(self) -> None:
        same, _ = be.load(evidence=observation())
        other, _ = be.load(evidence=observation(), flags={"kv_cache_dtype": "fp8"})
        assert other.engine.runtime_reserve_bytes == same.engine.runtime_reserve_bytes
        assert pool_tokens(other) == pytest.approx(800_000, rel=1e-3)

    def test_an_alias_that_no_catalogue_knows_asks_for_the_model(self) -> None:
        evidence = observation(replace(TOLD, model="m"))
        with pytest.raises(InputError, match=r"calls its model m.*--model"):
            be.load(evidence=evidence)
        d, _ = be.load(evidence=evidence, flags={"model": "llama-3.1-8b"})
        assert d.observed is not None and d.observed.corrects, "an alias may be any model: it does not contradict the one that is typed"

    @pytest.mark.parametrize("path", ["/srv/models/meta-llama/Llama-3.1-8B-Instruct", "/srv/models/meta-llama/Llama-3.1-8B-Instruct/"])
    def test_a_folder_named_by_an_id_is_that_model(self, path: str) -> None:
        assert be.load(evidence=observation(replace(TOLD, model=path)))[0].model.name == "llama-3.1-8b"

    def test_an_engine_that_served_nobody_asks_for_a_rate_and_keeps_what_it_counted_since_it_started(self) -> None:
        old = figures(without("request_rate_per_s", "tpot_s", "step_s", "ttft_s", "output_tokens_per_s"), "since_start")
        evidence = observation(figures=old)
        with pytest.raises(InputError, match=r"--rate or --concurrency"):
            be.load(evidence=evidence)
        d, _ = be.load(evidence=evidence, flags={"rate": 2})
        assert (d.workload.input_tokens, d.workload.prefix_hit_rate, d.workload.request_rate) == (1000.0, 0.3, 2.0)
        assert d.observed is not None and not d.observed.corrects and d.observed.effective_batch is None

    def test_an_engine_that_was_full_is_a_closed_loop_of_what_was_in_flight(self) -> None:
        evidence = observation(levels={"waiting": Levels(values=(0.0, 20.0), shares=(0.1, 0.9), sure="sampled")})
        d, warnings = be.load(evidence=evidence)
        assert d.workload.request_rate is None and d.workload.concurrency == pytest.approx(12.0 + 18.0)
        assert keys(warnings) == ["warning.evidence_full"]
        both = replace(evidence, replicas=2, levels={**evidence.levels, "running": Levels(values=(14.0,), shares=(1.0,), sure="sampled")})
        twice, _ = be.load(evidence=both, flags={"hardware": "h100-sxm:2", "tp": 1})
        assert twice.workload.concurrency == pytest.approx(2 * (14.0 + 18.0)), "levels are of one replica, clients of all"
        assert not be.load(evidence=evidence, flags={"rate": 4})[1], "who gives the arrivals need not be told how else they are known"

    @pytest.mark.parametrize(("high", "clients"), [(None, 34.0), (36.0, 34.0), (60.0, 30.0)])
    def test_what_was_in_flight_is_taken_as_counted_unless_requests_outlast_the_observation(
        self, high: float | None, clients: float
    ) -> None:
        counted = {**figures(MEASURED), "in_flight": Figure(value=34.0, sure="derived", how="observed.how_in_flight", high=high)}
        levels = {"waiting": Levels(values=(0.0, 20.0), shares=(0.1, 0.9), sure="sampled")}
        d, _ = be.load(evidence=observation(figures=counted, levels=levels))
        assert d.workload.concurrency == pytest.approx(clients)

    def test_an_engine_that_counts_no_requests_stands_at_its_batch(self) -> None:
        measured = {"effective_batch": 3.9, "batch_in_step": 4.2, "tpot_s": 0.009, "output_tokens_per_s": 430.0, "context_tokens": 900.0}
        d, warnings = be.load(evidence=observation(measured=measured))
        assert (d.workload.batch, d.workload.context_tokens) == (4.2, 900.0) and keys(warnings) == ["warning.evidence_no_requests"]
        assert float(be.evaluate(d).tpot_s) == pytest.approx(0.009, rel=0.03)

    def test_counted_acceptance_is_cumulative_with_its_k(self) -> None:
        told = replace(TOLD, speculative={"method": "ngram", "num_speculative_tokens": 2})
        d, _ = be.load(evidence=observation(told, acceptance_cumulative=(0.6, 0.61)))
        accepted, spec = d.workload.acceptance, d.engine.speculative
        assert accepted is not None and (accepted.cumulative, accepted.k) == ((0.6, 0.6), 2), "two counters of one page may be a step apart"
        assert spec is not None and (spec.method, spec.num_speculative_tokens) == ("ngram", 2)
        assert d.provenance["workload.acceptance"] == d.provenance["engine.speculative"] == "measured"

    def test_drafts_without_a_method_are_no_measurement_of_an_engine_that_does_not_draft(self) -> None:
        d, warnings = be.load(evidence=observation(acceptance_cumulative=(0.6, 0.4)))
        assert d.observed is not None and d.observed.differs == ("engine.speculative",) and not d.observed.corrects
        assert keys(warnings)[-2:] == ["warning.evidence_differs", "warning.evidence_drafts"]

    @pytest.mark.parametrize(("layers", "differs"), [(32, ()), (28, ("model",))])
    def test_a_model_by_its_path_is_the_one_whose_network_it_has(self, layers: int, differs: tuple[str, ...], tmp_path: Path) -> None:
        """A server started with a path calls its model by it, and who asks calls it by its name."""
        config = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": layers}
        config |= {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False}
        (tmp_path / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16", "max_position_embeddings": 131072}))
        told = replace(TOLD, model=str(tmp_path))
        d, _ = be.load(evidence=observation(told), flags={"model": "llama-3.1-8b"})
        assert d.observed is not None and (d.observed.differs, d.observed.corrects) == (differs, not differs)

    def test_windows_that_vary_become_the_load_over_time(self) -> None:
        windows = Windowed(window_s=60.0, requests=(40.0, 400.0) * 6, output_tokens=(1.0,) * 12)
        d, _ = be.load(evidence=observation(windows=windows))
        assert d.workload.arrivals is not None and d.workload.arrivals.windows == 12
        assert d.provenance["workload.arrivals"] == "measured"
        assert be.load(evidence=observation(windows=windows), flags={"rate": 4})[0].workload.arrivals is None

    def test_a_trace_says_arrivals_and_lengths_and_the_engine_the_rest(self, tmp_path: Path) -> None:
        trace = tmp_path / "trace.csv"
        rows = "".join(f"2026-11-30 10:00:{second:02d}.0,500,100\n" for second in range(40))
        trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
        d, _ = be.load(evidence=observation(), flags={"trace": str(trace)})
        assert (
            d.workload.input_tokens == 500.0
            and d.workload.prefix_hit_rate == 0.3
            and d.workload.request_rate == pytest.approx(1.0, rel=0.05)
        )

    def test_several_devices_in_the_machine_are_not_taken_for_those_that_serve(self) -> None:
        told = replace(TOLD, devices=None, devices_seen=8, kv_tokens=None)
        d, warnings = be.load(evidence=observation(told))
        assert d.hardware.count == 1 and keys(warnings) == ["warning.evidence_devices"]

    def test_fewer_engines_than_replicas_are_said(self) -> None:
        told = replace(TOLD, devices=None, kv_tokens=None)
        _, warnings = be.load(evidence=observation(told), flags={"hardware": "h100-sxm:4", "tp": 1})
        assert "warning.evidence_replicas" in keys(warnings)

    @pytest.mark.parametrize(("model", "replicas", "batch"), [("llama-3.1-8b", 4, 12.0), ("qwen3-30b-a3b", 1, 48.0)])
    def test_ranks_of_a_dense_model_are_replicas_and_those_of_experts_are_one(self, model: str, replicas: int, batch: float) -> None:
        told = replace(TOLD, model="", kv_tokens=100_000, devices=None, settings={**TOLD.settings, "data_parallel_size": 4})
        seen = {**MEASURED, "effective_batch": 48.0, "request_rate_per_s": 16.0, "output_tokens_per_s": 4480.0}
        d, warnings = be.load(flags={"model": model}, evidence=observation(told, seen, ranks=4))
        assert (d.engine.data_parallel_size, d.hardware.count, d.replicas, warnings) == (4, 4, replicas, ())
        assert d.observed is not None and d.observed.corrects and d.observed.effective_batch == batch
        assert float(be.evaluate(d).batch) == pytest.approx(batch, rel=0.1)
        seen = {name: value for name, value in seen.items() if name != "request_rate_per_s"}
        d, _ = be.load(flags={"model": model}, evidence=observation(told, {**seen, "batch_in_step": 48.0}, ranks=4))
        assert d.workload.batch == batch and d.provenance["workload.batch"] == "measured"

    def test_the_label_of_a_context_parallel_engine_is_one_devices_part_of_the_pool(self) -> None:
        """Trap 28: cache_config_info is local, and the pool so many times as large (vLLM pull request 40895)."""
        told = replace(TOLD, model="deepseek-ai/DeepSeek-V3", settings={"block_size": 64}, kv_tokens=100_032, device="h200-sxm", devices=8)
        flags = {"tp": 8, "dcp": 8, "hardware": "h200-sxm:8"}
        d, warnings = be.load(evidence=observation(told), flags=flags)
        assert pool_tokens(d) == pytest.approx(8 * 100_032, rel=1e-3)
        assert "800256" in next(text(warning) for warning in warnings if warning.key == "warning.pool_local")
        whole, said = be.load(evidence=observation(replace(told, kv_tokens_local=False, kv_tokens=800_256)), flags=flags)
        assert pool_tokens(whole) == pytest.approx(8 * 100_032, rel=1e-3)
        assert "warning.pool_local" not in keys(said)

    def test_a_cache_larger_than_the_device_is_refused(self) -> None:
        with pytest.raises(InputError, match="running engine's KV cache"):
            be.load(evidence=observation(replace(TOLD, kv_tokens=40_000_000)))


@cache
def advised() -> be.Advice:
    d, warnings = be.load(evidence=observation())
    return be.advise(d, warnings=warnings, draws=64)


class TestItsFaces:
    def test_the_check_list_counts_it(self) -> None:
        done = {item.id for item in advised().checklist if item.status == "done"}
        assert done == {"effective_batch_measured", "kv_share_computed", "prefix_hit_rate_known", "ledgers_recomputed_after"}

    def test_with_acceptance_all_five_are_done(self) -> None:
        told = replace(TOLD, speculative={"method": "ngram", "num_speculative_tokens": 2})
        d, _ = be.load(evidence=observation(told, acceptance_cumulative=(0.6, 0.4)))
        assert {item.status for item in be.advise(d, draws=16).checklist} == {"done"}

    def test_an_observation_from_before_the_last_change_recomputes_nothing(self) -> None:
        d, _ = be.load(evidence=observation(), flags={"kv_cache_dtype": "fp8"})
        item = be.advise(d, draws=16).checklist[-1]
        assert item.status == "missing" and "kv_cache_dtype" in text(item.evidence)

    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_the_measured_point_stands_beside_the_predicted_one(self, language: str) -> None:
        document = compose(advised(), "zh" if language == "zh" else "en")
        for page in (terminal.render(document), markdown.render(document)):
            flat = " ".join(page.split())
            assert "batch 12" in flat and "10.5 ms" in flat and "MBU 48" in flat and "8.95 ms" in flat
        jsonschema.validate(json.loads(as_json.render(document)), json_schema())

    @pytest.mark.parametrize("language", ["en", "zh"])
    def test_a_model_that_does_not_fit_where_it_ran_is_told_so_and_corrects_nothing(self, language: str) -> None:
        d, warnings = be.load(flags={"model": "llama-3.1-70b"}, evidence=observation(replace(TOLD, model="", kv_tokens=None)))
        assert d.observed is not None and not d.observed.corrects and d.observed.model_tpot_s is None
        found = be.advise(d, warnings=warnings, draws=16)
        assert not found.ledgers.memory.fits
        assert "10.5 ms" in terminal.render(compose(found, "zh" if language == "zh" else "en"))

    def test_without_an_observation_nothing_is_said_of_one(self) -> None:
        flags = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "input": 100, "output": 100, "batch": 2}
        document = json.loads(as_json.render(compose(be.advise(be.load(flags=flags)[0], draws=16))))
        assert "observed" not in document and "observed" not in document["deployment"]

    def test_the_verb_takes_its_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "evidence.json"
        path.write_bytes(written(observation()))
        assert run(["advise", "--evidence", str(path), "--draws", "16", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["observed"]["effective_batch"] == 12.0 and document["provenance"]["workload.request_rate"] == "measured"
        assert "observed on this deployment" in document["how_sure"]

    def test_simulate_takes_it_too(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "evidence.json"
        path.write_bytes(written(observation()))
        assert run(["simulate", "--evidence", str(path), "--requests", "50", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["schema"].startswith("breakeven.simulation/")


def test_an_unknown_setting_told_is_left_out_and_an_impossible_one_named() -> None:
    told = Told(engine="vllm", model=TOLD.model, device="h100-sxm", devices=1, settings={"wings": 2, "kv_cache_dtype": "fp8_nobody_knows"})
    evidence: Evidence = observation(told, MEASURED)
    with pytest.raises(InputError, match="fp8_nobody_knows"):
        be.load(evidence=evidence)
    d, warnings = be.load(evidence=evidence, flags={"kv_cache_dtype": "fp8"})
    assert d.observed is not None and d.observed.differs == ("engine.kv_cache_dtype",)
    assert any("fp8_nobody_knows" in text(warning) for warning in warnings)


def test_an_id_that_an_engine_on_this_machine_has_fetched_is_read_from_the_hubs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "intermediate_size": 1536}
    config |= {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 32000, "torch_dtype": "bfloat16"}
    snapshot = tmp_path / "models--someone--their-own" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(config))
    refs = tmp_path / "models--someone--their-own" / "refs"
    refs.mkdir()
    (refs / "main").write_text("a" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path))
    told = replace(TOLD, model="someone/their-own", kv_tokens=None)
    assert be.load(evidence=observation(told))[0].model.name == "someone/their-own"
    with pytest.raises(InputError, match="someone/else"):
        be.load(evidence=observation(replace(told, model="someone/else")))
