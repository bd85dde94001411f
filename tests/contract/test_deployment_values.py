"""Values of a deployment: drafts, formats, settings without effect, uncertain numbers, traces, and any mapping at all."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from deployment_tables import FIGURES, FLAGS, TABLE, changed, refusal, said
from hypothesis import given
from hypothesis import strategies as st

from breakeven.api import evaluate
from breakeven.errors import BreakevenError, InputError
from breakeven.kernels import WITHOUT_UNIT, kv_format, kv_names, weight_kernels, weight_names
from breakeven.messages import text
from breakeven.origin.resolve import resolve, resolve_table
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Slo


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
        slo = resolve_table(changed("slo.ttft_p99_s", 2.0)).deployment.slo
        assert slo == Slo(ttft_s=1.0, tpot_s=0.05, tails=("ttft_p99_s",), tail_limits_s=(2.0,))


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
