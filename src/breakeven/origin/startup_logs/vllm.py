"""vLLM's log, V0 and V1: formats of vllm/v1/core/kv_cache_utils.py, vllm/v1/engine/core.py and vllm/worker (0.5 and after)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from breakeven.messages import Message
from breakeven.origin.speculative import speculative_of
from breakeven.origin.startup_log import FALLBACK, GIB, StartupLog, fallback_warnings, last_matches, read_settings, whole
from breakeven.spec.engine import Speculative

SIGNS = re.compile(
    r"vLLM API server version|Initializing an? (?:V\d )?LLM engine \(v|# (?:GPU|cuda) blocks: \d|GPU KV cache size: [\d,]+ tokens"
)
PATTERNS = {
    "version": re.compile(r"(?:vLLM API server version v?|LLM engine \(v)\s*(\d[\w.+]*)"),
    "config": re.compile(r"LLM engine \(v[\w.+]+\) with config: (.*)"),
    "arguments": re.compile(r"non-default args: \{(.*)\}"),
    "tokens": re.compile(r"GPU KV cache size: ([\d,]+) tokens"),
    "available": re.compile(r"Available KV cache memory: ([\d.]{1,12}) GiB"),
    "blocks": re.compile(r"# (?:GPU|cuda) blocks: (\d+)"),
    "chunks": re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)"),
    "length": re.compile(r"Using max model len (\d+)"),
    "page": re.compile(r"Setting attention block size to (\d+) tokens"),
    "kernel": re.compile(r"Using (\w*(?:Marlin|Machete|AWQ|Exllama|Cutlass)\w*Kernel)|(?:Using|kernel:) (awq_marlin|gptq_marlin) kernel"),
    "slow": re.compile(r"Using ((?:XFormers|Torch SDPA|TORCH_SDPA|XFORMERS|CPU\w*)(?: attention)? backend)"),
    "fallback": FALLBACK,
}
CONFIG = {
    "max_seq_len": "max_model_len",
    "dtype": "dtype",
    "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size",
    "data_parallel_size": "data_parallel_size",
    "quantization": "quantization",
    "enforce_eager": "enforce_eager",
    "kv_cache_dtype": "kv_cache_dtype",
    "enable_prefix_caching": "enable_prefix_caching",
    "chunked_prefill_enabled": "enable_chunked_prefill",
}
ARGUMENTS = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "gpu_memory_utilization",
    "block_size",
    "mamba_ssm_cache_dtype",
    "enable_expert_parallel",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "prefill_context_parallel_size",
)
PAIR = re.compile(r"(\w+)=('[^']*'|[^\s,()]+)")
ARGUMENT = re.compile(r"'(\w+)': ('[^']*'|[^\s,{}()\[\]]+)")
DRAFT = re.compile(r"speculative_config=SpeculativeConfig\(([^()]*)\)")
V0_BLOCK = 16


def sniff(head: str) -> bool:
    """Whether a log is vLLM's."""
    return SIGNS.search(head) is not None


def read(lines: Iterable[str]) -> StartupLog:
    """What the log says; of several starts in one file the last."""
    found = last_matches(lines, PATTERNS)
    # Of a name that comes twice the first pair is the target's: later ones are of nested configurations.
    config = dict(reversed(list(_pairs(PAIR, DRAFT.sub("", found["config"][1]))))) if "config" in found else {}
    arguments = dict(_pairs(ARGUMENT, found["arguments"][1])) if "arguments" in found else {}
    settings = _settings(found, config, arguments)
    block = whole(found.get("page")) or int(str(settings.get("block_size", V0_BLOCK)))
    blocks = whole(found.get("blocks"))
    available = found.get("available")
    return StartupLog(
        engine="vllm",
        version=found["version"][1].split("+")[0] if "version" in found else None,
        model=config.get("model") or arguments.get("model") or arguments.get("model_tag"),
        settings=settings,
        speculative=_speculative(found),
        kv_tokens=whole(found.get("tokens")) or (None if blocks is None else blocks * block),
        kv_bytes=float(available[1]) * GIB if available is not None and available[1].count(".") <= 1 else None,
        pages_unified="tokens" in found,
        kernel=_kernel(found.get("kernel")),
        warnings=_warnings(found),
    )


def _pairs(pattern: re.Pattern[str], text: str) -> Iterable[tuple[str, str]]:
    return ((name, value.strip("'").removeprefix("torch.")) for name, value in pattern.findall(text))


def _settings(found: Mapping[str, re.Match[str]], config: Mapping[str, str], arguments: Mapping[str, str]) -> dict[str, object]:
    stated = {**config, **{name: arguments[name] for name in ARGUMENTS if name in arguments}}
    settings = read_settings(stated, {**CONFIG, **{name: name for name in ARGUMENTS}})
    lines = {"chunks": "max_num_batched_tokens", "page": "block_size"}
    # A draft model has a line of its own for its length: the configuration of the target comes first.
    lines |= {} if "max_model_len" in settings else {"length": "max_model_len"}
    said = {name: count for name in lines if (count := whole(found.get(name))) is not None}
    return settings | {lines[name]: count for name, count in said.items()}


def _kernel(match: re.Match[str] | None) -> str | None:
    name = "" if match is None else (match[1] or match[2]).lower()
    return next((family for family in ("marlin", "machete", "awq", "exllama", "cutlass") if family in name), None)


def _speculative(found: Mapping[str, re.Match[str]]) -> Speculative | None:
    given = DRAFT.search(found["config"][1]) if "config" in found else None
    if given is None:
        return None
    table: dict[str, Any] = dict(_pairs(PAIR, given[1]))
    names = {"num_spec_tokens": "num_speculative_tokens", "draft_model": "model"}
    read = {names.get(name, name): value for name, value in table.items() if value != "None"}
    return speculative_of(
        {name: read[name] for name in ("method", "model", "num_speculative_tokens") if name in read}, "log: speculative_config"
    )[0]


def _warnings(found: Mapping[str, re.Match[str]]) -> tuple[Message, ...]:
    slow = found.get("slow")
    return fallback_warnings(found.get("fallback")) or (() if slow is None else fallback_warnings(slow))
