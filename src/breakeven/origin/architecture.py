"""What each known ``model_type`` means (``catalog/architectures.toml``), and which kinds are named and refused."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from breakeven.errors import NotModelledError
from breakeven.messages import Message
from breakeven.origin.config_fields import Fields


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """How a ``model_type`` departs from the plain decoder; the fields are explained at the head of the data file."""

    heads: str = "field"
    attends: str = "full"
    layout: str = "plain"
    mixer: str | None = None
    knows: Sequence[str] = ()
    attentions_per_layer: int = 1
    query_gate: str | None = None
    period: int = 0
    mixture: bool = False
    mixture_switch: str | None = None
    mixture_optional: bool = False
    mixture_beside: bool = False
    expert_width: str = "moe_intermediate_size"
    shared_width: str | None = None
    dense_width: str | None = None
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    sinks: bool = False
    head_gate: str | None = None
    tied: bool = False
    mlp_matrices: int = 3
    mlp_width: str = "field"
    extras: Sequence[str] = ()
    mlp_ratio: int = 0
    norms: int = 2
    norm_vectors: int = 1
    embedding_norm: bool = False
    qk_norm: str | None = None
    qk_norm_switch: str | None = None
    positions: str | None = None
    position_offset: int = 0
    mtp: str | None = None
    mtp_dense: bool = False
    biases: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    nested: Mapping[str, object] = field(default_factory=dict)


@cache
def architectures() -> Mapping[str, Architecture]:
    """Every ``model_type`` we can count."""
    text = resources.files("breakeven").joinpath("catalog", "architectures.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {name: Architecture(**tables[row.get("like", name)]) for name, row in tables.items()}


# model_type to the kind of layer that keeps it from being counted: the name of a sentence in error.toml.
_REFUSED_TYPES: Mapping[str, str] = {
    "bailing_moe_linear": "linear",
    "zamba": "state_space",
    "zamba2": "state_space",
    "rwkv": "recurrent",
    "rwkv5": "recurrent",
    "rwkv7": "recurrent",
    "recurrent_gemma": "recurrent",
}
# A field that betrays a kind of layer in a model_type that is not known to have it (``knows``), whatever the type promises.
_REFUSED_FIELDS: Mapping[str, str] = {
    "index_topk": "sparse_indexer",
    "index_n_heads": "sparse_indexer",
    "compress_ratios": "sparse_compressed",
    "sparse_attention_config": "sparse_block",
    "num_kv_shared_layers": "shared_kv",
    "use_cla": "shared_kv",
    "linear_attn_config": "linear",
    "linear_num_key_heads": "linear",
    "full_attention_interval": "linear",
    "mamba_d_state": "state_space",
    "hybrid_override_pattern": "state_space",
    "ssm_state_size": "state_space",
    "attn_layer_period": "state_space",
    "conv_L_cache": "convolution",
    "full_attn_idxs": "convolution",
    "block_configs": "block_configs",
    "hidden_size_per_layer_input": "layer_embeddings",
    "zero_expert_num": "zero_experts",
    "moe_latent_size": "latent_experts",
    "routed_expert_hidden_size": "latent_experts",
}
_REFUSED_LAYERS: Mapping[str, str] = {
    "linear_attention": "linear",
    "conv": "convolution",
    "mamba": "state_space",
    "mamba2": "state_space",
    "recurrent": "recurrent",
    "indexed_attention": "sparse_indexer",
    "compressed_sparse_attention": "sparse_compressed",
    "heavily_compressed_attention": "sparse_compressed",
    "minimax_m3_sparse": "sparse_block",
}


def known(fields: Fields, name: str) -> Architecture:
    """The architecture of a configuration, or the refusal that names its kind."""
    refuse_kind(_REFUSED_TYPES.get(fields.model_type), fields, name)
    found = architectures().get(fields.model_type)
    if found is None:
        raise NotModelledError("model_type_unknown", where=fields.where, name=name, model_type=fields.model_type)
    for kind in _betrayed(fields):
        if kind not in found.knows:
            refuse_kind(kind, fields, name)
    return found


def _betrayed(fields: Fields) -> Iterator[str]:
    """Kinds of layers that the fields speak of."""
    yield from (kind for key, kind in _REFUSED_FIELDS.items() if fields.config.get(key))
    softmax = fields.numbers("attn_type_list")  # 1 is softmax attention, 0 a linear layer
    if softmax is not None and 0 in softmax:
        yield "linear"
    layers = set(fields.words("layer_types") or ())
    yield from (_REFUSED_LAYERS[layer] for layer in sorted(layers & set(_REFUSED_LAYERS)))


def refuse_kind(kind: str | None, fields: Fields, name: str) -> None:
    """Raise the refusal of a kind, if there is one."""
    if kind is not None:
        named = Message(f"error.layers_{kind}")
        raise NotModelledError("model_kind_not_modelled", where=fields.where, name=name, model_type=fields.model_type, kind=named)
