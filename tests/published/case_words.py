"""The words of reported cases: which device, model, engine, format and draft a row names, and the numbers it states.

The tables hold words that people use for things, whichever row they stand in. First match wins, so the more specific stands first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Row = Mapping[str, object]
Names = tuple[str, ...]

UNNAMED_DEVICES = ("a10g", "a100-sxm-80", "h100-sxm")
"""Taken in turn where a row names no device."""
DEVICES: tuple[tuple[str, Names], ...] = (
    (r"H100 NVL", ("h100-nvl-94",)),
    (r"H100", ("h100-sxm",)),
    (r"H800", ("h800-sxm",)),
    (r"H200 NVL", ("h200-nvl",)),
    (r"H200", ("h200-sxm",)),
    (r"GB200", ("gb200",)),
    (r"GB10", ("gb10",)),
    (r"B200", ("b200-sxm",)),
    (r"A100", ("a100-sxm-80",)),
    (r"A10G", ("a10g",)),
    (r"A6000", ("rtx-a6000",)),
    (r"L40S", ("l40s",)),
    (r"\bL4\b", ("l4",)),
    (r"2080 Ti", ("rtx-2080-ti",)),
    (r"3090", ("rtx-3090",)),
    (r"4090", ("rtx-4090",)),
    (r"MI355X", ("mi355x",)),
    (r"7900 XTX", ("rx-7900-xtx",)),
    (r"Strix Halo", ("strix-halo-8060s",)),
    (r"Mac Studio 512\s?GB", ("m3-ultra-80c",)),  # the one Mac that is sold with so much
    (r"M1 Max", ("m1-max-32c",)),
    (r"\bM1\b", ("m1-8c",)),
    (r"Atlas A3", ("ascend-910c",)),
    (r"Ascend A2", ("ascend-910b2", "ascend-910b3", "ascend-910b4")),
)
MAKERS: tuple[tuple[str, Names], ...] = (
    (r"Ascend", ("ascend-910b3", "ascend-910c")),
    (r"ROCm", ("mi300x", "rx-7900-xtx")),
    (r"CUDA", UNNAMED_DEVICES),
)
"""Where a row names a maker or a platform and no device."""
MODELS: tuple[tuple[str, Names], ...] = (
    (r"SmolLM2-1\.7B", ("smollm2-1.7b",)),
    (r"opt-6\.7b", ("opt-6.7b",)),
    (r"Qwen2\.5-VL-72B|Qwen2-72B", ("qwen2-72b",)),
    (r"Qwen2\.5-7B", ("qwen2.5-7b",)),
    (r"Qwen2-7B", ("qwen2-7b",)),
    (r"Qwen3-30B-A3B", ("qwen3-30b-a3b",)),
    (r"Qwen3-14B", ("qwen3-14b",)),
    (r"Qwen3-32B", ("qwen3-32b",)),
    (r"Qwen3-8B", ("qwen3-8b",)),
    (r"^Qwen3-4B", ("qwen3-4b",)),
    (r"Qwen3\.5-397B-A17B", ("qwen3.5-397b-a17b",)),
    (r"Qwen3\.5-35B-A3B", ("qwen3.5-35b-a3b",)),
    (r"Qwen3\.5-0\.8B", ("qwen3.5-0.8b",)),
    (r"Qwen3\.6-35B-A3B", ("qwen3.6-35b-a3b",)),
    (r"Qwen3\.[68]-27B", ("qwen3.6-27b",)),  # the rows give both the one shape
    (r"Gemma-4-31B", ("gemma-4-31b",)),
    (r"Gemma 3 .*27B", ("gemma-3-4b", "gemma-3-12b", "gemma-3-27b")),
    (r"Kimi-K2\.\d.*MiniMax-M2\.5", ("kimi-k2.5", "minimax-m2.5")),
    (r"Kimi-K2\.", ("kimi-k2.5",)),
    (r"gpt-oss-120b", ("gpt-oss-120b",)),
    (r"GLM-4\.5-Air", ("glm-4.5-air",)),
    (r"DeepSeek-V4-Flash", ("deepseek-v4-flash",)),
    (r"Mistral-Small-4-119B", ("mistral-small-4-119b",)),
    (r"Mistral-7B", ("mistral-7b-v0.1",)),
    (r"MiniCPM3", ("minicpm3-4b",)),
    (r"Llama-4-Scout", ("llama-4-scout",)),
    (r"Llama-3\.3-70B", ("llama-3.3-70b",)),
    (r"Llama-3\.1-8B", ("llama-3.1-8b",)),
    (r"Llama-3-8B", ("llama-3-8b",)),
    (r"Llama-3-70B", ("llama-3-70b",)),
    (r"Llama-2-70B", ("llama-2-70b",)),
    (r"Llama-2-13B", ("llama-2-13b",)),
    (r"Llama-(2-)?7B", ("llama-2-7b",)),
)
KINDS: tuple[tuple[str, Names], ...] = (
    (r"DeepSeek-V4", ("deepseek-v4-flash", "deepseek-v4-pro")),
    (r"Gemma 4", ("gemma-4-e4b", "gemma-4-26b-a4b", "gemma-4-31b")),
    (r"hybrid", ("qwen3.5-9b", "qwen3.6-35b-a3b", "kimi-linear-48b-a3b")),
    (r"TTS|small model", ("qwen3-0.6b", "qwen2.5-1.5b", "qwen3-4b")),
    (r"~80B", ("llama-3-70b", "qwen2.5-72b")),
    (r"11B", ("falcon3-10b", "llama-2-13b")),
    (r"llama-like", ("llama-2-7b", "llama-2-13b")),
    (r"Qwen3-4B/1\.7B/0\.6B drafts", ("qwen3-14b", "qwen3-32b")),
    (r"not stated", ("llama-3.1-8b", "qwen2.5-32b")),
)
"""Where the name is of a family, a kind or a size: the shape is open, and each of several is taken in turn."""
OPEN_MODELS = r"DeepSeek-V4\b(?!-)|Gemma 4|small model|~80B|\b11B|llama-like|not stated|^any"
"""Words that name no model."""
DRAFTS: tuple[tuple[str, Names], ...] = (
    (r"135M draft", ("smollm2-135m",)),
    (r"opt-125m", ("opt-125m",)),
    (r"Qwen3\.5-9B draft", ("qwen3.5-9b",)),
    (r"llama-160m", ("llama-160m",)),
    (r"1\.5B draft", ("qwen2.5-1.5b",)),
    (r"draft 0\.5B", ("qwen2.5-0.5b",)),
    (r"4B/1\.7B/0\.6B drafts", ("qwen3-0.6b", "qwen3-4b")),
    (r"0\.6B draft", ("qwen3-0.6b",)),
    (r"Gemma.*assistant draft", ("gemma-3-1b",)),  # the family's smallest, where an assistant is not described
)
STORED = (
    (r"MXFP4|gpt-oss", "mxfp4"),
    (r"NVFP4", "nvfp4"),
    (r"GPTQ-Int4|AWQ|4-bit weights", "int4"),
    (r"w8a8", "int8"),
    (r"\bFP8\b", "fp8"),
    (r"Q8_K", "q8_0"),
    (r"Q4_K", "q4_k_m"),
    (r"IQ1", "iq1_m"),
)
TASKS = ((r"MT-Bench|chat|ShareGPT", "chat"), (r"coding", "code"), (r"GSM8K", "math"), (r"CNN", "summarization"))
METHODS = (
    (r"eagle.?3|EAGLE-3", "eagle3"),
    (r"eagle", "eagle"),
    (r"mtp", "mtp"),
    (r"ngram", "ngram"),
    (r"spec:draft", "draft_model"),
)
ENGINES = (
    (r"tensorrt-llm", "trtllm"),
    (r"sglang", "sglang"),
    (r"llama\.cpp|ollama", "llamacpp"),
    (r"^tgi", "tgi"),
    (r"vllm", "vllm"),
)
"""Forks and front ends run the engine they are made of."""
BUILDS = ((2023.8, 1400), (2025.2, 4900), (2026.3, 8700))
"""Year and build number of llama.cpp, to turn a report's date into a build."""
OLLAMA_YEAR = {"0.6": 2025.2}
"""When a version of ollama took its llama.cpp."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a row names. ``devices`` and ``models`` hold several where the row leaves them open (not ``*_named``) or names several."""

    devices: Names
    device_named: bool
    models: Names
    model_named: bool
    drafts: Names
    engines: tuple[tuple[str, str], ...]
    count: int


