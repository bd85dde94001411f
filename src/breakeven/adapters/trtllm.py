"""trtllm-serve's /prometheus/metrics: names of tensorrt_llm/metrics/collector.py, which moved between versions."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

DRAFTED, ACCEPTED = "trtllm_spec_decode_drafted_tokens", "trtllm_spec_decode_accepted_tokens"
"""By position from 0 and counted as a request ends; those of the iterations come second, so that one source tells all of a ratio."""

ADAPTER = Adapter(
    engine="trtllm",
    prefixes=("trtllm_", "trtllm:"),
    quantities={
        "running": (
            Alias(family="trtllm_num_scheduled_requests", sense="running_scheduled"),
            Alias(family="trtllm_num_requests_running", sense="running_admitted"),
            Alias(family="trtllm_num_active_requests", sense="running_admitted"),
        ),
        "running_prefill": (Alias(family="trtllm_num_context_requests", sense="running_in_prefill"),),
        "running_decode": (Alias(family="trtllm_num_generation_requests", sense="running_in_decode"),),
        "waiting": (Alias(family="trtllm_num_requests_waiting", sense="waiting_queue"),),
        "max_running": (
            Alias(family="trtllm_max_batch_size_runtime", sense="max_running"),
            Alias(family="trtllm_max_num_active_requests", sense="max_running"),
        ),
        "kv_usage": (Alias(family="trtllm_kv_cache_utilization", sense="kv_usage_blocks"),),
        "kv_used_blocks": (Alias(family="trtllm_kv_cache_used_blocks", sense="kv_used_blocks"),),
        "kv_total_blocks": (Alias(family="trtllm_kv_cache_max_blocks", sense="kv_pool_blocks"),),
        "kv_block_tokens": (Alias(family="trtllm_kv_cache_tokens_per_block", sense="kv_block_size"),),
        "hit_rate_gauge": (Alias(family="trtllm_kv_cache_hit_rate", sense="hit_rate_blocks_lifetime"),),
        "prompt_tokens": (Alias(family="trtllm_prompt_tokens", sense="prompt_logical_at_end"),),
        "prompt_tokens_cached": (Alias(family="trtllm_prompt_cached_tokens", sense="prompt_cached_at_end"),),
        "output_tokens": (Alias(family="trtllm_generation_tokens", sense="output_at_end"),),
        "requests_finished": (
            Alias(family="trtllm_request_success", split="finished_reason", sense="finished_by_reason"),
            Alias(family="trtllm_num_requests_completed", sense="finished_all"),
        ),
        "requests_failed": (Alias(family="trtllm_request_error", sense="failed_by_error"),),
        "drafts": (Alias(family=DRAFTED, where={"token_position": "0"}, sense="drafts_at_end"),),
        "draft_tokens": (
            Alias(family=DRAFTED, sense="drafted_at_end"),
            Alias(family="trtllm_spec_decode_num_draft_tokens", sense="draft_chain"),
        ),
        "accepted_tokens": (
            Alias(family=ACCEPTED, sense="accepted_at_end"),
            Alias(family="trtllm_spec_decode_num_accepted_tokens", sense="accepted_no_bonus"),
        ),
        "accepted_at": (Alias(family=ACCEPTED, where={"token_position": "*"}, split="token_position", sense="accepted_cumulative"),),
        "accept_length_gauge": (
            Alias(family="trtllm_spec_decode_acceptance_length", sense="accept_length_last_step"),
            Alias(family="trtllm_avg_decoded_tokens_per_iter", sense="accept_length_last_step"),
        ),
        "ttft": (Alias(family="trtllm_time_to_first_token_seconds", sense="ttft_from_arrival"),),
        "tpot": (Alias(family="trtllm_time_per_output_token_seconds", sense="tpot_amortised"),),
        "e2e": (Alias(family="trtllm_e2e_request_latency_seconds", sense="e2e_from_arrival"),),
        "queue": (Alias(family="trtllm_request_queue_time_seconds", sense="queue_to_schedule"),),
        "prefill_time": (Alias(family="trtllm_request_prefill_time_seconds", sense="prefill_to_first_token"),),
        "decode_time": (Alias(family="trtllm_request_decode_time_seconds", sense="decode_first_to_last"),),
        "device_memory_used_bytes": (Alias(family="trtllm_gpu_memory_usage_bytes", sense="memory_of_engine"),),
        "model_config": (Alias(family="trtllm_model_config_info", sense="config_info"),),
        "cache_config": (
            Alias(family="trtllm_kv_cache_config_info", sense="config_info"),
            Alias(family="trtllm_cache_config_info", sense="config_info"),
        ),
    },
    not_exposed=(
        NotExposed(quantity="step_time", instead=Message("adapter.instead_trtllm_json")),
        NotExposed(quantity="steps", instead=Message("adapter.instead_trtllm_json")),
        NotExposed(quantity="step_tokens", instead=Message("adapter.instead_trtllm_json")),
        NotExposed(quantity="itl", instead=Message("adapter.instead_trtllm_tpot")),
        NotExposed(quantity="preemptions", instead=Message("adapter.instead_trtllm_paused")),
        NotExposed(quantity="decode_context_tokens", instead=Message("adapter.instead_context_of_lengths")),
        NotExposed(quantity="input_tokens", instead=Message("adapter.instead_lengths_of_counters")),
        NotExposed(quantity="generated_tokens", instead=Message("adapter.instead_lengths_of_counters")),
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm")),
    ),
)
