"""A deployment from whatever the user has: precedence, provenance, and one clear line for all that cannot be used."""

from __future__ import annotations

import copy
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.api import evaluate
from breakeven.errors import BreakevenError, InputError, UnknownNameError
from breakeven.kernels import WITHOUT_UNIT, kv_format, kv_names, weight_kernels, weight_names
from breakeven.messages import text
from breakeven.origin.resolve import Resolved, resolve, resolve_table
from breakeven.spec.deployment import Provenance
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.workload import Acceptance, Price, Slo
from breakeven.stats import Range, Spread

FIGURES = ("batch", "step_s", "tpot_s", "ttft_s", "throughput", "capacity")
FLAGS: dict[str, object] = {"model": "llama-3.1-70b", "hardware": "h100-sxm:4", "input": 2000, "output": 300, "rate": 4.0}
TABLE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "hardware": {"device": "h100-sxm", "count": 4},
    "engine": {
        "name": "vllm",
        "version": "0.11",
        "tensor_parallel_size": 4,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "kv_cache_dtype": "auto",
        "enable_prefix_caching": True,
        "gpu_memory_utilization": 0.9,
        "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    },
    "workload": {
        "input_tokens": 2000,
        "output_tokens": 300,
        "request_rate": 4.0,
        "prefix_hit_rate": 0.3,
        "acceptance_cumulative": [0.75, 0.6, 0.45],
    },
    "slo": {"ttft_s": 1.0, "tpot_s": 0.05},
    "price": {"per_device_hour": 2.5, "currency": "USD"},
}
BARE: dict[str, Any] = {name: TABLE[name] for name in ("model", "hardware")}


def changed(path: str, value: object, table: dict[str, Any] = TABLE) -> dict[str, Any]:
    """The table with one value set, or taken out when it is ``None``."""
    found = copy.deepcopy(table)
    *sections, key = path.split(".")
    inner = found
    for section in sections:
        inner = inner.setdefault(section, {})
    if value is None:
        inner.pop(key, None)
    else:
        inner[key] = value
    return found


def refusal(table: dict[str, Any], **more: Any) -> str:
    with pytest.raises(BreakevenError) as refused:
        resolve_table(table, **more)
    line = str(refused.value)
    assert "\n" not in line
    assert text(refused.value.message, "zh")
    return line


def said(resolved: Resolved) -> str:
    return " | ".join(text(warning) for warning in resolved.warnings)


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


class TestSpeculation:
    def test_a_draft_model_of_the_catalogue_is_loaded(self) -> None:
        table = changed("engine.speculative", {"method": "draft_model", "model": "llama-3.2-1b", "num_speculative_tokens": 4})
        found = resolve_table(table).deployment
        assert found.drafts["llama-3.2-1b"].name == "llama-3.2-1b"

    def test_an_unknown_draft_model_is_refused_and_an_unknown_head_is_not(self) -> None:
        assert "nobody/model" in refusal(
            changed("engine.speculative", {"method": "draft_model", "model": "nobody/model", "num_speculative_tokens": 4})
        )
        found = resolve_table(changed("engine.speculative.model", "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B")).deployment
        assert found.engine.speculative is not None and not found.drafts

    def test_it_can_be_switched_off_by_a_flag(self) -> None:
        assert resolve_table(TABLE, flags={"speculative": "off"}).deployment.engine.speculative is None

    def test_a_flag_takes_the_engines_json(self) -> None:
        found = resolve(flags={**FLAGS, "speculative": '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'})
        assert found.deployment.engine.speculative == Speculative(method="ngram", num_speculative_tokens=5)
        assert "engine.speculative" in refusal({}, flags={**FLAGS, "speculative": "ngram:5"})

    def test_tails_are_kept_apart_from_means(self) -> None:
        assert resolve_table(changed("slo.ttft_p99_s", 2.0)).deployment.slo == Slo(ttft_s=1.0, tpot_s=0.05, tails=("ttft_p99_s",))


