"""production-stack's router: names of src/vllm_router/services/metrics_service, with vLLM's prefix and the router's own numbers."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

ENGINE = Message("adapter.instead_production_stack")

ADAPTER = Adapter(
    engine="",
    role="router",
    prefixes=("vllm:",),
    marks=(
        *("vllm:healthy_pods_total", "vllm:current_qps", "vllm:num_incoming_requests_total", "vllm:avg_decoding_length"),
        *("vllm:avg_itl", "vllm:num_decoding_requests"),
    ),
    model_label="model",
    rank_labels=("server",),
    quantities={
        "running": (Alias(family="vllm:num_requests_running", sense="router_view"),),
        "running_prefill": (Alias(family="vllm:num_prefill_requests", sense="router_view"),),
        "running_decode": (Alias(family="vllm:num_decoding_requests", sense="router_view"),),
        "waiting": (Alias(family="vllm:num_requests_waiting", sense="router_view"),),
        "swapped": (Alias(family="vllm:num_requests_swapped", sense="router_view"),),
        "prefix_queries": (Alias(family="vllm:gpu_prefix_cache_queries", sense="router_prefix", biased=True),),
        "prefix_hits": (Alias(family="vllm:gpu_prefix_cache_hits", sense="router_prefix", biased=True),),
        "hit_rate_gauge": (Alias(family="vllm:gpu_prefix_cache_hit_rate", sense="router_prefix", biased=True),),
        "prompt_tokens": (Alias(family="vllm:input_tokens", sense="prompt_logical_at_end"),),
        "output_tokens": (Alias(family="vllm:output_tokens", sense="output_at_end"),),
        "requests_failed": (Alias(family="vllm:request_errors", sense="failed_by_error"),),
        "e2e": (Alias(family="vllm:request_latency_seconds", sense="router_e2e"),),
    },
    not_exposed=tuple(
        NotExposed(quantity=quantity, instead=ENGINE)
        for quantity in (
            *("kv_usage", "steps", "step_tokens", "step_time", "ttft", "itl", "tpot", "preemptions"),
            *("prompt_tokens_cached", "drafts", "accepted_tokens", "cache_config", "device_dram_active"),
        )
    ),
)
