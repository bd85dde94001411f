"""NIM for LLMs 1.x (/v1/metrics): names without a prefix, as its page on observability lists them; the engine inside is not told."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

ENGINE = Message("adapter.instead_nim")

ADAPTER = Adapter(
    engine="",
    prefixes=("",),
    marks=("num_request_max", "num_requests_running", "gpu_cache_usage_perc"),
    quantities={
        "running": (Alias(family="num_requests_running", sense="running_scheduled"),),
        "waiting": (Alias(family="num_requests_waiting", sense="waiting_queue"),),
        "max_running": (Alias(family="num_request_max", sense="max_running"),),
        "kv_usage": (
            Alias(family="kv_cache_usage_perc", sense="kv_usage_blocks"),
            Alias(family="gpu_cache_usage_perc", sense="kv_usage_blocks"),
        ),
        "prompt_tokens": (Alias(family="prompt_tokens", sense="prompt_logical"),),
        "output_tokens": (Alias(family="generation_tokens", sense="output_each_step"),),
        "requests_finished": (
            Alias(family="request_success", sense="finished_all"),
            Alias(family="request_finish", split="finished_reason", sense="finished_by_reason"),
        ),
        "requests_failed": (Alias(family="request_failure", sense="failed_by_error"),),
        "ttft": (Alias(family="time_to_first_token_seconds", sense="ttft_from_arrival"),),
        "itl": (
            Alias(family="inter_token_latency_seconds", sense="itl_between_outputs"),
            Alias(family="time_per_output_token_seconds", sense="itl_called_tpot"),
        ),
        "e2e": (Alias(family="e2e_request_latency_seconds", sense="e2e_from_arrival"),),
        "input_tokens": (Alias(family="request_prompt_tokens", sense="lengths_at_end"),),
        "generated_tokens": (Alias(family="request_generation_tokens", sense="lengths_at_end"),),
    },
    not_exposed=tuple(
        NotExposed(quantity=quantity, instead=ENGINE)
        for quantity in (
            *("steps", "step_tokens", "step_time", "tpot", "prefix_hits", "prompt_tokens_cached", "preemptions"),
            *("drafts", "accepted_tokens", "cache_config", "model_config", "decode_context_tokens", "device_dram_active"),
        )
    ),
)
