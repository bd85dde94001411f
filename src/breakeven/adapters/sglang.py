"""SGLang (``--enable-metrics``): names of srt/metrics/collector.py, later srt/observability/metrics_collector.py."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

ALL = {"priority": ""}
"""With priority scheduling a queue's total stands beside its parts, under an empty priority (``_log_gauge_queue_count``)."""
LIVE = "sglang:realtime_tokens"

ADAPTER = Adapter(
    engine="sglang",
    prefixes=("sglang:", "sglang_"),
    rank_labels=("dp_rank",),
    copy_labels=("tp_rank", "pp_rank", "moe_ep_rank"),  # with --enable-metrics-for-all-schedulers each tells the same again
    quantities={
        "running": (
            Alias(family="sglang:num_running_reqs", where=ALL, sense="running_scheduled"),
            Alias(family="sglang:num_requests_running", sense="running_scheduled"),
        ),
        "waiting": (
            Alias(family="sglang:num_queue_reqs", where=ALL, sense="waiting_queue"),
            Alias(family="sglang:num_requests_waiting", sense="waiting_queue"),
        ),
        "kv_usage": (
            Alias(family="sglang:full_token_usage", sense="kv_usage_full_attention"),
            Alias(family="sglang:token_usage", sense="kv_usage_fullest_pool"),
        ),
        "kv_used_tokens": (
            Alias(family="sglang:kv_used_tokens", sense="kv_used_locked"),
            Alias(family="sglang:num_used_tokens", sense="kv_used_locked"),
        ),
        "kv_total_tokens": (Alias(family="sglang:max_total_num_tokens", sense="kv_pool_tokens"),),
        "kv_total_blocks": (Alias(family="sglang:num_pages", sense="kv_pool_blocks"),),
        "kv_block_tokens": (Alias(family="sglang:page_size", sense="kv_block_size"),),
        "decode_context_tokens": (Alias(family="sglang:decode_sum_seq_lens", sense="context_of_decoding"),),
        "hit_rate_gauge": (Alias(family="sglang:cache_hit_rate", sense="hit_rate_window"),),
        "prompt_tokens": (Alias(family="sglang:prompt_tokens", sense="prompt_logical_at_end"),),
        "prompt_tokens_computed": (Alias(family=LIVE, where={"mode": "prefill_compute", **ALL}, sense="realtime_sglang"),),
        "prompt_tokens_cached": (
            Alias(family=LIVE, where={"mode": "prefill_cache", **ALL}, sense="realtime_sglang"),
            Alias(family="sglang:cached_tokens", sense="prompt_cached_at_end"),
        ),
        "decode_tokens": (Alias(family=LIVE, where={"mode": "decode", **ALL}, sense="realtime_sglang"),),
        "output_tokens": (Alias(family="sglang:generation_tokens", sense="output_at_end"),),
        "requests_finished": (Alias(family="sglang:num_requests", sense="finished_all"),),
        "requests_failed": (Alias(family="sglang:num_aborted_requests", sense="failed_abort_error"),),
        "preemptions": (Alias(family="sglang:num_retracted_requests", where=ALL, sense="retracted"),),
        "steps": (
            Alias(family="sglang:cuda_graph_passes", where={"mode": "decode_cuda_graph|decode_none", **ALL}, sense="steps_decode_only"),
        ),
        "drafts": (Alias(family="sglang:spec_verify_calls", sense="drafts_at_end"),),
        "accept_length_gauge": (Alias(family="sglang:spec_accept_length", sense="accept_length_window"),),
        "accept_rate_gauge": (Alias(family="sglang:spec_accept_rate", sense="accept_rate_tree"),),
        "ttft": (Alias(family="sglang:time_to_first_token_seconds", sense="ttft_from_arrival"),),
        "itl": (
            Alias(family="sglang:inter_token_latency_seconds", sense="itl_shared_over_chunk"),
            Alias(family="sglang:time_per_output_token_seconds", sense="itl_called_tpot"),
        ),
        "e2e": (Alias(family="sglang:e2e_request_latency_seconds", sense="e2e_from_arrival"),),
        "queue": (Alias(family="sglang:queue_time_seconds", sense="queue_to_schedule"),),
        "input_tokens": (Alias(family="sglang:prompt_tokens_histogram", sense="lengths_at_end"),),
        "generated_tokens": (Alias(family="sglang:generation_tokens_histogram", sense="lengths_at_end"),),
        "cache_config": (Alias(family="sglang:cache_config_info", sense="cache_config_local"),),
    },
    not_exposed=(
        NotExposed(quantity="step_time", instead=Message("adapter.instead_step_time")),
        NotExposed(quantity="step_tokens", instead=Message("adapter.instead_sglang_log")),
        NotExposed(quantity="accepted_at", instead=Message("adapter.instead_sglang_positions")),
        NotExposed(quantity="tpot", instead=Message("adapter.instead_tpot_from_itl")),
        NotExposed(quantity="model_config", instead=Message("adapter.instead_sglang_info")),
        NotExposed(quantity="max_running", instead=Message("adapter.instead_sglang_info")),
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm")),
    ),
)
