"""Dynamo's workers and routers by their own names (lib/runtime/src/metrics/prometheus_names.rs): a worker's page has its engine's too."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

ENGINE = Message("adapter.instead_dynamo_engine")
WORK = {"dynamo_endpoint": "generate"}
"""A worker's other endpoints load adapters and clear its cache."""

ADAPTER = Adapter(
    engine="",
    role="router",
    prefixes=("dynamo_component_",),
    model_label="model",
    rank_labels=("dp_rank",),
    quantities={
        "running": (Alias(family="dynamo_component_inflight_requests", where=WORK, sense="worker_in_flight"),),
        "kv_usage": (
            Alias(family="dynamo_component_gpu_cache_usage_percent", sense="kv_usage_blocks"),
            Alias(family="dynamo_component_kvstats_gpu_cache_usage_percent", sense="kv_usage_blocks"),
        ),
        "kv_total_blocks": (
            Alias(family="dynamo_component_total_blocks", sense="kv_pool_blocks"),
            Alias(family="dynamo_component_kvstats_total_blocks", sense="kv_pool_blocks"),
        ),
        "kv_used_blocks": (Alias(family="dynamo_component_kvstats_active_blocks", sense="kv_used_blocks"),),
        "hit_rate_gauge": (
            Alias(family="dynamo_component_kv_cache_hit_rate", sense="hit_rate_window"),
            Alias(family="dynamo_component_gpu_prefix_cache_hit_rate", sense="hit_rate_window"),
            Alias(family="dynamo_component_kvstats_gpu_prefix_cache_hit_rate", sense="hit_rate_window"),
        ),
        "requests_finished": (
            Alias(family="dynamo_component_requests", where=WORK, sense="worker_requests"),
            Alias(family="dynamo_component_router_requests", sense="worker_requests"),
        ),
        "requests_failed": (Alias(family="dynamo_component_errors", where=WORK, sense="failed_by_error"),),
        "e2e": (Alias(family="dynamo_component_request_duration_seconds", where=WORK, sense="worker_e2e"),),
        "ttft": (
            Alias(family="dynamo_component_time_to_first_response_seconds", where=WORK, sense="worker_ttft"),
            Alias(family="dynamo_component_router_time_to_first_token_seconds", sense="router_ttft"),
        ),
        "itl": (Alias(family="dynamo_component_router_inter_token_latency_seconds", sense="itl_between_outputs"),),
        "input_tokens": (Alias(family="dynamo_component_router_input_sequence_tokens", sense="lengths_at_end"),),
        "generated_tokens": (Alias(family="dynamo_component_router_output_sequence_tokens", sense="lengths_at_end"),),
    },
    not_exposed=tuple(
        NotExposed(quantity=quantity, instead=ENGINE)
        for quantity in (
            *("waiting", "steps", "step_tokens", "step_time", "output_tokens", "prompt_tokens", "prompt_tokens_cached"),
            *("preemptions", "drafts", "accepted_tokens", "cache_config", "tpot", "device_dram_active"),
        )
    ),
)
