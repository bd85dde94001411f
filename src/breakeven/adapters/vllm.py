"""vLLM, V0 to V1 0.3x: names of vllm/engine/metrics.py and vllm/v1/metrics/loggers.py."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias

ADAPTER = Adapter(
    engine="vllm",
    prefixes=("vllm:",),
    quantities={
        "running": (Alias(family="vllm:num_requests_running"),),
        "waiting": (Alias(family="vllm:num_requests_waiting"),),
        "output_tokens": (Alias(family="vllm:generation_tokens"),),
    },
    rank_labels=("engine",),
)
