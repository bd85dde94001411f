"""Which kernel family runs a format on a device, and what it costs."""

from __future__ import annotations

import pytest

from breakeven import api, catalog
from breakeven.draws import MEDIAN, Draws
from breakeven.errors import NotModelledError, UnknownNameError
from breakeven.kernels import (
    BY_QUANTIZATION,
    BY_STORED,
    WITHOUT_UNIT,
    cuda_capability,
    kv_format,
    kv_kernel,
    kv_names,
    kv_words,
    matmul_rate,
    on_device,
    quantization_named,
    quantization_words,
    sixteen_bit,
    weight_kernel,
    weight_kernels,
    weight_names,
)
from breakeven.spec.engine import Engine


def kernels(model: str, device: str, **engine: object) -> dict[str, str]:
    found = weight_kernels(api.model(model), Engine(**engine), api.hardware(device).device)
    return {name: kernel.name for name, kernel in found.items()}


@pytest.mark.parametrize(
    ("model", "device", "engine", "expected"),
    [
        ("llama-3.1-8b", "h100-sxm", {}, "bf16"),
        ("llama-2-13b", "h100-sxm", {}, "fp16"),
        ("llama-3.1-8b", "v100-sxm2-32", {"dtype": "float16"}, "fp16"),
        ("llama-3.1-8b", "h100-sxm", {"quantization": "fp8"}, "fp8"),
        ("llama-3.1-8b", "a100-sxm-80", {"quantization": "fp8"}, "fp8_weight_only"),
        ("llama-3.1-8b", "l40s", {"quantization": "fp8"}, "fp8"),
        ("llama-3.1-8b", "h100-sxm", {"quantization": "awq"}, "int4"),
        ("llama-3.1-8b", "h100-sxm", {"quantization": "gptq_marlin"}, "int4_marlin"),
        ("llama-3.1-8b", "b200-sxm", {"quantization": "modelopt_fp4"}, "nvfp4"),
        ("llama-3.1-8b", "h100-sxm", {"quantization": "nvfp4"}, "mxfp4_weight_only"),
        ("llama-3.1-8b", "h100-sxm", {"quantization": "GPTQ_Marlin"}, "int4_marlin"),
    ],
)
def test_the_setting_and_the_device_choose_the_family(model, device, engine, expected) -> None:
    found = kernels(model, device, **engine)
    assert found["mlp"] == found["attention"] == expected


@pytest.mark.parametrize(
    ("model", "device", "expected"),
    [
        ("deepseek-v3", "h200-sxm", "fp8"),
        ("deepseek-v3", "a100-sxm-80", "fp8_weight_only"),
        ("gpt-oss-120b", "h100-sxm", "mxfp4_weight_only"),
        ("gpt-oss-120b", "b200-sxm", "mxfp4"),
        ("gpt-oss-120b", "mi355x", "mxfp4"),
    ],
)
def test_what_a_checkpoint_stores_runs_as_the_device_can(model, device, expected) -> None:
    found = kernels(model, device)
    assert found["experts"] == expected
    assert found["embedding"] == found["head"] == "bf16"


def test_head_and_embedding_stay_in_sixteen_bits_but_in_gguf() -> None:
    assert kernels("llama-3.1-8b", "h100-sxm", quantization="awq")["head"] == "bf16"
    assert kernels("qwen2.5-7b", "m3-max-40c", quantization="q4_k_m")["head"] == "q4_k_m"


def test_nvfp4_leaves_the_attention_of_a_mixture_alone() -> None:
    assert kernels("qwen3-30b-a3b", "b200-sxm", quantization="nvfp4") == {
        "embedding": "bf16",
        "head": "bf16",
        "attention": "bf16",
        "mlp": "nvfp4",
        "experts": "nvfp4",
        "other": "bf16",
        "lookup": "bf16",
    }
    assert kernels("llama-3.1-8b", "b200-sxm", quantization="nvfp4")["attention"] == "nvfp4"


def test_every_spelling_names_a_family_and_every_family_can_be_set() -> None:
    assert set(BY_QUANTIZATION.values()) | set(BY_STORED.values()) | set(WITHOUT_UNIT) | set(WITHOUT_UNIT.values()) <= set(weight_names())
    for name in weight_names():
        kernels("llama-3.1-8b", "h100-sxm", quantization=name)


@pytest.mark.parametrize("word", ["gguf", "compressed-tensors"])
def test_a_word_that_leaves_the_format_to_the_checkpoint_needs_one_that_says_it(word: str) -> None:
    with pytest.raises(NotModelledError, match=r"config\.json") as refused:
        kernels("llama-3.1-8b", "h100-sxm", quantization=word)
    assert "q4_k_m" in str(refused.value)
    assert kernels("deepseek-v3", "h200-sxm", quantization=word)["experts"] == "fp8"


def test_all_that_is_accepted_has_a_kernel_and_every_family_is_accepted() -> None:
    assert {name for name in weight_names() if name not in ("bf16", "fp16")} <= set(quantization_words())
    assert {quantization_named(word) for word in quantization_words()} <= {*weight_names(), None}
    for word in kv_words():
        kv_kernel(kv_format(api.model("llama-3.1-8b"), Engine(kv_cache_dtype=word)))


@pytest.mark.parametrize("word", ["int4", "nvfp4", "q4_1", "q5_0", "q5_1", "fp8_ds_mla", "fp9"])
def test_a_cache_format_without_a_kernel_is_refused_with_those_that_have_one(word: str) -> None:
    with pytest.raises(NotModelledError, match=word) as refused:
        kv_format(api.model("llama-3.1-8b"), Engine(kv_cache_dtype=word))
    assert all(name in str(refused.value) for name in kv_names())


