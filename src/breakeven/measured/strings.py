"""The strings of rows, read by patterns until the normaliser has them."""

from __future__ import annotations

import re

from breakeven import catalog
from breakeven.measured.row import NotUnderstood
from breakeven.messages import Message
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model

Patterns = tuple[tuple[str, str | None], ...]
# First match wins, so the more specific pattern stands first (H100 PCIe before H100, 4090 D before 4090).
DEVICES: Patterns = (
    (r"H100 PCIe", "h100-pcie"),
    (r"H100", "h100-sxm"),
    (r"H20-3e", "h20-141"),
    (r"GH200", None),
    (r"H200", "h200-sxm"),
    (r"H20\b", "h20-96"),
    (r"GB200", "gb200"),
    (r"B200", "b200-sxm"),
    (r"B300", "b300-sxm"),
    (r"3090 or A100|A10G / A100", None),
    (r"A100.*40\s?GB", "a100-sxm-40"),
    (r"A100", "a100-sxm-80"),
    (r"A800", "a800-sxm-80"),
    (r"L40S", "l40s"),
    (r"\bL4\b", "l4"),
    (r"A10\b", "a10"),
    (r"6000 Ada", "rtx-6000-ada"),
    (r"4000 Ada", "rtx-4000-ada"),
    (r"A6000", "rtx-a6000"),
    (r"4090 D", "rtx-4090-d"),
    (r"4090", "rtx-4090"),
    (r"4080", "rtx-4080"),
    (r"3090", "rtx-3090"),
    (r"5090", "rtx-5090"),
    (r"M2 Ultra 76|M2 Ultra \(76\)", "m2-ultra-76c"),
    (r"M3 Max 40|M3 Max.*40 GPU", "m3-max-40c"),
    (r"M1 Max 32", "m1-max-32c"),
    (r"M4 Max.*40", "m4-max-40c"),
    (r"M4 Pro.*20", "m4-pro-20c"),
    (r"Apple M4 120", "m4-10c"),
    (r"V100S", "v100s-pcie-32"),
    (r"V100-PCIE-16", "v100-pcie-16"),
    (r"MI250X", "mi250x-gcd"),
    (r"910B2", "ascend-910b2"),
    (r"TPU v6e", "tpu-v6e"),
)
MODELS: Patterns = (
    (r"MiniMax-M2\.5", "minimax-m2.5"),
    (r"gpt-oss-120b", "gpt-oss-120b"),
    (r"gpt-oss-20b", "gpt-oss-20b"),
    (r"DeepSeek-(R1|V3)", "deepseek-v3"),
    (r"Qwen3-(Coder-)?30B-A3B", "qwen3-30b-a3b"),
    (r"Qwen3-235B-A22B", "qwen3-235b-a22b"),
    (r"Qwen3-Coder-480B", None),
    (r"Qwen3-(\d+)B", r"qwen3-\1b"),
    (r"Qwen2\.5-0\.5B", "qwen2.5-0.5b"),
    (r"Mixtral-8x7B", "mixtral-8x7b"),
    (r"Mistral-7B", "mistral-7b-v0.3"),
    (r"Yi-34B", "yi-34b"),
    (r"GPT-J", "gpt-j-6b"),
    (r"OPT-13B", "opt-13b"),
    (r"Llama-3-VILA1\.5-8B", "llama-3-8b"),
    (r"VILA1\.5-13B", "llama-2-13b"),
    (r"VILA|LLaMA-7B / 13B", None),
    (r"Llama-?4-Scout", "llama-4-scout"),
    (r"Llama-?3\.3-70B", "llama-3.3-70b"),
    (r"Llama-?3\.1-70B", "llama-3.1-70b"),
    (r"Llama-?3\.1-8B", "llama-3.1-8b"),
    (r"Llama-?3.*70B", "llama-3-70b"),
    (r"Llama-?3.*8B", "llama-3-8b"),
    (r"Llama-?2.*70B", "llama-2-70b"),
    (r"Llama-?30B", "llama-30b"),
    (r"Llama-?(2-|2-chat-)?13B", "llama-2-13b"),
    (r"Llama-?(2-|2-chat-)?7B", "llama-2-7b"),
)
ENGINES: Patterns = (
    (r"vllm-(ascend|tpu)", None),
    (r"TensorRT-LLM vs|QServe|Orca|Sarathi|vLLM (vs|base)|see setting|LRU|^Mooncake vs|DirectML", None),
    (r"vllm \(version blank\)|^vllm$|vLLM V1$|vLLM, ", "vllm main"),
    (r"^Mooncake", "vllm 0.5.1"),
    (r"vLLM ~?(\d[\w.]*)", r"vllm \1"),
    (r"SGLang (\d[\w.]*)", r"sglang \1"),
    (r"SGLang", "sglang 0.5"),
    (r"TensorRT-LLM|trtllm", "trtllm 1.0"),
    (r"llama\.cpp", "llamacpp b3000"),
    (r"LMDeploy", "lmdeploy 0.4"),
    (r"gpt-fast|MagicDec", "gpt-fast 2024"),
    (r"TinyChat", "tinychat 2024"),
)
WEIGHTS: Patterns = (
    (r"W4A8|Q4_K_S", None),
    (r"W8A16|int8 weight-only", "int8_weight_only"),
    (r"IQ\d_?\w+$|Q[2356]_K", None),
    (r"fp4$", "nvfp4"),
    (r"FP8$", "fp8"),
    (r"W8A8$|INT8-SQ|GPTQ-INT8|int8$", "int8"),
    (r"Q4_K_M", "q4_k_m"),
    (r"Q4_0", "q4_0"),
    (r"Q8_0", "q8_0"),
    (r"W4A16|AWQ|INT4", "int4"),
)
SHAREGPT = {"prompt": 230.0, "output": 240.0}


def refused(key: str, **values: object) -> NotUnderstood:
    """The reason why a row is not answered."""
    return NotUnderstood(Message(f"pair.{key}", values))


def first(patterns: Patterns, text: str, key: str) -> str:
    """The name of the first pattern that is found."""
    for pattern, name in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            if name is None:
                break
            return match.expand(name).lower()
    raise refused(key, written=text)


def device(text: str) -> Device:
    """The device of a row."""
    return catalog.load("hardware", first(DEVICES, text, "device_unknown"))


def model(text: str) -> Model:
    """The model of a row."""
    return catalog.load("models", first(MODELS, text, "model_unknown"))


def engine(text: str) -> tuple[str, str]:
    """The class of engine of a row, and its version."""
    name, _, version = first(ENGINES, text, "engine_unknown").partition(" ")
    return name, version


def weight_format(text: str) -> str:
    """The family of kernels of a weight format."""
    return first(WEIGHTS, re.sub(r"\s*\(.*?\)", "", text).split("->")[-1].strip(), "format_unknown")


def number(text: str, what: str) -> float:
    """Tokens, or sequences."""
    if text.startswith("ShareGPT") and what in SHAREGPT:
        return SHAREGPT[what]
    match = re.fullmatch(r"~?(\d+)( \(.*\))?", text)
    if match is None:
        raise refused("tokens_unknown" if what in ("prompt", "output", "context") else "load_unknown", field=what, written=text)
    return float(match[1])
