"""TensorRT-LLM's log: formats of cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp and tensorrt_llm/_torch/pyexecutor (0.9 to 1.x)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from breakeven.origin.startup_log import FALLBACK, GIB, StartupLog, fallback_warnings, last_matches, whole

SIGNS = re.compile(r"\[TensorRT-LLM\]\[\w+\]|\[TRT-LLM\] \[\w\]|\[TensorRT-LLM\] TensorRT")
PATTERNS = {
    "version": re.compile(r"TensorRT[- ]LLM version:? v?(\d[\w.]*)"),
    "tokens": re.compile(r"for max tokens in paged KV cache \((\d+)\)"),
    "size": re.compile(r"Allocated ([\d.]{1,10}) GiB for max tokens in paged KV cache"),
    "block": re.compile(r"Number of tokens per block: (\d+)"),
    "length": re.compile(r"max_seq_len=(\d+)"),
    "batch": re.compile(r"max_batch_size=(\d+)"),
    "requests": re.compile(r"max_num_requests=(\d+)"),
    "budget": re.compile(r"max_num_tokens=(\d+)"),
    "no_reuse": re.compile(r"KV cache block reuse is disabled"),
    "fallback": FALLBACK,
}
COUNTS = {"block_size": "block", "max_model_len": "length", "max_num_batched_tokens": "budget"}


def sniff(head: str) -> bool:
    """Whether a log is TensorRT-LLM's."""
    return SIGNS.search(head) is not None


def read(lines: Iterable[str]) -> StartupLog:
    """What the log says; the cache of the trial run before the last one is passed over."""
    found = last_matches(lines, PATTERNS)
    settings: dict[str, object] = {name: count for name, key in COUNTS.items() if (count := whole(found.get(key))) is not None}
    most = whole(found.get("batch")) or whole(found.get("requests"))
    settings |= {} if most is None else {"max_num_seqs": most}
    settings |= {"enable_prefix_caching": False} if "no_reuse" in found else {}
    size = found.get("size")
    return StartupLog(
        engine="trtllm",
        version=found["version"][1] if "version" in found else None,
        settings=settings,
        kv_tokens=whole(found.get("tokens")),
        kv_bytes=float(size[1]) * GIB if size is not None and size[1].count(".") <= 1 else None,
        warnings=fallback_warnings(found.get("fallback")),
    )
