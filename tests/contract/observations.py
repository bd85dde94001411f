"""Observations made by hand, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from breakeven.renderers import json
from breakeven.spec.evidence import Evidence, Figure, Levels, Quantiles, Sure, Told

TOLD = Told(
    engine="vllm",
    version="0.11.0",
    model="meta-llama/Llama-3.1-8B-Instruct",
    settings={"block_size": 16, "kv_cache_dtype": "auto", "gpu_memory_utilization": 0.9, "enable_prefix_caching": True},
    kv_tokens=400_000,
    kv_tokens_local=True,
    device="h100-sxm",
    devices=1,
)
MEASURED = {
    "effective_batch": 12.0,
    "tpot_s": 0.0105,
    "step_s": 0.0105,
    "ttft_s": 0.06,
    "request_rate_per_s": 4.0,
    "output_tokens_per_s": 1120.0,
    "input_tokens": 1000.0,
    "output_tokens": 280.0,
    "prefix_hit_rate": 0.3,
}


def figures(values: dict[str, float], sure: Sure = "counted") -> dict[str, Figure]:
    return {name: Figure(value=value, sure=sure, how="observe.how_rate") for name, value in values.items()}


def observation(told: Told = TOLD, measured: dict[str, float] | None = None, **changed: Any) -> Evidence:
    """A vLLM engine on one H100 that served 4 requests a second, with what a test changes of it."""
    found = Evidence(
        breakeven="0.1.0",
        source="live",
        target="http://localhost:8000",
        start="2026-11-30T10:00:00Z",
        end="2026-11-30T10:05:00Z",
        seconds=300.0,
        readings=151,
        every_s=2.0,
        told=told,
        figures=figures(MEASURED if measured is None else measured),
        levels={"waiting": Levels(values=(0.0,), shares=(1.0,), sure="sampled")},
        latencies={"ttft": Quantiles(mean=0.06, count=1200.0, sense="adapter.ttft_from_arrival")},
    )
    return replace(found, **changed)


def without(*names: str) -> dict[str, float]:
    return {name: value for name, value in MEASURED.items() if name not in names}


def written(evidence: Evidence) -> bytes:
    return json.render(evidence).encode()
