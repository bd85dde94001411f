"""What each known ``model_type`` means (``catalog/architectures.toml``), and which kinds are named and refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
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
    period: int = 0
    mixture: bool = False
    mixture_switch: str | None = None
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
    "qwen3_next": "linear",
    "qwen3_5_text": "linear",
    "qwen3_5_moe_text": "linear",
    "qwen3_5": "linear",
    "qwen3_5_moe": "linear",
    "kimi_linear": "linear",
    "minimax": "linear",
    "minimax_m1": "linear",
    "minimax_text_01": "linear",
    "bailing_moe_linear": "linear",
    "jamba": "state_space",
    "nemotron_h": "state_space",
    "falcon_h1": "state_space",
    "granitemoehybrid": "state_space",
    "bamba": "state_space",
    "zamba": "state_space",
    "zamba2": "state_space",
    "mamba": "state_space",
    "mamba2": "state_space",
    "falcon_mamba": "state_space",
    "lfm2": "convolution",
    "lfm2_moe": "convolution",
    "rwkv": "recurrent",
    "rwkv5": "recurrent",
    "rwkv6": "recurrent",
    "rwkv7": "recurrent",
    "recurrent_gemma": "recurrent",
    "deepseek_v32": "sparse_indexer",
    "glm_moe_dsa": "sparse_indexer",
    "deepseek_v4": "sparse_compressed",
    "minimax_m3": "sparse_block",
    "minimax_m3_vl_text": "sparse_block",
    "gemma3n_text": "shared_kv",
    "gemma3n": "shared_kv",
    "nemotron-nas": "block_configs",
    "longcat_flash": "zero_experts",
}
# A field that betrays such a kind in any model_type, whatever the type promises.
_REFUSED_FIELDS: Mapping[str, str] = {
    "index_topk": "sparse_indexer",
    "index_n_heads": "sparse_indexer",
    "compress_ratios": "sparse_compressed",
    "sparse_attention_config": "sparse_block",
    "num_kv_shared_layers": "shared_kv",
    "use_cla": "shared_kv",
    "linear_attn_config": "linear",
    "linear_num_key_heads": "linear",
    "mamba_d_state": "state_space",
    "hybrid_override_pattern": "state_space",
    "ssm_state_size": "state_space",
    "conv_L_cache": "convolution",
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
    for key, kind in _REFUSED_FIELDS.items():
        if fields.config.get(key):
            refuse_kind(kind, fields, name)
    softmax = fields.numbers("attn_type_list")  # 1 is softmax attention, 0 a linear layer
    if softmax is not None and 0 in softmax:
        refuse_kind("linear", fields, name)
    for layer in sorted(set(fields.words("layer_types") or ())):
        refuse_kind(_REFUSED_LAYERS.get(layer), fields, name)
    return found


def refuse_kind(kind: str | None, fields: Fields, name: str) -> None:
    """Raise the refusal of a kind, if there is one."""
    if kind is not None:
        named = Message(f"error.layers_{kind}")
        raise NotModelledError("model_kind_not_modelled", where=fields.where, name=name, model_type=fields.model_type, kind=named)
