"""How the engine is set, by vLLM's names where vLLM has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Speculative:
    """Speculative decoding as configured. ``verify_tokens`` counts the rows a sequence verifies (k + 1 for a chain, nodes for a tree)."""

    method: str
    """``ngram``, ``draft_model``, ``eagle``, ``eagle3``, ``mtp``."""
    num_speculative_tokens: int
    model: str | None = None
    """The draft model or head, as named."""
    topk: int = 1
    verify_tokens: int | None = None

    @property
    def rows(self) -> int:
        """Rows of the forward pass per sequence and round."""
        return self.verify_tokens or self.num_speculative_tokens + 1


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine's settings, all resolved: nothing is left to a default unseen."""

    name: str = "vllm"
    version: str = "0.11"
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int | None = None
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    block_size: int = 16
    gpu_memory_utilization: float = 0.9
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    enforce_eager: bool = False
    speculative: Speculative | None = None
    kv_reserve: Literal["grow", "whole"] = "grow"
    """Whether a sequence's cache grows with it, or prompt and output are reserved at once (TensorRT-LLM)."""
    mixes_prompts: bool = False
    """Whether whole prompts run in one step with decoding sequences even where they are not cut into chunks (in-flight batching)."""
    runtime_reserve_bytes: float = 2e9
    """What activations, graphs and the runtime take of a device beside weights and cache."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Flags that were given and that we do not read, kept as given."""


@dataclass(frozen=True, kw_only=True)
class EngineDefaults:
    """Defaults of one engine, at one version, on one device."""

    name: str
    title: str
    version: str
    """The version taken when none is stated."""
    settings: Mapping[str, object]
    """Field of ``Engine`` to its default."""
    kv_reserve: Literal["grow", "whole"]
    """Whether a sequence takes KV room as it grows, or for all its tokens at once."""
    mixes_prompts: bool
    """Whether prompts run beside decoding sequences even without chunks."""
    runtime_reserve_bytes: float
    """Memory a device gives to activations, graphs and the runtime."""
    flags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Lever to the text that switches it ``on`` and ``off``."""
    sources: Mapping[str, str] = field(default_factory=dict)
