"""llama.cpp's server (``--metrics``): names of tools/server/server-task.cpp, and those that were removed in 2025 (PR 13660)."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

TIMINGS = Message("adapter.instead_llamacpp_timings")
SLOTS = Message("adapter.instead_llamacpp_slots")

ADAPTER = Adapter(
    engine="llamacpp",
    prefixes=("llamacpp:", "llamacpp_"),
    quantities={
        "running": (Alias(family="llamacpp:requests_processing", sense="running_slots"),),
        "waiting": (Alias(family="llamacpp:requests_deferred", sense="waiting_queue"),),
        "kv_usage": (Alias(family="llamacpp:kv_cache_usage_ratio", sense="kv_usage_cells"),),
        "kv_used_tokens": (Alias(family="llamacpp:kv_cache_tokens", sense="kv_used_cells"),),
        "prompt_tokens_computed": (Alias(family="llamacpp:prompt_tokens", sense="prompt_computed_llamacpp"),),
        "prompt_tokens_cached": (Alias(family="llamacpp:prompt_tokens_cached", sense="prompt_cached_llamacpp"),),
        "prompt_seconds": (Alias(family="llamacpp:prompt_seconds", sense="prompt_seconds_llamacpp"),),
        "output_tokens": (Alias(family="llamacpp:tokens_predicted", sense="output_llamacpp"),),
        "decode_seconds": (Alias(family="llamacpp:tokens_predicted_seconds", sense="seconds_of_slots"),),
        "steps": (Alias(family="llamacpp:n_decode", sense="steps_llamacpp"),),
        "busy_per_step": (Alias(family="llamacpp:n_busy_slots_per_decode", sense="busy_slots_lifetime"),),
        "drafts": (Alias(family="llamacpp:spec_decode_num_drafts", sense="drafts_at_end"),),
        "draft_tokens": (Alias(family="llamacpp:spec_decode_num_draft_tokens", sense="drafted_at_end"),),
        "accepted_tokens": (Alias(family="llamacpp:spec_decode_num_accepted_tokens", sense="accepted_at_end"),),
        "accepted_at": (Alias(family="llamacpp:spec_decode_num_accepted_tokens_per_pos", split="position", sense="accepted_cumulative"),),
    },
    not_exposed=(
        NotExposed(quantity="kv_usage", instead=SLOTS),
        NotExposed(quantity="kv_used_tokens", instead=SLOTS),
        NotExposed(quantity="kv_total_tokens", instead=Message("adapter.instead_llamacpp_props")),
        NotExposed(quantity="decode_context_tokens", instead=SLOTS),
        NotExposed(quantity="max_running", instead=Message("adapter.instead_llamacpp_props")),
        NotExposed(quantity="cache_config", instead=Message("adapter.instead_llamacpp_props")),
        NotExposed(quantity="model_config", instead=Message("adapter.instead_llamacpp_props")),
        NotExposed(quantity="prompt_tokens_cached", instead=TIMINGS),
        NotExposed(quantity="requests_finished", instead=TIMINGS),
        NotExposed(quantity="input_tokens", instead=TIMINGS),
        NotExposed(quantity="generated_tokens", instead=TIMINGS),
        NotExposed(quantity="ttft", instead=TIMINGS),
        NotExposed(quantity="itl", instead=TIMINGS),
        NotExposed(quantity="tpot", instead=TIMINGS),
        NotExposed(quantity="e2e", instead=TIMINGS),
        NotExposed(quantity="queue", instead=TIMINGS),
        NotExposed(quantity="step_time", instead=Message("adapter.instead_llamacpp_steps")),
        NotExposed(quantity="preemptions", instead=Message("adapter.instead_llamacpp_preemptions")),
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm")),
    ),
)