@pytest.mark.parametrize("word", ["float32", "float", "int8", ""])
def test_a_type_wider_than_sixteen_bits_is_refused_not_counted_as_one(word: str) -> None:
    with pytest.raises(NotModelledError, match=r"engine\.dtype"):
        sixteen_bit(api.model("llama-3.1-8b"), Engine(dtype=word))


def test_a_format_that_is_not_modelled_is_refused_by_name() -> None:
    with pytest.raises(NotModelledError, match="aqlm"):
        kernels("llama-3.1-8b", "h100-sxm", quantization="aqlm")
    with pytest.raises(UnknownNameError, match="weight format"):
        weight_kernel("fp7")
    with pytest.raises(UnknownNameError, match="KV cache format"):
        kv_kernel("fp7")


@pytest.mark.parametrize("device", sorted(name for name in catalog.names("hardware") if api.hardware(name).device.matmul_flops))
def test_a_family_computes_at_a_rate_its_device_has(device: str) -> None:
    """Eight bits give at most 2.1 times the rate of sixteen: more is a sparse figure."""
    d = api.hardware(device).device
    sixteen = matmul_rate(d, "bf16")
    for name in weight_names():
        kernel = on_device(name, d)
        rate = matmul_rate(d, kernel.compute)
        if kernel.compute in ("fp8", "int8"):
            assert rate <= 2.1 * sixteen or d.notes
        assert rate >= sixteen or (kernel.compute == "int8" and d.family == "blackwell")  # Blackwell Ultra gave up its int8 units


@pytest.mark.parametrize("name", weight_names())
def test_no_kernel_reaches_more_than_the_sixteen_bit_one(name: str) -> None:
    kernel = weight_kernel(name)
    assert all(0 < phi <= 1 for phi in kernel.phi.values())
    assert all(delta >= 0.5 for delta in (*kernel.delta_decode.values(), *kernel.delta_prefill.values()))
    assert 1.5 / 8 <= kernel.bytes <= 4.0  # from IQ1_S to F32


@pytest.mark.parametrize("name", kv_names())
def test_a_cache_kernel_is_at_most_as_good_as_sixteen_bits(name: str) -> None:
    kernel = kv_kernel(name)
    assert 0 < kernel.phi_narrow <= kernel.phi <= 1
    assert kernel.prefill >= 1
    assert 0.5 <= kernel.bytes <= 2.0


def test_an_unnamed_kernel_is_anywhere_in_its_range() -> None:
    kernel = weight_kernel("int4")
    low, high = kernel.delta_decode_range
    drawn = kernel.delta("hopper", Draws(512, 0))
    assert low <= drawn.min() < 1.1 * low
    assert 0.9 * high < drawn.max() <= high
    assert low < kernel.delta("hopper", MEDIAN) < high
    assert weight_kernel("int4_marlin").delta("hopper", Draws(512, 0)) == 1.0


def test_a_workstation_card_takes_its_class_where_it_has_no_figure_of_its_own() -> None:
    kernel = weight_kernel("fp8_weight_only")
    assert (kernel.delta_prefill["ampere-ws"], kernel.delta_prefill["default"]) == (1.3, 1.15)
    from breakeven.kernels import by_family

    assert by_family(kernel.delta_prefill, "ampere-ws") == 1.3
    assert by_family({"default": 1.0, "ada": 2.0}, "ada-ws") == 2.0
    assert by_family({"default": 1.0, "ada": 2.0}, "hopper") == 1.0


@pytest.mark.parametrize(
    ("asked", "model", "expected"),
    [
        ("auto", "llama-3.1-8b", "bf16"),
        ("fp8", "llama-3.1-8b", "fp8"),
        ("fp8_e5m2", "llama-3.1-8b", "fp8"),
        ("bfloat16", "llama-3.1-8b", "bf16"),
        ("half", "llama-3.1-8b", "bf16"),
        ("q8_0", "llama-3.1-8b", "q8_0"),
    ],
)
def test_the_cache_format_is_as_set_or_the_models(asked, model, expected) -> None:
    assert kv_format(api.model(model), Engine(kv_cache_dtype=asked)) == expected


def test_the_cache_format_of_a_checkpoint_is_taken() -> None:
    from dataclasses import replace

    asks = replace(api.model("llama-3.1-8b"), kv_scheme="fp8")
    assert kv_format(asks, Engine()) == "fp8"
    assert kv_format(asks, Engine(kv_cache_dtype="bfloat16")) == "bf16"
    other = replace(asks, kv_scheme="nvfp4")
    with pytest.raises(NotModelledError, match="--kv-cache-dtype"):
        kv_format(other, Engine())
    assert kv_format(other, Engine(kv_cache_dtype="fp8")) == "fp8"


@pytest.mark.parametrize(
    ("dtype", "model", "expected"),
    [
        ("auto", "llama-3.1-8b", "bf16"),
        ("auto", "llama-2-13b", "fp16"),
        ("half", "llama-3.1-8b", "fp16"),
        ("bfloat16", "llama-2-13b", "bf16"),
    ],
)
def test_sixteen_bits_are_the_engines_or_the_models(dtype, model, expected) -> None:
    assert sixteen_bit(api.model(model), Engine(dtype=dtype)) == expected


def test_capability_is_a_number_on_cuda_only() -> None:
    assert cuda_capability(api.hardware("h100-sxm").device) == 90
    assert cuda_capability(api.hardware("rtx-5090").device) == 120
    assert cuda_capability(api.hardware("mi300x").device) is None
