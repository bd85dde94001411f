"""Dynamo's frontend: names of lib/runtime/src/metrics/prometheus_names.rs. It stands before engines, whose own families pass through."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

ENGINE = Message("adapter.instead_dynamo_worker")

ADAPTER = Adapter(
    engine="",
    role="router",
    prefixes=("dynamo_frontend_", "nv_llm_http_service_"),
    model_label="model",
    quantities={
        "running": (Alias(family="dynamo_frontend_inflight_requests", sense="router_in_flight"),),
        "waiting": (Alias(family="dynamo_frontend_queued_requests", sense="router_before_first"),),
        "output_tokens": (Alias(family="dynamo_frontend_output_tokens", sense="output_each_step"),),
        "prompt_tokens": (Alias(family="dynamo_frontend_input_sequence_tokens_sum", sense="prompt_logical_at_end"),),
        "prompt_tokens_cached": (Alias(family="dynamo_frontend_cached_tokens_sum", sense="prompt_cached_at_end"),),
        "requests_finished": (Alias(family="dynamo_frontend_requests", where={"status": "success"}, sense="finished_all"),),
        "requests_failed": (Alias(family="dynamo_frontend_requests", where={"status": "error"}, sense="failed_by_error"),),
        "ttft": (Alias(family="dynamo_frontend_time_to_first_token_seconds", sense="router_ttft"),),
        "itl": (Alias(family="dynamo_frontend_inter_token_latency_seconds", sense="itl_between_outputs"),),
        "e2e": (Alias(family="dynamo_frontend_request_duration_seconds", sense="router_e2e"),),
        "input_tokens": (Alias(family="dynamo_frontend_input_sequence_tokens", sense="lengths_at_end"),),
        "generated_tokens": (Alias(family="dynamo_frontend_output_sequence_tokens", sense="lengths_at_end"),),
    },
    not_exposed=tuple(
        NotExposed(quantity=quantity, instead=ENGINE)
        for quantity in (
            "kv_usage",
            "steps",
            "step_tokens",
            "step_time",
            "preemptions",
            "drafts",
            "accepted_tokens",
            "cache_config",
            "tpot",
        )
    ),
)