def test_a_device_without_bf16_computes_in_fp16_and_it_is_said() -> None:
    found = resolve(flags={**FLAGS, "model": "qwen2.5-1.5b", "hardware": "t4"})
    assert found.deployment.engine.dtype == "float16"
    assert "fp16" in said(found)
    assert "bf16" in refusal({}, flags={**FLAGS, "model": "qwen2.5-1.5b", "hardware": "t4", "dtype": "bfloat16"})


@pytest.mark.parametrize("name", [name for name in weight_names() if name not in ("bf16", "fp16")])
def test_every_family_of_weight_kernels_can_be_given_back_by_its_name(name: str) -> None:
    found = resolve(flags={**FLAGS, "quantization": name}).deployment
    assert weight_kernels(found.model, found.engine, found.hardware.device)["mlp"].name in (name, WITHOUT_UNIT.get(name))


@pytest.mark.parametrize("name", kv_names())
def test_every_cache_format_can_be_given_back_by_its_name(name: str) -> None:
    found = resolve(flags={**FLAGS, "kv_cache_dtype": name}).deployment
    assert kv_format(found.model, found.engine) == name


class TestSettingsWithoutEffect:
    STATED: ClassVar = {"max_num_batched_tokens": 1024, "max_model_len": 8192}

    def test_they_are_said_once_where_they_are_stated(self) -> None:
        lines = [text(warning) for warning in resolve(flags={**FLAGS, **self.STATED}).warnings if warning.key == "warning.without_effect"]
        assert len(lines) == 1 and all(name in lines[0] for name in self.STATED)
        assert "without effect" not in said(resolve(flags=FLAGS))

    @pytest.mark.parametrize("name", STATED)
    @pytest.mark.parametrize("model", ["llama-3.1-70b", "mixtral-8x7b"])
    def test_they_have_none(self, name: str, model: str) -> None:
        flags = {**FLAGS, "model": model, "hit_rate": 0.3}
        plain, stated = (evaluate(resolve(flags={**flags, **more}).deployment) for more in ({}, {name: self.STATED[name]}))
        assert [float(getattr(plain, f)) for f in FIGURES] == [float(getattr(stated, f)) for f in FIGURES]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "uncertain",
    [
        {"acceptance_length": {"mean": 3, "p95": 3.9}},
        {"acceptance_rate": {"mean": 0.7, "p95": 0.99}},
        {"hit_rate": {"mean": 0.7, "p95": 0.99}},
        {"output": {"mean": 2, "p95": 6}},
        {"concurrency": {"mean": 1.5, "p95": 4}},
        {"batch": {"mean": 1.5, "p95": 4}},
    ],
)
def test_a_legal_uncertain_value_is_no_error_whatever_its_draws(uncertain: dict[str, object], seed: int) -> None:
    flags = {**FLAGS, "speculative": {"method": "eagle3", "num_speculative_tokens": 3}, **uncertain}
    if {"batch", "concurrency"} & set(uncertain):
        flags.pop("rate")
    point = evaluate(resolve(flags=flags).deployment, draws=512, seed=seed)
    assert np.all(np.isfinite(point.tpot_s)) and np.all(point.tpot_s > 0)
    assert np.all((np.asarray(point.tau) >= 1 - 1e-6) & (np.asarray(point.tau) <= 4 + 1e-6))
    assert np.all((np.asarray(point.demand.hit_rate) >= 0) & (np.asarray(point.demand.hit_rate) <= 1))
    assert np.all(np.asarray(point.demand.output_tokens) >= 1)


def test_an_impossible_bound_of_an_uncertain_value_is_one_line() -> None:
    table = changed("workload.acceptance_length", {"mean": 3.5, "p95": 4.2}, changed("workload.acceptance_cumulative", None))
    assert "at most 4" in refusal(table)
    assert "workload.prefix_hit_rate.p95" in refusal(changed("workload.prefix_hit_rate", {"mean": 0.7, "p95": 1.1}))


@pytest.mark.parametrize("version", ["main", "nightly", "v0.11.0"])
def test_a_build_without_a_number_is_a_version_too(version: str) -> None:
    assert resolve(flags={**FLAGS, "engine_version": version}).deployment.engine.version == version