def text_of(row: Row, *fields: str) -> str:
    return "; ".join(str(row[name]) for name in fields)


def first(patterns: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for pattern, name in patterns if re.search(pattern, text, re.IGNORECASE)), None)


def all_named(patterns: tuple[tuple[str, Names], ...], text: str, *, several: bool = False) -> Names:
    """The names of the first word found; of all the words where a text may list several things."""
    found: list[str] = []
    for pattern, names in patterns:
        if re.search(pattern, text, re.IGNORECASE):
            found += names
            text = re.sub(pattern, "", text, flags=re.IGNORECASE)
            if not several:
                break
    return tuple(dict.fromkeys(found))


def number(patterns: Names, text: str) -> float | None:
    for pattern in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return tokens(match[1])
    return None


def tokens(text: str) -> float:
    """A number as people write it: 1K is 1,024 tokens, 20k is 20,000."""
    return float(text.rstrip("Kk").replace(",", "")) * {"K": 1024.0, "k": 1000.0}.get(text[-1], 1.0)


def year(text: str) -> float | None:
    found = re.search(r"20(\d\d)-(\d\d)", text)
    return 2000 + int(found[1]) + (int(found[2]) - 1) / 12 if found else None


def build(text: str) -> str:
    """llama.cpp's build: as stated, else that of the report's date, else a new one."""
    stated = re.search(r"\bb(\d{4,})", text)
    if stated:
        return f"b{stated[1]}"
    when = next((at for version, at in OLLAMA_YEAR.items() if f"ollama {version}" in text), year(text))
    if when is None:
        return "main"
    (y0, b0), (y1, b1) = (BUILDS[0], BUILDS[1]) if when < BUILDS[1][0] else (BUILDS[1], BUILDS[2])
    return f"b{round(max(b0 + (when - y0) * (b1 - b0) / (y1 - y0), 1000))}"


