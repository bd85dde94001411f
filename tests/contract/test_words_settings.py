"""Formats, the two sides of a setting, and labels of parallelism that lie about their devices."""

from __future__ import annotations

import pytest
from words_refusals import why_not

from breakeven.measured import words


@pytest.mark.parametrize(
    ("phrase", "sides"),
    [
        ("BF16->FP8", ("BF16", "FP8")),
        ("FP16 GEMM -> Marlin", ("FP16 GEMM", "Marlin")),
        ("F16 (12.55 GiB)->Q8_0", ("F16", "Q8_0")),
        ("F16(16.0005 bpw)->IQ2_M(2.9294 bpw)", ("F16", "IQ2_M")),
        ("KV fp16->int8", ("fp16", "int8")),
        ("bf16 \u2192 fp8", ("bf16", "fp8")),
        ("FP8", ("", "FP8")),
    ],
)
def test_a_setting_has_two_sides_without_remarks(phrase: str, sides: tuple[str, str]) -> None:
    assert words.setting(phrase) == sides


@pytest.mark.parametrize(
    ("phrase", "reason"), [("a->b->c", "not_two_sides"), ("a->", "not_two_sides"), ("", "not_stated"), ("->", "not_stated")]
)
def test_a_setting_without_two_sides_is_refused(phrase: str, reason: str) -> None:
    assert why_not(words.setting, phrase) == reason


@pytest.mark.parametrize(
    ("phrase", "engine", "family"),
    [
        ("BF16", "", "bf16"),
        ("16-bit", "", "bf16"),
        ("F16", "", "fp16"),
        ("FP16 GEMM", "", "fp16"),
        ("FP8", "", "fp8"),
        ("fp8_block", "", "fp8"),
        ("W8A8", "", "int8"),
        ("INT8-SQ", "", "int8"),
        ("W8A16", "", "int8_weight_only"),
        ("GPTQ-Int8", "", "int8_weight_only"),
        ("int8 weight-only", "", "int8_weight_only"),
        ("int8", "vllm", "int8"),
        ("int8", "gpt-fast", "int8_weight_only"),
        ("AWQ-INT4", "", "int4"),
        ("GPTQ-INT4", "", "int4"),
        ("W4A16", "", "int4"),
        ("int4 g128", "", "int4"),
        ("int4 g32 weight-only", "", "int4"),
        ("Marlin", "", "int4_marlin"),
        ("bitsandbytes", "", "nf4"),
        ("torch-nightly int4", "", "int4"),
        ("MXFP4", "", "mxfp4"),
        ("NVFP4", "", "nvfp4"),
        ("NVFP4 (weight-only via Marlin)", "", "mxfp4_weight_only"),
        ("Q4_K_M", "", "q4_k_m"),
        ("Q8_0 (6.67 GiB)", "", "q8_0"),
        ("IQ3_XXS", "", "iq3_xxs"),
        ("Q3_K_L", "", "q3_k"),
        ("fp8 (+fp8 KV, fusions)", "", "fp8"),
        ("weights=Q4_0;np=32", "", "q4_0"),
    ],
)
def test_a_weight_format_is_a_kernel_family(phrase: str, engine: str, family: str) -> None:
    assert words.weight_format(phrase, engine) == family


def test_four_bit_weights_with_eight_bit_activations_are_the_engine_s_own() -> None:
    assert words.weight_format("W4A8-AWQ") == words.weight_format("W4A8", "trtllm") == "w4a8"
    assert why_not(words.weight_format, "W4A8") == why_not(words.weight_format, "W4A8", "qserve") == "weight_format_unknown"


def test_a_four_bit_float_is_the_model_s_own() -> None:
    assert words.weight_format("fp4", model=words.model("gpt-oss-120b")) == "mxfp4"
    assert words.weight_format("fp4", model=words.model("deepseek-r1")) == "nvfp4"


def test_the_bits_of_a_file_are_kept_where_they_are_stated() -> None:
    assert words.bits_per_weight("IQ2_M(2.9294 bpw)") == 2.9294
    assert words.bits_per_weight("IQ2_M") is None


def test_a_cache_that_no_kernel_reads_is_refused() -> None:
    assert [words.kv_format(each) for each in ("fp16", "KV fp8", "kv=q8_0", "fp8_e4m3", "TQ 3bit-nc")] == [
        "bf16",
        "fp8",
        "q8_0",
        "fp8",
        "turboquant_3bit_nc",
    ]
    assert why_not(words.kv_format, "2-bit (K per channel)") == why_not(words.kv_format, "FP8 skip-SW") == "kv_format_unknown"
    assert why_not(words.kv_format, "not stated") == "not_stated"


@pytest.mark.parametrize(
    ("label", "gpus", "split"),
    [
        ("TP4", 4, {"tp": 4, "devices": 4}),
        ("none", 1, {"tp": 1, "devices": 1}),
        ("", 1, {"tp": 1, "devices": 1}),
        ("layer split", 6, {"tp": 1, "pp": 6, "devices": 6}),
        ("BF16 TP1 -> FP8 TP1", 1, {"tp": 1, "devices": 1}),
        ("TP64 moe_tp8 moe_ep8 dp1", 64, {"tp": 8, "ep": 8, "devices": 8}),
        ("TP1 moe_tp8 moe_ep8 dp64", 1, {"tp": 1, "dp": 8, "ep": 8, "devices": 8}),
        ("TP16 moe_tp4 moe_ep4 dp1", 16, {"tp": 4, "ep": 4, "devices": 4}),
        ("TP4 moe_tp2 moe_ep2 dp1", 4, {"tp": 2, "ep": 2, "devices": 2}),
        ("TP4 moe_tp1 moe_ep16 dp4", 4, {"tp": 4, "ep": 4, "devices": 4}),
        ("TP4 moe_tp1 moe_ep4 dp1", 4, {"tp": 4, "ep": 4, "devices": 4}),
        ("TP1 moe_tp1 moe_ep8 dp8", 1, {"tp": 1, "dp": 8, "ep": 8, "devices": 8}),
        ("TP8 moe_tp8 moe_ep1 dp1", 8, {"tp": 8, "devices": 8}),
        ("TP8 PP2", 16, {"tp": 8, "pp": 2, "devices": 16}),
        ("tp=2, dp=4", 8, {"tp": 2, "dp": 4, "devices": 8}),
    ],
)
def test_a_label_is_a_split_of_as_many_devices_as_it_means(label: str, gpus: int, split: dict[str, int]) -> None:
    assert words.parallelism(label, gpus) == words.Split(**split)


@pytest.mark.parametrize(
    ("label", "gpus", "reason"),
    [
        ("", 2, "not_stated"),
        ("see paper", 8, "not_stated"),
        ("TP/PP", 8, "split_unknown"),
        ("layer split", None, "devices_not_stated"),
        ("TP1 -> TP8", 8, "two_named"),
        ("TP4 moe_tp3 moe_ep5 dp1", 4, "split_unknown"),
        ("TP0", 1, "split_unknown"),
    ],
)
def test_a_label_that_states_no_split_is_refused(label: str, gpus: int | None, reason: str) -> None:
    assert why_not(words.parallelism, label, gpus) == reason


def test_ranks_that_are_not_recorded_are_not_counted() -> None:
    assert words.split_of(4, None, 2, 2) == words.Split(tp=4, ep=2, devices=4)
