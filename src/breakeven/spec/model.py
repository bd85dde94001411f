"""What a language model is to the ledgers: counts by tensor class, attention by groups of layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breakeven.messages import Message

AttentionKind = Literal["full", "sliding", "chunked", "mla", "compressed"]
StateKind = Literal["linear", "ssm", "conv", "recurrent"]
TENSOR_CLASSES = ("embedding", "head", "attention", "mlp", "experts", "other", "lookup")


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Layers that attend alike. For MLA ``kv_heads`` is 1 and ``k_dim`` the cached latent plus rope width, ``v_dim`` 0.

    ``compressed`` layers keep their window as it is and beyond it one entry a ``compression`` tokens (keys serving as values, so that
    ``v_dim`` is 0 and ``value_dim`` what the query reads of an entry).
    """

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
    shares_kv: bool = False
    """These layers attend over an earlier layer's cache: they keep none of their own, and read it all the same."""
    selected: int | None = None
    """Sparse attention: the most cached entries a query attends to (``index_topk``, or blocks times their size)."""
    index_dim: int = 0
    """Sparse attention: elements of the key that a layer's indexer keeps for each entry, all of them read in every step."""
    index_heads: int = 0
    """Sparse attention: query heads of the indexer."""
    compression: int | None = None
    """Compressed: tokens that one entry beyond the window stands for; None where nothing beyond the window is kept."""


@dataclass(frozen=True, kw_only=True)
class States:
    """Layers that keep a state of constant size for a sequence, read and written in every step (a layer may also attend)."""

    kind: StateKind
    mixer: str
    """The field's name of the layer: ``gated_deltanet``, ``kda``, ``lightning``, ``mamba1``, ``mamba2``, ``shortconv``, ``rwkv6``."""
    layers: int
    state_elements: int
    """Elements of the recurrent state of one layer and sequence."""
    conv_elements: int
    """Elements of the convolution's window of one layer and sequence."""
    heads: int = 1
    """Heads that the state is split over, and so the most devices that can share it."""


@dataclass(frozen=True, kw_only=True)
class Experts:
    """The routed experts of a mixture; shared experts count as ``mlp``."""

    count: int
    top_k: int
    layers: int
    """Layers that hold a mixture."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters by tensor class (counts). ``head`` is 0 in a tied model; ``mlp`` holds dense layers, shared experts and routers.

    ``attention`` holds the mixers of state layers too. ``lookup`` are tables beside the embedding of which a token reads a row (per-layer
    embeddings): stored, and neither read through in a step nor multiplied.
    """

    embedding: int
    head: int
    attention: int
    mlp: int
    experts: int
    other: int
    lookup: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.embedding + self.head + self.attention + self.mlp + self.experts + self.other + self.lookup


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
    states: tuple[States, ...] = ()
    state_dtype: str | None = None
    """The type the configuration asks recurrent states to be kept in (``float32``, ``bfloat16``); None leaves it to the engine."""
    part_blocks: int = 0
    """Layers that hold a mixer or an MLP and not both: their launches cost about half of a layer's."""
    experts: Experts | None = None
    tied: bool = False
    dtype: str = "bfloat16"
    max_context: int | None = None
    stored: Mapping[str, str] = field(default_factory=dict)
    """Tensor class to weight format as stored (``fp8``, ``mxfp4``, ``int4_g128`` …); absent means ``dtype``."""
    stored_bytes: Mapping[str, float] = field(default_factory=dict)
    """Tensor class to its bytes, scales included: of the files where they were read, else part by part of a quantised configuration;
    absent means count times format.

    ``mtp`` holds those of the MTP layers. Matrices of 32 bits count as the 16 they are served in.
    """
    beside_bytes: float = 0.0
    """Bytes of vision and audio towers, where the files were read: in memory, and not read when text is decoded."""
    remarks: tuple[Message, ...] = ()
    """What is to be said of how the model was read."""
    kv_scheme: str | None = None
    """The KV format a checkpoint asks for, if it does."""
    mtp_layers: int = 0
    mtp_parameters: int = 0
    draft_heads: tuple[str, ...] = ()
    """Published draft heads as ``method name``, for example ``eagle3 yuhuili/EAGLE3-LLaMA3.1-Instruct-8B``."""
    hf_ids: tuple[str, ...] = ()
    confidence: str = "high"
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def launch_layers(self) -> float:
        """Layers by what they launch: a block of one part counts half."""
        return self.layers - self.part_blocks / 2
