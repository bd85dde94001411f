"""TGI's log: formats of launcher/src/main.rs (its arguments, on one line or many) and router/src (the cache it found)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from breakeven.origin.startup_log import FALLBACK, StartupLog, fallback_warnings, last_matches, read_settings, whole

SIGNS = re.compile(r"text_generation_(?:launcher|router)")
PATTERNS = {
    "tokens": re.compile(r"Setting max batch total tokens to (\d+)"),
    "prefix": re.compile(r"Using prefix caching = (True|False)"),
    "graphs": re.compile(r"Cuda Graphs are (enabled|disabled)"),
    "fallback": FALLBACK,
}
FIELDS = {
    "num_shard": "tensor_parallel_size",
    "dtype": "dtype",
    "kv_cache_dtype": "kv_cache_dtype",
    "max_concurrent_requests": "max_num_seqs",
    "max_batch_prefill_tokens": "max_num_batched_tokens",
    "max_batch_total_tokens": "kv_cache_tokens",
    "max_total_tokens": "max_model_len",
    "quantize": "quantization",
}
ARGUMENT = re.compile(r"(\w+): (?:Some\(\s*)?(\"[^\"]*\"|[\w.]+)")
QUANTIZATION = {
    "marlin": "int4_marlin",
    "bitsandbytes": "bitsandbytes-int8",
    "bitsandbytesnf4": "nf4",
    "compressedtensors": "compressed-tensors",
}
KV_CACHE = {"fp8e4m3fn": "fp8_e4m3fn", "fp8e5m2": "fp8_e5m2"}
MOST_ARGUMENTS, LONGEST_ARGUMENT = 400, 4096


def sniff(head: str) -> bool:
    """Whether a log is TGI's."""
    return SIGNS.search(head) is not None


def read(lines: Iterable[str]) -> StartupLog:
    """What the log says; of several starts in one file the last."""
    arguments: list[str] = []
    found = last_matches(_with_arguments(lines, arguments), PATTERNS)
    given = {name: value.strip('"') for name, value in reversed(ARGUMENT.findall(" ".join(" ".join(arguments).split())))}
    for name, words in (("quantize", QUANTIZATION), ("kv_cache_dtype", KV_CACHE), ("dtype", {})):
        if name in given:
            plain = given[name].replace("-", "").lower()
            given[name] = words.get(plain, given[name].lower())
    settings = read_settings(given, FIELDS)
    settings |= {"enable_prefix_caching": found["prefix"][1] == "True"} if "prefix" in found else {}
    settings |= {"enforce_eager": found["graphs"][1] == "disabled"} if "graphs" in found else {}
    return StartupLog(
        engine="tgi",
        model=given.get("model_id"),
        settings=settings,
        kv_tokens=whole(found.get("tokens")),
        warnings=fallback_warnings(found.get("fallback")),
    )


def _with_arguments(lines: Iterable[str], arguments: list[str]) -> Iterator[str]:
    """The lines, those of the last ``Args { … }`` gathered on the way."""
    inside = False
    for line in lines:
        if "Args {" in line:
            inside = True
            arguments.clear()
        if inside and len(arguments) < MOST_ARGUMENTS:
            arguments.append(line[:LONGEST_ARGUMENT])
            inside = not line.rstrip().endswith("}")
        yield line
