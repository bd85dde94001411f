"""llama.cpp's log: formats of src/llama-context.cpp, src/llama-kv-cache.cpp and tools/server (b4000 to the builds of 2026)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from breakeven.errors import NotModelledError
from breakeven.messages import Message
from breakeven.origin.startup_log import FALLBACK, StartupLog, fallback_warnings, last_matches, read_settings, whole

SIGNS = re.compile(r"llama_(?:context|new_context|kv_cache|model_loader|load)\w*:|llama threadpool init|load_tensors:|ggml_cuda_init:")
PATTERNS = {
    "build": re.compile(r"(?:build: |build_info: b|\bbuild (?:= )?)(\d{2,6})\b"),
    "context": re.compile(r"llama_\w*context\w*: n_ctx\s+= (\d+)"),
    "sequence": re.compile(r"llama_\w*context\w*: n_ctx_(?:seq|per_seq)\s+= (\d+)"),
    "unified": re.compile(r"llama_\w*context\w*: kv_unified\s+= (true|false)"),
    "slots": re.compile(r"n_slots = (\d+)"),
    "batch": re.compile(r"llama_\w*context\w*: n_batch\s+= (\d+)"),
    "types": re.compile(r"K \((\w+)\):\s+[\d.]+ MiB, V \((\w+)\):"),
    "size": re.compile(r"llama_kv_cache\w*:\s+size =\s+([\d.]{1,12}) MiB"),
    "offloaded": re.compile(r"offloaded (\d+)/(\d+) layers to GPU"),
    "host": re.compile(r"(llama_kv_cache\w*:\s+CPU KV buffer size.*)"),
    "fallback": FALLBACK,
}
TYPES = {"f16": "fp16"}
MIB = 2.0**20


def sniff(head: str) -> bool:
    """Whether a log is llama.cpp's."""
    return SIGNS.search(head) is not None


def read(lines: Iterable[str]) -> StartupLog:
    """What the log says; of several starts in one file the last."""
    found = last_matches(lines, PATTERNS)
    _refuse_two_types(found.get("types"))
    counts = {"kv_cache_tokens": "context", "max_model_len": "sequence", "max_num_seqs": "slots", "max_num_batched_tokens": "batch"}
    settings: dict[str, object] = {name: count for name, key in counts.items() if (count := whole(found.get(key))) is not None}
    if "types" in found:
        settings |= read_settings({"K": TYPES.get(found["types"][1], found["types"][1])}, {"K": "kv_cache_dtype"})
    if "unified" in found:
        settings["kv_unified"] = found["unified"][1] == "true"
    build, size, offloaded = found.get("build"), found.get("size"), found.get("offloaded")
    return StartupLog(
        engine="llamacpp",
        version=None if build is None else f"b{build[1]}",
        settings=settings,
        kv_tokens=whole(found.get("context")),
        kv_bytes=float(size[1]) * MIB if size is not None and size[1].count(".") <= 1 else None,
        device_layers=None if offloaded is None else int(offloaded[1]),
        warnings=_warnings(found),
    )


def _refuse_two_types(match: re.Match[str] | None) -> None:
    if match is not None and match[1] != match[2]:
        raise NotModelledError("launch_cache_types", keys=match[1], values=match[2])


def _warnings(found: Mapping[str, re.Match[str]]) -> tuple[Message, ...]:
    """A cache in host memory is computed on the host, whatever the device."""
    return fallback_warnings(found.get("fallback")) or fallback_warnings(found.get("host"))
