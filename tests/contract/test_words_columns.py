"""Every distinct string of the shared measurements, read by the one normaliser: how many are understood, and why the others are not.

A string that is not understood stands here with its reason. One that comes to be understood leaves the list; a new one has to be told.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from breakeven.measured import words
from breakeven.measured.row import NotUnderstood

Rows = list[dict[str, str]]
FILES = (
    "lever_points",
    "silicon_e2e",
    "step_time_misc",
    "step_time_splitwise",
    "engine_cpu",
    "ops_gemm_latency",
    "ops_decode_attention_latency",
    "ops_vidur_linear",
)
Refused = dict[str, set[str]]

DEVICES: Refused = {
    "not_stated": {
        "Ascend NPU (A2/A3, not named)",
        "H100 class (not stated)",
        "NVIDIA RTX (Windows; see source)",
        "not stated",
        "unnamed single device (README does not say)",
    },
    "two_named": {"A10G / A100-40G", "RTX 3090 or A100 (notes do not say for this row)"},
    # No entry: two consumer cards, a line of chips without its bin, and no device at all.
    "device_unknown": {"3080 Ti 12GB", "4070 Ti 12GB", "Huawei Ascend Ascend910", "trace replay"},
}
MODELS: Refused = {
    "not_stated": {"not named (MMLU 89)"},
    "two_named": {"LLaMA-7B / 13B"},
    "several_fit": {"LLaMA 70B"},
    # Shapes that are not public or not in the catalogue, a matrix, traces, and files of our own runs by their own names.
    "model_unknown": {
        "7B 4-token",
        "GPT-3 175B",
        "VILA1.5-3B",
        "Vicuna",
        "hochelaga-8b (8B)",
        "matmul 72k x 18k",
        "conversation_trace",
        "synthetic_trace",
        "draft2L-Q4_0",
        "smol-F16",
        "smol-Q4_0",
        "smol-Q8_0",
        "smol_hf",
    },
}
ENGINES: Refused = {
    "not_stated": {"see setting"},
    "two_named": {
        "Mooncake vs vLLM 0.5.1",
        "Orca vs FasterTransformer",
        "Sarathi-Serve vs vLLM (2024)",
        "TensorRT-LLM vs QServe",
        "vLLM base vs SGLang EAGLE3 FP8",
        "vLLM vs HF Transformers",
    },
    "kernel_only": {"kernel only: Marlin", "kernel only: bitsandbytes", "kernel only: torch-nightly int4"},
    # Ports, forks, research code and simulators.
    "engine_unknown": {
        "HF/EAGLE code",
        "LRU over 512-token blocks, longest prefix",
        "MagicDec",
        "Mooncake",
        "ONNX Runtime DirectML",
        "SAMD static-cache code",
        "gpt-fast based",
        "vLLM PR (first APC)",
        "vllm-ascend 0.12",
        "vllm-ascend 0.18.0rc1",
        "vllm-tpu 0.13.3",
        "xFormers",
    },
}
WEIGHTS: Refused = {"not_stated": {""}, "two_named": {"bf16->fp8"}, "weight_format_unknown": {"W4A8"}}
CACHES: Refused = {
    "not_stated": {"", "not stated", "not stated (TRT best)"},
    "kv_format_unknown": {
        "2-bit (K per channel, V per token)",
        "K4V2 (TurboQuant)",
    },
}
SPLITS: Refused = {
    "not_stated": {"", "not stated in JSON", "see paper"},
    "split_unknown": {"TP/PP"},
}
LENGTHS: Refused = {"not_stated": {""}, "no_tokens": {"exponential, capped to 1536"}}
LOADS: Refused = {
    "load_unknown": {
        "10 nodes",
        "10 nodes, 3M tokens each",
        "ShareGPT",
        "equal latency",
        "tail-latency SLO",
        "trace",
        "up to 4x larger batch",
    },
}
METRICS: Refused = {
    # Counters of our own runs, a chunk's time and a whole run's.
    "metric_unknown": {
        "chunk_step_time",
        "draft_n",
        "draft_n_accepted",
        "iteration_tokens",
        "iterations",
        "n_decode",
        "preemptions",
        "prefix_hits",
        "prefix_queries",
        "spec_num_drafts",
        "srv_cache_n_sum",
        "srv_prompt_n_sum",
        "wall_s",
    },
}
LEVERS: Refused = {
    "levers_together": {"speculative_decoding+weight_quant", "weight_quant+kv_quant"},
    "lever_unknown": {"kv_prefill_incremental"},
}
DRAFTS: Refused = {
    "two_named": {f"P-EAGLE K=7 (AL {a}) vs EAGLE-3 best K (K=3 AL {b})" for a, b in (("3.38", "2.24"), ("3.7", "2.7"), ("3.94", "2.65"))},
    "k_not_stated": {
        "EAGLE3 AL 1.35",
        "PLD",
        "PLD AL 2.24",
        "SpS (draft model)",
        "EAGLE-2 (tree), tau=4.05",
        "EAGLE-2 (tree), tau=4.24",
        "EAGLE-3 (tree), tau=6.13",
        "EAGLE-3 (tree), tau=6.23",
    },
    "method_unknown": {
        "HOWL AL 5.31",
        "OWL AL 4.27",
        "SAMD AL 2.48",
        "Lookahead",
        "Medusa",
        "REST",
        "Recycling",
        "Token recycling AL 2.97",
        "SnapKV self-speculation",
        "Suffix decoding AL 2.61",
        "self-spec, optimal gamma=3",
        "self-spec, optimal gamma=4",
        "self-spec, optimal gamma=5",
    },
}
HITS: Refused = {
    "no_share": {
        *(f"cache capacity {n} blocks" for n in (1000, 2000, 4000, 8000, 10000, 16000, 30000, 32000, 50000, 64000, 100000, "inf")),
        *(f"global vs local cache, {load}" for load in ("conversation", "synthetic", "tool&agent")),
        "prefix_repetition dataset",
    },
}

COLUMNS: tuple[tuple[str, Callable[[str], object], Refused, float], ...] = (
    ("lever_points.hardware step_time_misc.hardware step_time_splitwise.hardware ops_vidur_linear.hardware", words.device, DEVICES, 0.87),
    ("silicon_e2e.system ops_gemm_latency.system ops_decode_attention_latency.system", words.device, {}, 1.0),
    ("lever_points.model step_time_misc.model step_time_splitwise.model ops_vidur_linear.model engine_cpu.model", words.model, MODELS, 0.8),
    ("silicon_e2e.model_path", words.model, {}, 1.0),
    ("lever_points.engine step_time_misc.engine", words.engine, ENGINES, 0.66),
    ("silicon_e2e.backend ops_gemm_latency.engine ops_decode_attention_latency.engine engine_cpu.engine", words.engine, {}, 1.0),
    (
        "lever_points.weight_dtype step_time_misc.weight_dtype silicon_e2e.precision silicon_e2e.gemm_quant_mode",
        words.weight_format,
        WEIGHTS,
        0.93,
    ),
    ("lever_points.kv_dtype", words.kv_format, CACHES, 0.6),
    ("lever_points.context_or_input_len lever_points.output_len step_time_misc.input_len", words.tokens, LENGTHS, 0.96),
    ("lever_points.batch_or_concurrency step_time_misc.batch", words.load, LOADS, 0.88),
    ("lever_points.metric step_time_misc.metric engine_cpu.metric", words.metric, METRICS, 0.82),
    ("lever_points.lever engine_cpu.lever", words.lever, LEVERS, 0.7),
    ("lever_points.value_off lever_points.value_on lever_points.gain_gt1_is_better silicon_e2e.silicon_tpot_ms", words.number, {}, 1.0),
)
"""Columns, who reads them, what is not understood and why, and the share of the distinct strings that is."""


@pytest.fixture(scope="module")
def column(shared: Path) -> Callable[[str], set[str]]:
    @cache
    def rows(name: str) -> Rows:
        with (shared / "data" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return lambda place: {row[place.split(".")[1]] for row in rows(place.split(".")[0])}


@pytest.fixture(scope="module")
def points(shared: Path) -> Rows:
    with (shared / "data" / "lever_points.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def refused(read: Callable[[str], object], strings: Iterable[str]) -> Refused:
    found: Refused = {}
    for each in strings:
        try:
            read(each)
        except NotUnderstood as reason:
            found.setdefault(reason.message.key.removeprefix("words."), set()).add(each)
    return found


@pytest.mark.parametrize(("places", "read", "expected", "share"), COLUMNS, ids=[each[0].split()[0] for each in COLUMNS])
def test_every_string_of_a_column_is_understood_or_refused_for_its_reason(
    column: Callable[[str], set[str]], places: str, read: Callable[[str], object], expected: Refused, share: float
) -> None:
    strings = set().union(*(column(place) for place in places.split()))
    found = refused(read, strings)
    assert found == expected
    understood = 1 - sum(len(each) for each in found.values()) / len(strings)
    assert understood >= share, f"{understood:.2f} of {len(strings)}"


def settings(points: Rows, lever: str) -> set[str]:
    return {row["lever_setting"] for row in points if row["lever"] == lever}


def test_every_setting_of_weights_has_two_formats(points: Rows) -> None:
    def both(text: str) -> tuple[str, str]:
        off, on = words.setting(text)
        return words.weight_format(off), words.weight_format(on)

    assert refused(both, settings(points, "weight_quant")) == {}


def test_every_setting_of_the_cache_has_two_formats_or_names_one_that_no_kernel_reads(points: Rows) -> None:
    def both(text: str) -> str:
        off, on = words.setting(text)
        assert not off or words.kv_format(off) == "bf16"
        return words.kv_format(on)

    assert refused(both, settings(points, "kv_quant")) == {
        "kv_format_unknown": {
            "FP8 skip-SW",
            "bf16->FP8 skip-SW",
            "bf16->K4V2",
            "fp16->2-bit",
        }
    }


def test_every_setting_of_drafts_is_read_or_refused_for_its_reason(points: Rows) -> None:
    found = settings(points, "speculative_decoding")
    assert refused(words.speculative, found) == DRAFTS
    assert len(found) > 300 and sum(map(len, DRAFTS.values())) < 30


def test_every_stated_acceptance_is_read(points: Rows) -> None:
    found = settings(points, "speculative_decoding")
    without = refused(words.acceptance, found)
    assert without.keys() == {"no_acceptance", "two_named"} and without["two_named"] == DRAFTS["two_named"]
    assert not [each for each in without["no_acceptance"] if " AL " in each or "tau" in each or "accept" in each or "/forward" in each]


def test_every_setting_of_the_prefix_cache_has_a_share_or_states_none(points: Rows) -> None:
    assert refused(words.hit_rate, settings(points, "prefix_caching")) == HITS


def test_every_label_of_parallelism_is_a_split_or_states_none(points: Rows) -> None:
    labels = {(row["parallelism"], row["n_gpus"]) for row in points}
    found: Refused = {}
    for label, gpus in labels:
        try:
            split = words.parallelism(label, int(gpus) if gpus.isdigit() else None)
        except NotUnderstood as reason:
            found.setdefault(reason.message.key.removeprefix("words."), set()).add(label)
        else:
            assert split.devices == split.pp * split.tp * split.dp <= 36
    assert found == SPLITS


def test_the_four_encodings_of_recorded_runs_come_to_what_their_ids_say(shared: Path) -> None:
    with (shared / "data" / "silicon_e2e.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mode"] == "agg" and row["origin"].startswith("dated")]
    numbers = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    for row in rows:
        tp, ep = (int(part.split("_")[0]) for part in row["id"].split("_tp")[1].split("_ep"))
        split = words.split_of(*(int(row[name]) for name in numbers))
        assert (split.devices, split.ep) == (tp, ep), row["id"]
    assert len(rows) > 700


def test_the_versions_of_recorded_engines_are_kept(shared: Path) -> None:
    with (shared / "data" / "silicon_e2e.csv").open(encoding="utf-8", newline="") as file:
        pairs = {(row["backend"], row["backend_version"]) for row in csv.DictReader(file)}
    for name, version in pairs:
        read = words.engine(name, version)
        assert read[0] == name and (read[1] == version or not version[:1].isdigit())
