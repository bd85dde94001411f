"""Mistral's own ``params.json``: its fields under the names of the ``config.json`` that the same model would have."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.origin.config_fields import table

_NAMES: Mapping[str, str] = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "hidden_dim": "intermediate_size",
    "vocab_size": "vocab_size",
    "sliding_window": "sliding_window",
    "max_position_embeddings": "max_position_embeddings",
    "max_seq_len": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "quantization": "quantization_config",
    "quantization_config": "quantization_config",
}
_EXPERT_NAMES: Mapping[str, str] = {
    "num_experts": "n_routed_experts",
    "num_experts_per_tok": "num_experts_per_tok",
    "expert_hidden_dim": "moe_intermediate_size",
    "num_shared_experts": "n_shared_experts",
    "first_k_dense_replace": "first_k_dense_replace",
    "route_every_n": "moe_layer_freq",
}


def is_params(config: Mapping[str, object]) -> bool:
    """Whether a table is a ``params.json``: no model_type, and the width and the layers under Mistral's names."""
    return "model_type" not in config and {"dim", "n_layers"} <= set(config)


def as_config(params: Mapping[str, object], where: str) -> dict[str, object]:
    """The ``config.json`` that a ``params.json`` amounts to: the type follows from the attention and the experts."""
    given = {name: params[key] for key, name in _NAMES.items() if params.get(key) is not None}
    # A window that is absent here is no window, while the class of the same model has one by default.
    config: dict[str, object] = {"sliding_window": None, "model_type": "mistral", "torch_dtype": "bfloat16", **given}
    config |= _rope(params, where)
    if params.get("moe") is not None:
        config |= _experts(table(params["moe"], "moe", where), latent="kv_lora_rank" in given)
    return config


def _experts(moe: Mapping[str, object], *, latent: bool) -> dict[str, object]:
    named = {name: moe[key] for key, name in _EXPERT_NAMES.items() if moe.get(key) is not None}
    if latent:
        return {"n_shared_experts": 0, "first_k_dense_replace": 0, **named, "model_type": "deepseek_v3"}
    count = named.pop("n_routed_experts", None)
    return {"num_experts_per_tok": None, **named, "num_local_experts": count, "model_type": "mixtral"}


def _rope(params: Mapping[str, object], where: str) -> dict[str, object]:
    """The longest context, where only the scaling of positions says it."""
    if params.get("yarn") is None or "max_position_embeddings" in params or "max_seq_len" in params:
        return {}
    yarn = table(params["yarn"], "yarn", where)
    factor, first = yarn.get("factor"), yarn.get("original_max_position_embeddings")
    if not isinstance(factor, (int, float)) or isinstance(factor, bool) or not isinstance(first, int) or not 0 < factor * first < 2e9:
        return {}
    return {"max_position_embeddings": int(factor * first)}
