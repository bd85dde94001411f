"""trtllm-serve's /metrics (``enable_iter_perf_stats: true``): a list of iterations in JSON, each told once.

``iterations`` is no field: it counts them.
"""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

BATCH, CACHE, DRAFTED = "inflightBatchingStats", "kvCacheStats", "specDecodingStats"
MILLI = 1e-3

ADAPTER = Adapter(
    engine="trtllm",
    prefixes=("",),
    form="json",
    quantities={
        "running": (
            Alias(family=f"{BATCH}.numScheduledRequests", sense="running_mean_of_steps"),
            Alias(family="numActiveRequests", sense="admitted_mean_of_steps"),
        ),
        "running_prefill": (Alias(family=f"{BATCH}.numContextRequests", sense="running_mean_of_steps"),),
        "running_decode": (Alias(family=f"{BATCH}.numGenRequests", sense="running_mean_of_steps"),),
        "waiting": (Alias(family="numQueuedRequests", sense="running_mean_of_steps"),),
        "max_running": (
            Alias(family="maxBatchSizeRuntime", sense="max_running"),
            Alias(family="maxNumActiveRequests", sense="max_running"),
        ),
        "kv_used_blocks": (Alias(family=f"{CACHE}.usedNumBlocks", sense="kv_used_blocks"),),
        "kv_total_blocks": (Alias(family=f"{CACHE}.maxNumBlocks", sense="kv_pool_blocks"),),
        "kv_block_tokens": (Alias(family=f"{CACHE}.tokensPerBlock", sense="kv_block_size"),),
        "hit_rate_gauge": (Alias(family=f"{CACHE}.cacheHitRate", sense="hit_rate_blocks_lifetime"),),
        "decode_context_tokens": (Alias(family=f"{BATCH}.numGenKvTokens", sense="context_of_decoding"),),
        "prompt_tokens_computed": (Alias(family=f"{BATCH}.numCtxTokens", sense="prompt_computed_steps"),),
        "busy_sequence_steps": (
            Alias(family=f"{BATCH}.numGenRequests", sense="sequence_steps_trtllm"),
            Alias(family="numActiveRequests", sense="sequence_steps_trtllm"),
        ),
        "requests_finished": (Alias(family="numCompletedRequests", sense="finished_all"),),
        "steps": (Alias(family="iterations", sense="steps_each_iteration"),),
        "step_time": (Alias(family="iterLatencyMS", scale=MILLI, sense="step_time_iteration"),),
        "drafts": (Alias(family=f"{DRAFTED}.numRequestsWithDraftTokens", sense="drafts_of_sequences"),),
        "draft_tokens": (Alias(family=f"{DRAFTED}.numDraftTokens", sense="draft_chain"),),
        "accepted_tokens": (Alias(family=f"{DRAFTED}.numAcceptedTokens", sense="accepted_no_bonus"),),
        "accept_length_gauge": (
            Alias(family=f"{DRAFTED}.acceptanceLength", sense="accept_length_mean_of_steps"),
            Alias(family=f"{BATCH}.avgNumDecodedTokensPerIter", sense="accept_length_mean_of_steps"),
        ),
        "device_memory_used_bytes": (Alias(family="gpuMemUsage", sense="memory_of_engine"),),
    },
    not_exposed=(
        NotExposed(quantity="ttft", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="tpot", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="e2e", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="queue", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="output_tokens", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="prompt_tokens_cached", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="input_tokens", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="generated_tokens", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="itl", instead=Message("adapter.instead_trtllm_tpot")),
        NotExposed(quantity="accepted_at", instead=Message("adapter.instead_trtllm_text")),
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm")),
    ),
)
