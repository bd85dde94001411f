"""The deployment of the contract as a table, changed in one place at a time; and what is said of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from breakeven.errors import BreakevenError
from breakeven.messages import text
from breakeven.origin.resolve import Resolved, resolve_table

FIGURES = ("batch", "step_s", "tpot_s", "ttft_s", "throughput", "capacity")
FLAGS: dict[str, object] = {"model": "llama-3.1-70b", "hardware": "h100-sxm:4", "input": 2000, "output": 300, "rate": 4.0}
TABLE: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "hardware": {"device": "h100-sxm", "count": 4},
    "engine": {
        "name": "vllm",
        "version": "0.11",
        "tensor_parallel_size": 4,
        "max_num_seqs": 256,
        "max_num_batched_tokens": 8192,
        "kv_cache_dtype": "auto",
        "enable_prefix_caching": True,
        "gpu_memory_utilization": 0.9,
        "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    },
    "workload": {
        "input_tokens": 2000,
        "output_tokens": 300,
        "request_rate": 4.0,
        "prefix_hit_rate": 0.3,
        "acceptance_cumulative": [0.75, 0.6, 0.45],
    },
    "slo": {"ttft_s": 1.0, "tpot_s": 0.05},
    "price": {"per_device_hour": 2.5, "currency": "USD"},
}
BARE: dict[str, Any] = {name: TABLE[name] for name in ("model", "hardware")}


def changed(path: str, value: object, table: dict[str, Any] = TABLE) -> dict[str, Any]:
    """The table with one value set, or taken out when it is ``None``."""
    found = copy.deepcopy(table)
    *sections, key = path.split(".")
    inner = found
    for section in sections:
        inner = inner.setdefault(section, {})
    if value is None:
        inner.pop(key, None)
    else:
        inner[key] = value
    return found


def refusal(table: dict[str, Any], **more: Any) -> str:
    with pytest.raises(BreakevenError) as refused:
        resolve_table(table, **more)
    line = str(refused.value)
    assert "\n" not in line
    assert text(refused.value.message, "zh")
    return line


def said(resolved: Resolved) -> str:
    return " | ".join(text(warning) for warning in resolved.warnings)
