"""Triton's TensorRT-LLM backend (:8002/metrics): the families nv_trt_llm_* and nv_llm_*, as its README and its tests have them."""

from __future__ import annotations

from breakeven.adapter import Adapter, Alias, NotExposed
from breakeven.messages import Message

REQUESTS, BLOCKS, BATCH = "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics", "nv_trt_llm_inflight_batcher_metrics"


def _both(family: str, label: str, value: str, sense: str) -> tuple[Alias, ...]:
    """The name as it is, and as it was until 2024 (``…_statistics``)."""
    return tuple(Alias(family=name, where={label: value}, sense=sense) for name in (family, family.replace("_metrics", "_statistics")))


ADAPTER = Adapter(
    engine="trtllm",
    prefixes=("nv_",),
    model_label="model",
    quantities={
        "running": (*_both(REQUESTS, "request_type", "scheduled", "running_scheduled"),),
        "running_prefill": (*_both(REQUESTS, "request_type", "context", "running_in_prefill"),),
        "running_decode": (*_both(BATCH, "inflight_batcher_specific_metric", "generation_requests", "running_in_decode"),),
        "waiting": (*_both(REQUESTS, "request_type", "waiting", "waiting_queue"),),
        "max_running": (*_both(REQUESTS, "request_type", "max", "max_running"),),
        "kv_usage": (*_both(BLOCKS, "kv_cache_block_type", "fraction", "kv_usage_blocks"),),
        "kv_used_blocks": (*_both(BLOCKS, "kv_cache_block_type", "used", "kv_used_blocks_triton"),),
        "kv_total_blocks": (*_both(BLOCKS, "kv_cache_block_type", "max", "kv_pool_blocks"),),
        "kv_block_tokens": (*_both(BLOCKS, "kv_cache_block_type", "tokens_per", "kv_block_size"),),
        "steps": (*_both("nv_trt_llm_general_metrics", "general_type", "iteration_counter", "steps_each_iteration"),),
        "requests_finished": (Alias(family="nv_inference_request_success", where={"model": "tensorrt_llm"}, sense="finished_all"),),
        "requests_failed": (Alias(family="nv_inference_request_failure", where={"model": "tensorrt_llm"}, sense="failed_by_error"),),
        "input_tokens": (Alias(family="nv_llm_input_token_len", sense="lengths_at_end"),),
        "generated_tokens": (Alias(family="nv_llm_output_token_len", sense="lengths_at_end"),),
        "device_memory_used_bytes": (
            Alias(family="nv_trt_llm_runtime_memory_metrics", where={"memory_type": "gpu"}, sense="memory_of_engine"),
        ),
    },
    not_exposed=(
        NotExposed(quantity="output_tokens", instead=Message("adapter.instead_triton_tokens")),
        NotExposed(quantity="prompt_tokens", instead=Message("adapter.instead_triton_tokens")),
        NotExposed(quantity="step_time", instead=Message("adapter.instead_triton_steps")),
        NotExposed(quantity="ttft", instead=Message("adapter.instead_client_side")),
        NotExposed(quantity="tpot", instead=Message("adapter.instead_client_side")),
        NotExposed(quantity="itl", instead=Message("adapter.instead_client_side")),
        NotExposed(quantity="e2e", instead=Message("adapter.instead_triton_requests")),
        NotExposed(quantity="prefix_hits", instead=Message("adapter.instead_triton_blocks")),
        NotExposed(quantity="accepted_tokens", instead=Message("adapter.instead_triton_spec")),
        NotExposed(quantity="device_dram_active", instead=Message("adapter.instead_dcgm")),
    ),
)