def test_requests_longer_than_the_engine_takes_are_said() -> None:
    assert "max_model_len" in said(resolve_table(changed("engine.max_model_len", 1024)))


class TestTraces:
    def test_a_trace_gives_lengths_and_arrivals(self, root: Path) -> None:
        found = resolve(file=root / "examples/llama-70b-chat.yaml").deployment
        assert found.workload.lengths is not None and found.workload.lengths.requests == 2000
        assert found.workload.input_tokens == found.workload.lengths.mean_input
        assert found.provenance["workload.request_rate"] == "file"

    def test_what_is_given_beside_it_wins(self, root: Path) -> None:
        found = resolve(file=root / "examples/llama-70b-chat.yaml", flags={"rate": 9, "output": 50}).deployment
        assert found.workload.request_rate == 9 and found.workload.output_tokens == 50
        assert found.workload.lengths is None, "the moments no longer describe the requests"
        assert found.provenance["workload.request_rate"] == "declared"

    def test_a_pinned_batch_beside_a_trace_takes_its_lengths(self, root: Path) -> None:
        found = resolve(file=root / "examples/llama-70b-chat.yaml", flags={"concurrency": 8}).deployment
        assert found.workload.request_rate is None and found.workload.concurrency == 8


def test_a_local_configuration_is_read_beside_the_file_and_from_a_folder(tmp_path: Path) -> None:
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
              "intermediate_size": 128, "vocab_size": 100, "torch_dtype": "bfloat16"}  # fmt: skip
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot/config.json").write_text(json.dumps(config), encoding="utf-8")
    for spelled in ("./snapshot/config.json", "snapshot/config.json", "snapshot", str(tmp_path / "snapshot")):
        (tmp_path / "d.yaml").write_text(f"model: {spelled}\nhardware: l4\nworkload: {{batch: 1, context_tokens: 9}}\n", encoding="utf-8")
        found = resolve(file=tmp_path / "d.yaml").deployment
        assert found.model.layers == 2 and found.provenance["model"] == "file"
    assert "4 heads and 2 KV heads" in refusal({}, flags={**FLAGS, "model": str(tmp_path / "snapshot"), "tp": 3, "hardware": "l4:3"})


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["h100", "llama-3.1-70b", "fp8", "auto", "1..2", "vllm"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6) | st.sampled_from(["low", "high", "mean", "p95", "method"]), inner, max_size=3)
    ),
    max_leaves=6,
)
PATHS = st.sampled_from(
    [
        "model",
        "hardware",
        "hardware.device",
        "hardware.count",
        "engine",
        "engine.version",
        "engine.name",
        "engine.tensor_parallel_size",
        "engine.quantization",
        "engine.speculative",
        "engine.max_model_len",
        "engine.dtype",
        "workload",
        "workload.input_tokens",
        "workload.request_rate",
        "workload.batch",
        "workload.acceptance",
        "workload.acceptance_rate",
        "workload.context_tokens",
        "workload.task",
        "workload.trace",
        "workload.prefix_hit_rate",
        "slo",
        "slo.ttft_s",
        "price",
        "price.currency",
    ]
)


@given(st.dictionaries(PATHS, VALUES, max_size=4), st.dictionaries(PATHS | st.text(max_size=8), VALUES, max_size=3))
def test_any_mapping_is_a_deployment_or_one_line(changes: dict[str, object], flags: dict[str, object]) -> None:
    table = copy.deepcopy(TABLE)
    for path, value in changes.items():
        section, _, key = path.partition(".")
        if key and isinstance(table.get(section), dict):
            table[section][key] = value
        elif not key:
            table[section] = value
    try:
        found = resolve_table(table, flags=flags)
    except BreakevenError as error:
        assert "\n" not in str(error)
    else:
        said(found)


@given(VALUES)
def test_any_table_is_a_deployment_or_one_line(value: object) -> None:
    if isinstance(value, dict):
        with pytest.raises(InputError):
            resolve_table(value)
