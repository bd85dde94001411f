"""Text Generation Inference: docs/source/reference/metrics.md, router/src/server.rs and backends/v3/src (backend.rs, queue.rs, lib.rs)."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

DECODE, PREFILL = {"method": "decode"}, {"method": "prefill"}

ADAPTER = Adapter(
    engine="tgi",
    prefixes=("tgi_",),
    quantities={
        "running": (Alias(family="tgi_batch_current_size", sense="running_last_batch"),),
        "waiting": (Alias(family="tgi_queue_size", sense="waiting_queue"),),
        "kv_total_tokens": (Alias(family="tgi_batch_max_total_tokens", sense="kv_admission_budget"),),
        "prompt_tokens": (Alias(family="tgi_request_input_length_sum", sense="prompt_logical_at_start"),),
        "output_tokens": (Alias(family="tgi_request_generated_tokens_sum", sense="output_at_end"),),
        "requests_finished": (Alias(family="tgi_request_success", sense="finished_all"),),
        "requests_failed": (Alias(family="tgi_request_failure", sense="failed_by_error"),),
        "steps": (Alias(family="tgi_batch_inference_count", where=DECODE, sense="steps_decode_only"),),
        "busy_sequence_steps": (Alias(family="tgi_request_skipped_tokens_count", sense="sequence_steps_tgi"),),
        "accepted_tokens": (Alias(family="tgi_request_skipped_tokens_sum", sense="accepted_no_bonus"),),
        "step_time": (
            Alias(family="tgi_batch_inference_duration", where=DECODE, sense="step_time_with_router"),
            Alias(family="tgi_batch_forward_duration", where=DECODE, sense="step_time_forward"),
        ),
        "prefill_step_time": (
            Alias(family="tgi_batch_inference_duration", where=PREFILL, sense="step_time_with_router"),
            Alias(family="tgi_batch_forward_duration", where=PREFILL, sense="step_time_forward"),
        ),
        "tpot": (Alias(family="tgi_request_mean_time_per_token_duration", sense="tpot_includes_prefill"),),
        "e2e": (Alias(family="tgi_request_duration", sense="e2e_from_arrival"),),
        "queue": (Alias(family="tgi_request_queue_duration", sense="queue_to_schedule"),),
        "input_tokens": (Alias(family="tgi_request_input_length", sense="lengths_at_start"),),
        "generated_tokens": (Alias(family="tgi_request_generated_tokens", sense="lengths_at_end"),),
    },
    not_exposed=(
        NotExposed(quantity="kv_usage", instead=Message("adapter.instead_tgi_admission")),
        NotExposed(quantity="preemptions", instead=Message("adapter.instead_tgi_admission")),
        NotExposed(quantity="prefix_hits", instead=Message("adapter.instead_tgi_prefix")),
        NotExposed(quantity="prompt_tokens_cached", instead=Message("adapter.instead_tgi_prefix")),
        NotExposed(quantity="ttft", instead=Message("adapter.instead_tgi_ttft")),
        NotExposed(quantity="itl", instead=Message("adapter.instead_tgi_ttft")),
        NotExposed(quantity="drafts", instead=Message("adapter.instead_tgi_drafts")),
        NotExposed(quantity="accepted_at", instead=Message("adapter.instead_tgi_drafts")),
        NotExposed(quantity="decode_context_tokens", instead=Message("adapter.instead_context_of_lengths")),
        NotExposed(quantity="model_config", instead=Message("adapter.instead_tgi_info")),
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm")),
    ),
)
