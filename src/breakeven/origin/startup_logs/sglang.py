"""SGLang's log: formats of sglang/srt/server_args.py, mem_cache/memory_pool.py and managers/scheduler.py (0.4 and after)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from breakeven.origin.sglang_words import FIELDS, QUANTIZATION, ranks_of, speculation_of
from breakeven.origin.startup_log import FALLBACK, GIB, StartupLog, fallback_warnings, last_matches, read_settings, whole
from breakeven.origin.values import count
from breakeven.spec.engine import Speculative

SIGNS = re.compile(r"server_args=ServerArgs\(|KV Cache is allocated\.|max_total_num_tokens=\d")
PATTERNS = {
    "arguments": re.compile(r"server_args=ServerArgs\((.*)"),
    "cache": re.compile(r"KV Cache is allocated\..*#tokens: (\d+)"),
    "tokens": re.compile(r"max_total_num_tokens=(\d+)"),
    "running": re.compile(r"max_running_requests=(\d+)"),
    "slow": re.compile(r"[Uu]s(?:e|ing) ((?:torch_native|torch native)\b.*)"),
    "fallback": FALLBACK,
}
SIZES = re.compile(r"KV Cache is allocated\..*?(?:K size: ([\d.]{1,10}) GB, V size: ([\d.]{1,10}) GB|KV size: ([\d.]{1,10}) GB)")
PAIR = re.compile(r"(\w+)=('[^']*'|[^\s,()]+)")


def sniff(head: str) -> bool:
    """Whether a log is SGLang's."""
    return SIGNS.search(head) is not None


def read(lines: Iterable[str]) -> StartupLog:
    """What the log says; of several starts in one file the last."""
    sizes: list[float] = []
    found = last_matches(_with_sizes(lines, sizes), PATTERNS)
    pairs = PAIR.findall(found["arguments"][1]) if "arguments" in found else []
    given = {name: value.strip("'") for name, value in reversed(pairs)}
    quantization = given.get("quantization", "None")
    words = {**FIELDS, "kv_cache_dtype": "kv_cache_dtype", "quantization": "quantization"}
    settings = read_settings({**given, "quantization": QUANTIZATION.get(quantization, quantization)}, words)
    running = whole(found.get("running"))
    settings |= _switches(given) | ({} if running is None else {"max_num_seqs": running})
    return StartupLog(
        engine="sglang",
        model=given.get("model_path"),
        settings=settings | _ranks(given, settings),
        speculative=_speculative(given),
        kv_tokens=whole(found.get("tokens")) or whole(found.get("cache")),
        kv_bytes=max(sizes, default=None),
        warnings=fallback_warnings(found.get("fallback")) or fallback_warnings(found.get("slow")),
    )


def _switches(given: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    if "disable_radix_cache" in given:
        found["enable_prefix_caching"] = given["disable_radix_cache"] != "True"
    if "disable_cuda_graph" in given:
        found["enforce_eager"] = given["disable_cuda_graph"] == "True"
    size = given.get("chunked_prefill_size", "")
    if size == "-1":
        found["enable_chunked_prefill"] = False
    elif size.isdecimal() and 0 < int(size) < 10**9:
        found |= {"enable_chunked_prefill": True, "max_num_batched_tokens": int(size)}
    return found


def _speculative(given: Mapping[str, str]) -> Speculative | None:
    stated = {name: value for name, value in given.items() if value not in ("None", "")}
    if "speculative_algorithm" not in stated:
        return None
    names = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    counts = (count(stated[name], f"log: {name}") if name in stated else None for name in names)
    draft = stated.get("speculative_draft_model_path")
    # A model's own head is told as the model itself: server_args.py puts its path there.
    return speculation_of(stated["speculative_algorithm"], None if draft == stated.get("model_path") else draft, *counts)


def _ranks(given: Mapping[str, str], settings: Mapping[str, object]) -> dict[str, object]:
    sizes = (given.get(name, "1") for name in ("dp_size", "ep_size"))
    ranks, experts = (int(size) if size.isdecimal() and 0 < int(size) < 10**4 else 1 for size in sizes)
    attention = given.get("enable_dp_attention") == "True"
    return ranks_of(int(str(settings.get("tensor_parallel_size", 1))), ranks, experts, attention=attention)


def _with_sizes(lines: Iterable[str], sizes: list[float]) -> Iterator[str]:
    """The lines, the bytes of each cache gathered on the way: a draft's own, smaller one comes after the target's.

    Its GB are 2^30 bytes: memory_pool.py.
    """
    for line in lines:
        match = SIZES.search(line)
        parts = [part for part in (match.groups() if match is not None else ()) if part and part.count(".") <= 1 and part != "."]
        if parts:
            sizes.append(sum(float(part) for part in parts) * GIB)
        yield line