def version_of(name: str, text: str) -> str:
    """As stated; a V0 engine without a number is an old one, a date alone a new one."""
    if name == "llamacpp":
        return build(text)
    versions = re.findall(r"\b(\d+\.\d+(?:\.\d+)?)", text)
    old = "V0" in text or re.search(r"20(23|24)-", text)
    return versions[-1 if "-0." in text else 0] if versions else ("0.3" if old else "main")


def engines_of(text: str, maker: str) -> tuple[tuple[str, str], ...]:
    """Engine and version; an engine that is not modelled is each of those that run on such a device."""
    name = first(ENGINES, text)
    if name is not None:
        return ((name, version_of(name, text)),)
    others = {"apple": ("llamacpp",)}.get(maker, ("vllm", "sglang", "llamacpp"))
    return tuple((other, "main") for other in others)


def count_of(text: str) -> int:
    """Devices of one replica."""
    if "1-2x" in text:
        return 1
    found = number((r"TP(\d+)", r"^(\d+) ?x", r"^(\d+) GPUs", r"\bx(\d+)\b"), text)
    return int(found or 1)


def words_of(row: Row) -> Words:
    hardware, model = str(row["hardware"]), str(row["model"])
    named = all_named(DEVICES, hardware, several=True)
    devices = named or all_named(MAKERS, hardware) or UNNAMED_DEVICES
    known = all_named(MODELS, model)
    maker = "apple" if devices[0].startswith("m") and devices[0][1].isdigit() else ""
    return Words(
        devices=devices,
        device_named=bool(named),
        models=known or all_named(KINDS, model),
        model_named=bool(known) or not re.search(OPEN_MODELS, model),
        drafts=all_named(DRAFTS, text_of(row, "model", "config")),
        engines=engines_of(str(row["engine"]), maker),
        count=count_of(hardware),
    )
