"""vLLM, V0 to V1 0.3x: names of vllm/engine/metrics.py and vllm/v1/metrics/loggers.py, and those that Ray makes of them."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

BY_SOURCE = "vllm:prompt_tokens_by_source"

ADAPTER = Adapter(
    engine="vllm",
    prefixes=("vllm:", "ray_vllm:", "ray_vllm_"),  # Ray puts ray_ before, and replaces the colon (vllm/v1/metrics/ray_wrappers.py)
    rank_labels=("engine",),
    quantities={
        "running": (Alias(family="vllm:num_requests_running", sense="running_scheduled"),),
        "waiting": (Alias(family="vllm:num_requests_waiting", sense="waiting_queue"),),
        "swapped": (Alias(family="vllm:num_requests_swapped", before="0.10", sense="swapped"),),
        "kv_usage": (
            Alias(family="vllm:kv_cache_usage_perc", since="0.9", sense="kv_usage_blocks"),
            Alias(family="vllm:gpu_cache_usage_perc", before="0.12", sense="kv_usage_blocks"),
        ),
        "prompt_tokens": (Alias(family="vllm:prompt_tokens", sense="prompt_logical"),),
        "prompt_tokens_computed": (
            Alias(family=BY_SOURCE, where={"source": "local_compute"}, since="0.13", sense="prompt_computed"),
            Alias(family="vllm:request_prefill_kv_computed_tokens_sum", since="0.13", sense="prompt_computed_at_end"),
        ),
        "prompt_tokens_cached": (
            Alias(family="vllm:prompt_tokens_cached", since="0.13", sense="prompt_cached"),
            Alias(family=BY_SOURCE, where={"source": "local_cache_hit|external_kv_transfer"}, since="0.13", sense="prompt_cached"),
        ),
        "prompt_tokens_by_source": (Alias(family=BY_SOURCE, split="source", since="0.13", sense="prompt_by_source"),),
        "prompt_tokens_recomputed": (Alias(family="vllm:prompt_tokens_recomputed", since="0.13", sense="prompt_recomputed"),),
        "prefix_queries": (
            Alias(family="vllm:prefix_cache_queries", since="0.9", sense="prefix_lookups_vllm", biased=True),
            Alias(family="vllm:gpu_prefix_cache_queries", since="0.8", before="0.12", sense="prefix_lookups_vllm", biased=True),
        ),
        "prefix_hits": (
            Alias(family="vllm:prefix_cache_hits", since="0.9", sense="prefix_lookups_vllm", biased=True),
            Alias(family="vllm:gpu_prefix_cache_hits", since="0.8", before="0.12", sense="prefix_lookups_vllm", biased=True),
        ),
        "hit_rate_gauge": (Alias(family="vllm:gpu_prefix_cache_hit_rate", before="0.8", sense="hit_rate_window", biased=True),),
        "output_tokens": (Alias(family="vllm:generation_tokens", sense="output_each_step"),),
        "requests_finished": (Alias(family="vllm:request_success", split="finished_reason", sense="finished_by_reason"),),
        "requests_failed": (Alias(family="vllm:request_success", where={"finished_reason": "abort|error"}, sense="failed_abort_error"),),
        "preemptions": (Alias(family="vllm:num_preemptions", sense="preempted"),),
        "steps": (Alias(family="vllm:iteration_tokens_total_count", since="0.8", sense="steps_with_output"),),
        "step_tokens": (Alias(family="vllm:iteration_tokens_total", since="0.8", sense="step_tokens_prompt_and_output"),),
        "drafts": (Alias(family="vllm:spec_decode_num_drafts", since="0.9", sense="drafts_of_sequences"),),
        "draft_tokens": (Alias(family="vllm:spec_decode_num_draft_tokens", sense="draft_chain"),),
        "accepted_tokens": (Alias(family="vllm:spec_decode_num_accepted_tokens", sense="accepted_no_bonus"),),
        "accepted_at": (
            Alias(family="vllm:spec_decode_num_accepted_tokens_per_pos", split="position", since="0.9", sense="accepted_cumulative"),
        ),
        "emitted_tokens": (Alias(family="vllm:spec_decode_num_emitted_tokens", before="0.11", sense="emitted_with_bonus"),),
        "accept_rate_gauge": (Alias(family="vllm:spec_decode_draft_acceptance_rate", before="0.11", sense="accept_rate_of_drafted"),),
        "spec_efficiency_gauge": (Alias(family="vllm:spec_decode_efficiency", before="0.11", sense="efficiency_v0"),),
        "ttft": (Alias(family="vllm:time_to_first_token_seconds", sense="ttft_from_arrival"),),
        "itl": (
            Alias(family="vllm:inter_token_latency_seconds", since="0.11", sense="itl_between_outputs"),
            Alias(family="vllm:time_per_output_token_seconds", before="0.13", sense="itl_called_tpot"),
        ),
        "tpot": (Alias(family="vllm:request_time_per_output_token_seconds", since="0.11", sense="tpot_amortised"),),
        "e2e": (Alias(family="vllm:e2e_request_latency_seconds", sense="e2e_from_arrival"),),
        "queue": (
            Alias(family="vllm:request_queue_time_seconds", sense="queue_to_schedule"),
            Alias(family="vllm:time_in_queue_requests", before="0.10", sense="queue_to_schedule"),
        ),
        "prefill_time": (Alias(family="vllm:request_prefill_time_seconds", sense="prefill_to_first_token"),),
        "decode_time": (Alias(family="vllm:request_decode_time_seconds", sense="decode_first_to_last"),),
        "input_tokens": (Alias(family="vllm:request_prompt_tokens", sense="lengths_at_end"),),
        "generated_tokens": (Alias(family="vllm:request_generation_tokens", sense="lengths_at_end"),),
        "cache_config": (Alias(family="vllm:cache_config_info", sense="cache_config_local"),),
    },
    not_exposed=(
        NotExposed(quantity="kv_total_tokens", instead=Message("adapter.instead_vllm_pool")),
        NotExposed(quantity="kv_used_tokens", instead=Message("adapter.instead_vllm_pool")),
        NotExposed(quantity="decode_context_tokens", instead=Message("adapter.instead_vllm_context")),
        NotExposed(quantity="step_time", instead=Message("adapter.instead_step_time")),
        NotExposed(quantity="model_config", instead=Message("adapter.instead_vllm_parallel")),
        NotExposed(quantity="max_running", instead=Message("adapter.instead_vllm_log")),
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm")),
    ),
)
