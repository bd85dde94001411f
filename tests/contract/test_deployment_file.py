"""A deployment from whatever the user has: precedence, provenance, and one clear line for all that cannot be used."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from deployment_tables import BARE, FLAGS, TABLE, changed, refusal, said

from breakeven.errors import UnknownNameError
from breakeven.origin.resolve import resolve, resolve_table
from breakeven.spec.deployment import Provenance
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.workload import Acceptance, Price, Slo
from breakeven.stats import Range, Spread


class TestTheContractsFile:
    @pytest.mark.parametrize("form", ["yaml", "toml"])
    def test_reads_whole_in_both_forms(self, tmp_path: Path, form: str) -> None:
        yaml = (
            "model: meta-llama/Llama-3.1-70B-Instruct\n"
            "hardware: {device: h100-sxm, count: 4}\n"
            'engine: {name: vllm, version: "0.11", tensor_parallel_size: 4, max_num_seqs: 256,\n'
            "         max_num_batched_tokens: 8192, kv_cache_dtype: auto,\n"
            "         enable_prefix_caching: true, gpu_memory_utilization: 0.9, speculative: {method: eagle3, num_speculative_tokens: 3}}\n"
            "workload: {input_tokens: 2000, output_tokens: 300, request_rate: 4.0, prefix_hit_rate: 0.3,\n"
            "           acceptance_cumulative: [0.75, 0.6, 0.45]}\n"
            "slo: {ttft_s: 1.0, tpot_s: 0.05}\n"
            "price: {per_device_hour: 2.5, currency: USD}\n"
        )
        toml = (
            'model = "meta-llama/Llama-3.1-70B-Instruct"\n'
            '[hardware]\ndevice = "h100-sxm"\ncount = 4\n'
            '[engine]\nname = "vllm"\nversion = "0.11"\ntensor_parallel_size = 4\nmax_num_seqs = 256\nmax_num_batched_tokens = 8192\n'
            'kv_cache_dtype = "auto"\nenable_prefix_caching = true\ngpu_memory_utilization = 0.9\n'
            '[engine.speculative]\nmethod = "eagle3"\nnum_speculative_tokens = 3\n'
            "[workload]\ninput_tokens = 2000\noutput_tokens = 300\nrequest_rate = 4.0\n"
            "prefix_hit_rate = 0.3\nacceptance_cumulative = [0.75, 0.6, 0.45]\n"
            '[slo]\nttft_s = 1.0\ntpot_s = 0.05\n[price]\nper_device_hour = 2.5\ncurrency = "USD"\n'
        )
        path = tmp_path / f"d.{form}"
        path.write_text(yaml if form == "yaml" else toml, encoding="utf-8")
        found = resolve(file=path).deployment
        assert found == resolve_table(TABLE).deployment
        assert found.model.name == "llama-3.1-70b"
        assert (found.hardware.device.name, found.hardware.count, found.replicas) == ("h100-sxm", 4, 1)
        assert found.engine.speculative == Speculative(method="eagle3", num_speculative_tokens=3)
        assert found.workload.acceptance == Acceptance(cumulative=(0.75, 0.6, 0.45))
        assert found.slo == Slo(ttft_s=1.0, tpot_s=0.05)
        assert found.price == Price(per_device_hour=2.5)

    def test_says_where_every_value_came_from(self) -> None:
        provenance = resolve_table(TABLE).deployment.provenance
        assert provenance["model"] == "catalogue"
        assert provenance["hardware.count"] == "declared"
        assert provenance["engine.max_num_seqs"] == "declared"
        assert provenance["engine.block_size"] == "catalogue"
        assert provenance["workload.acceptance"] == "declared"
        assert provenance["slo.ttft_s"] == "declared"

    @pytest.mark.parametrize("table", [TABLE, {**BARE, "workload": {"batch": 4, "context_tokens": 9}}])
    def test_every_value_of_every_part_came_from_somewhere(self, table: dict[str, Any]) -> None:
        found = resolve_table(table).deployment
        assert set(found.provenance.values()) <= set(get_args(Provenance))
        assert {"model", "hardware.device", "hardware.count"} <= set(found.provenance)
        told_even_where_none = {"workload.prefix_hit_rate", "workload.acceptance", "workload.task"}
        assert told_even_where_none | {f"engine.{field.name}" for field in fields(Engine)} <= set(found.provenance)
        for part in ("workload", "slo", "price"):
            value = getattr(found, part)
            held = [] if value is None else [field.name for field in fields(value) if getattr(value, field.name) not in (None, ())]
            assert {f"{part}.{name}" for name in held} <= set(found.provenance)

    def test_what_is_not_given_is_assumed_or_a_prior(self) -> None:
        provenance = resolve(flags=FLAGS).deployment.provenance
        assert {provenance[f"workload.{name}"] for name in ("prefix_hit_rate", "task")} == {"assumed"}
        assert provenance["workload.acceptance"] == "prior"
        assert {provenance[f"engine.{name}"] for name in ("quantization", "speculative", "pipeline_parallel_size")} == {"assumed"}
        assert {provenance[f"engine.{name}"] for name in ("kv_reserve", "mixes_prompts", "runtime_reserve_bytes")} == {"catalogue"}


class TestPrecedence:
    def test_flags_over_file_over_launch_over_defaults(self) -> None:
        launch = "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --max-num-seqs 32 --block-size 32 --max-model-len 8192"
        table = changed("engine", {"max_num_seqs": 64, "max_model_len": 16384})
        engine = resolve_table(table, launch=launch, flags={"max_num_seqs": 128}).deployment.engine
        assert (engine.max_num_seqs, engine.max_model_len, engine.block_size, engine.tensor_parallel_size) == (128, 16384, 32, 4)
        assert engine.gpu_memory_utilization == 0.9

    def test_a_later_form_of_arrivals_replaces_an_earlier_one(self) -> None:
        found = resolve_table(TABLE, flags={"concurrency": 16}).deployment.workload
        assert found.concurrency == 16 and found.request_rate is None

    def test_a_later_form_of_acceptance_replaces_an_earlier_one(self) -> None:
        found = resolve_table(TABLE, flags={"acceptance_length": 2.5}).deployment.workload
        assert found.acceptance == Acceptance(length=2.5)

    def test_the_three_ways_of_the_contract_agree(self) -> None:
        by_flags = resolve(flags={**FLAGS, "tp": 4, "max_num_seqs": 64}).deployment
        rest = {name: FLAGS[name] for name in ("hardware", "input", "output", "rate")}
        by_launch = resolve(launch="vllm serve llama-3.1-70b -tp 4 --max-num-seqs 64", flags=rest).deployment
        assert by_flags.engine == by_launch.engine and by_flags.workload == by_launch.workload

    def test_flags_by_dotted_path_and_by_word_are_one(self) -> None:
        by_path = {
            "model": "llama-3.1-70b",
            "hardware.device": "h100-sxm",
            "hardware.count": 4,
            "workload.input_tokens": 2000,
            "workload.output_tokens": 300,
            "workload.request_rate": 4,
        }
        assert resolve(flags=by_path).deployment == resolve(flags=FLAGS).deployment

    def test_flags_that_are_not_read_reach_the_engine_and_the_warnings(self) -> None:
        found = resolve_table(TABLE, launch="vllm serve x --swap-space 4")
        assert found.deployment.engine.unread == {"--swap-space": "4"}
        assert "--swap-space" in said(found)


class TestNumbersThatAreNotCertain:
    def test_ranges_and_distributions(self) -> None:
        table = changed("workload.input_tokens", {"low": 1000, "high": 3000})
        table = changed("workload.output_tokens", {"mean": 300, "p95": 900}, table)
        table = changed("workload.prefix_hit_rate", "0.1..0.4", table)
        found = resolve_table(table).deployment.workload
        assert found.input_tokens == Range(low=1000, high=3000)
        assert found.output_tokens == Spread(mean=300, p95=900)
        assert found.prefix_hit_rate == Range(low=0.1, high=0.4)

    @pytest.mark.parametrize(
        "value",
        [
            {"low": 2, "high": 1},
            {"low": 1},
            {"mean": 100, "p95": 50},
            {"mean": 100, "p95": 1000},
            {"mean": 0, "p95": 1},
            {"low": 1, "high": 2, "mean": 1},
            {"low": 1, "high": float("inf")},
            {},
            [1, 2],
            "5..",
            "..",
            "a..b",
            "2..1",
            {1: 2},
        ],
    )
    def test_impossible_ones_are_one_line(self, value: object) -> None:
        assert "workload.input_tokens" in refusal(changed("workload.input_tokens", value))


class TestAcceptance:
    @pytest.mark.parametrize(
        ("key", "value", "wanted"),
        [
            ("acceptance", [0.8, 0.6], Acceptance(cumulative=(0.8, 0.6))),
            ("acceptance", "0.8, 0.6", Acceptance(cumulative=(0.8, 0.6))),
            ("acceptance_conditional", [0.7, 0.9], Acceptance(conditional=(0.7, 0.9))),
            ("acceptance_length", 2.4, Acceptance(length=2.4)),
            ("acceptance_rate", {"low": 0.4, "high": 0.6}, Acceptance(rate=Range(low=0.4, high=0.6))),
            ("acceptance_alpha", 0.7, Acceptance(alpha=0.7)),
        ],
    )
    def test_each_form(self, key: str, value: object, wanted: Acceptance) -> None:
        table = changed(f"workload.{key}", value, changed("workload.acceptance_cumulative", None))
        assert resolve_table(table).deployment.workload.acceptance == wanted

    def test_a_rising_list_says_which_key_to_use(self) -> None:
        table = changed("workload.acceptance", [0.6, 0.8], changed("workload.acceptance_cumulative", None))
        assert "acceptance_conditional" in refusal(table)

    def test_one_number_says_its_choices(self) -> None:
        table = changed("workload.acceptance", 0.7, changed("workload.acceptance_cumulative", None))
        line = refusal(table)
        assert "acceptance_rate" in line and "acceptance_alpha" in line

    def test_a_length_beyond_k_plus_one_is_impossible(self) -> None:
        table = changed("workload.acceptance_length", 5.0, changed("workload.acceptance_cumulative", None))
        assert "at most 4" in refusal(changed("workload.acceptance_k", 3, table))

    @pytest.mark.parametrize("value", [[1.2, 0.5], [0.5, -0.1], [], ["x"], [float("nan")], "0.5,,", {"a": 1}, True])
    def test_impossible_lists_are_one_line(self, value: object) -> None:
        refusal(changed("workload.acceptance", value, changed("workload.acceptance_cumulative", None)))

    def test_two_forms_in_one_place_are_refused(self) -> None:
        assert "acceptance_alpha" in refusal(changed("workload.acceptance_alpha", 0.5))


class TestWhatIsMissing:
    def test_arrivals_name_the_choices(self) -> None:
        line = refusal(changed("workload.request_rate", None))
        for choice in ("--rate", "--concurrency", "--batch", "--trace"):
            assert choice in line

    def test_two_forms_of_arrivals_are_refused(self) -> None:
        line = refusal(changed("workload.concurrency", 4))
        assert "workload.request_rate" in line and "workload.concurrency" in line

    def test_lengths(self) -> None:
        assert "workload.output_tokens" in refusal(changed("workload.output_tokens", None))

    def test_a_pinned_batch_needs_a_context_or_lengths(self) -> None:
        pinned = changed("workload", {"batch": 8})
        assert "context_tokens" in refusal(pinned)
        found = resolve_table(changed("workload.context_tokens", 4096, pinned)).deployment.workload
        assert (found.batch, found.context_tokens, found.input_tokens) == (8, 4096, None)

    def test_a_context_goes_with_a_batch_only(self) -> None:
        assert "workload.batch" in refusal(changed("workload.context_tokens", 100))

    def test_model_and_hardware(self) -> None:
        assert "--model" in refusal(changed("model", None))
        assert "--hardware" in refusal(changed("hardware", None))

    def test_nothing_at_all(self) -> None:
        assert "--model" in refusal({})


@pytest.mark.parametrize(
    ("path", "value", "near"),
    [
        ("workload.input_token", 5, "workload.input_tokens"),
        ("engine.max_num_seq", 5, "engine.max_num_seqs"),
        ("engin", {}, "engine"),
        ("workload.max_num_seqs", 5, "engine.max_num_seqs"),
        ("slo.ttft", 1, "slo.ttft_s"),
        ("hardware.devices", "x", "hardware.device"),
        ("price.per_device_hours", 1, "price.per_device_hour"),
    ],
)
def test_an_unknown_key_is_told_with_its_path_and_the_nearest(path: str, value: object, near: str) -> None:
    line = refusal(changed(path, value))
    assert path in line and near in line


def test_unknown_devices_models_and_engines_are_told_with_near_ones() -> None:
    assert "h100-sxm" in refusal(changed("hardware.device", "h100-smx"))
    assert "llama-3.1-70b" in refusal(changed("model", "llama-3.1-70"))
    assert "vllm" in refusal(changed("engine.name", "vlm"))
    assert "config.json" in refusal(changed("model", "someone/unheard-of"))
    with pytest.raises(UnknownNameError):
        resolve_table(changed("model", "unheard-of"))


class TestParallelism:
    def test_an_impossible_size_lists_the_legal_ones(self) -> None:
        line = refusal(changed("engine.tensor_parallel_size", 3, changed("hardware.count", 3)))
        wanted = "engine.tensor_parallel_size = 3: 64 heads and 8 KV heads cannot be split over 3 devices (use 1, 2, 4, 8, 16, 32 or 64)"
        assert line == wanted

    def test_mla_needs_only_the_query_heads(self) -> None:
        table = changed("model", "deepseek-v3", changed("hardware.count", 16, changed("engine.tensor_parallel_size", 16)))
        assert resolve_table(changed("engine.speculative", None, table)).deployment.engine.tensor_parallel_size == 16

    @pytest.mark.parametrize(("count", "size"), [(3, 2), (2, 4), (6, 4)])
    def test_a_count_is_whole_replicas(self, count: int, size: int) -> None:
        assert "hardware.count" in refusal(changed("hardware.count", count, changed("engine.tensor_parallel_size", size)))

    def test_more_devices_are_replicas(self) -> None:
        assert resolve_table(changed("hardware.count", 8)).deployment.replicas == 2

    def test_where_nothing_is_stated_all_devices_hold_one_replica_and_it_is_said(self) -> None:
        found = resolve(flags=FLAGS)
        assert found.deployment.engine.tensor_parallel_size == 4
        assert found.deployment.provenance["engine.tensor_parallel_size"] == "assumed"
        assert "tensor_parallel_size" in said(found)

    def test_what_the_heads_cannot_share_is_left_to_replicas(self) -> None:
        found = resolve(flags={**FLAGS, "hardware": "h100-sxm:6"}).deployment
        assert (found.engine.tensor_parallel_size, found.replicas) == (2, 3)

    def test_a_count_not_stated_follows_from_the_sizes(self) -> None:
        found = resolve(flags={**FLAGS, "hardware": "h100-sxm", "tp": 4, "pp": 2}).deployment
        assert found.hardware.count == 8 and found.provenance["hardware.count"] == "assumed"

    def test_data_parallel_ranks_of_a_dense_model_are_replicas(self) -> None:
        assert resolve(flags={**FLAGS, "hardware": "h100-sxm:8", "tp": 4, "dp": 2}).deployment.replicas == 2
        assert "replicas" in refusal(TABLE, flags={"dp": 4})

    def test_data_parallel_ranks_of_a_mixture_share_a_replica(self) -> None:
        found = resolve(flags={**FLAGS, "model": "mixtral-8x7b", "hardware": "h100-sxm:8", "tp": 4, "dp": 2}).deployment
        assert (found.replicas, found.engine.data_parallel_size) == (1, 2)
        assert resolve(flags={**FLAGS, "model": "mixtral-8x7b", "hardware": "h100-sxm", "tp": 2, "dp": 4}).deployment.hardware.count == 8

    def test_context_parallel_sizes_are_read_by_their_short_names_too(self) -> None:
        found = resolve(flags={**FLAGS, "model": "deepseek-v3", "hardware": "h200-sxm:16", "tp": 8, "dcp": 4, "pcp": 2}).deployment
        assert (found.engine.decode_context_parallel_size, found.engine.prefill_context_parallel_size, found.replicas) == (4, 2, 1)

    def test_more_stages_than_layers(self) -> None:
        assert "80 layers" in refusal(changed("engine.pipeline_parallel_size", 81))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(
            (f"workload.{name}", value)
            for name in ("input_tokens", "output_tokens", "request_rate")
            for value in (-1, 0, float("nan"), float("inf"), "x", True, [])
        ),
        *(("workload.prefix_hit_rate", value) for value in (-0.1, 1.1, float("nan"), "high")),
        *(("engine.gpu_memory_utilization", value) for value in (0, -0.5, 1.01, float("nan"))),
        *(
            (f"engine.{name}", value)
            for name in ("max_num_seqs", "tensor_parallel_size", "block_size")
            for value in (0, -1, 2.5, "many", 10**400)
        ),
        ("engine.quantization", "fp7"),
        ("engine.kv_cache_dtype", "fp9"),
        ("engine.dtype", "int8"),
        ("engine.enforce_eager", "perhaps"),
        ("engine.version", "banana"),
        ("engine.dtype", "float32"),
        ("engine.quantization", "gguf"),
        ("engine.quantization", "compressed-tensors"),
        *(("engine.kv_cache_dtype", word) for word in ("int4", "nvfp4", "q4_1", "q5_0", "q5_1")),
        ("engine.speculative.topk", 0),
        ("engine.speculative.topk", 4),
        ("engine.speculative", {"method": "eagle", "num_speculative_tokens": 5, "topk": 4, "verify_tokens": 5}),
        ("engine.speculative", {"method": "suffix", "num_speculative_tokens": 5}),
        ("engine.version", 0.1),
        ("engine.speculative", 5),
        ("engine.speculative", {"method": "eagle3"}),
        ("engine.speculative", {"method": "magic", "num_speculative_tokens": 3}),
        ("engine.speculative.num_speculative_tokens", 0),
        ("hardware.count", 0),
        ("hardware.count", -4),
        ("hardware", []),
        ("hardware.device", ""),
        ("model", 5.5),
        ("model", ""),
        ("model", {}),
        ("slo.ttft_s", 0),
        ("slo.tpot_s", -1),
        ("price.per_device_hour", -2),
        ("price", "cheap"),
        ("workload.task", "juggling"),
        ("workload.trace", "absent.csv"),
        ("engine", "vlm"),
        ("workload", 3),
    ],
)
def test_a_value_that_cannot_be_used_is_one_line(path: str, value: object) -> None:
    line = refusal(changed(path, value))
    assert len(line) < 600
