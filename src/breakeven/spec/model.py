"""What a language model is to the ledgers: counts by tensor class, attention by groups of layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

AttentionKind = Literal["full", "sliding", "chunked", "mla"]
TENSOR_CLASSES = ("embedding", "head", "attention", "mlp", "experts", "other")


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Layers that attend alike. For MLA ``kv_heads`` is 1 and ``k_dim`` the cached latent plus rope width, ``v_dim`` 0."""

    kind: AttentionKind
    layers: int
    q_heads: int
    kv_heads: int
    k_dim: int
    v_dim: int
    window: int | None = None
    """Tokens a layer can look back on (sliding, chunked)."""
    latent_rank: int | None = None
    """MLA: kv_lora_rank."""
    rope_dim: int | None = None
    """MLA: qk_rope_head_dim."""
    nope_dim: int | None = None
    """MLA: qk_nope_head_dim (prefill is not absorbed: it attends with nope + rope wide keys)."""
    value_dim: int | None = None
    """MLA: v_head_dim."""


@dataclass(frozen=True, kw_only=True)
class Experts:
    """The routed experts of a mixture; shared experts count as ``mlp``."""

    count: int
    top_k: int
    layers: int
    """Layers that hold a mixture."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters by tensor class (counts). ``head`` is 0 in a tied model; ``mlp`` holds dense layers, shared experts and routers."""

    embedding: int
    head: int
    attention: int
    mlp: int
    experts: int
    other: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.embedding + self.head + self.attention + self.mlp + self.experts + self.other


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model's architecture."""

    name: str
    family: str
    """``model_type`` of the (text) configuration."""
    layers: int
    hidden: int
    vocabulary: int
    attention: tuple[Attention, ...]
    parameters: Parameters
    experts: Experts | None = None
    tied: bool = False
    dtype: str = "bfloat16"
    max_context: int | None = None
    stored: Mapping[str, str] = field(default_factory=dict)
    """Tensor class to weight format as stored (``fp8``, ``mxfp4``, ``int4_g128`` …); absent means ``dtype``."""
    kv_scheme: str | None = None
    """The KV format a checkpoint asks for, if it does."""
    mtp_layers: int = 0
    mtp_parameters: int = 0
    draft_heads: tuple[str, ...] = ()
    """Published draft heads as ``method name``, for example ``eagle3 yuhuili/EAGLE3-LLaMA3.1-Instruct-8B``."""
    hf_ids: tuple[str, ...] = ()
    confidence: str = "high"
    sources: Mapping[str, str] = field(default_factory=dict)
