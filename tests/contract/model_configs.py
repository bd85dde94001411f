"""Configurations that the tests of the parser start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.origin.huggingface import parse_config
from breakeven.spec.model import Model

GOOD: Mapping[str, Any] = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 8,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 1024,
    "moe_intermediate_size": 128,
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [0],
    "vocab_size": 3000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_sliding_window": True,
    "sliding_window": 256,
    "max_window_layers": 2,
    "attention_bias": False,
    "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128},
}
LATENT: Mapping[str, Any] = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "intermediate_size": 1024,
    "moe_intermediate_size": 128,
    "n_routed_experts": 16,
    "num_experts_per_tok": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 128,
    "q_lora_rank": None,
    "qk_rope_head_dim": 32,
    "qk_nope_head_dim": 64,
    "v_head_dim": 64,
    "vocab_size": 3000,
    "torch_dtype": "bfloat16",
    "num_nextn_predict_layers": 1,
}


SMALL: Mapping[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 1024,
    "vocab_size": 3000,
    "torch_dtype": "bfloat16",
}
MIXED: Mapping[str, Any] = {"num_experts": 16, "num_local_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128}
LATENT_WIDTHS: Mapping[str, Any] = {
    "kv_lora_rank": 128, "q_lora_rank": 96, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 64,
}  # fmt: skip
INDEX: Mapping[str, Any] = {"index_topk": 64, "index_head_dim": 32, "index_n_heads": 4}
SSM: Mapping[str, Any] = {
    "mamba_n_heads": 16, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 32, "mamba_d_conv": 4, "mamba_expand": 2,
}  # fmt: skip
HYBRIDS: Mapping[str, Mapping[str, Any]] = {
    "qwen3_5_text": {
        **SMALL, "linear_num_key_heads": 4, "linear_num_value_heads": 8, "mtp_num_hidden_layers": 1,
        "mamba_ssm_dtype": "float32",
    },
    "qwen3_next": {**SMALL, **MIXED, "shared_expert_intermediate_size": 128},
    "kimi_linear": {
        **SMALL, **LATENT_WIDTHS, **MIXED, "num_experts_per_token": 4, "first_k_dense_replace": 1,
        "linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4], "num_heads": 8, "head_dim": 64},
        "linear_conv_kernel_dim": 4,
    },
    "minimax_m1": {**SMALL, **MIXED, "attn_type_list": [0, 0, 0, 1], "shared_intermediate_size": 0},
    "jamba": {**SMALL, **MIXED, "attn_layer_period": 4, "attn_layer_offset": 2, "mamba_dt_rank": 32},
    "falcon_h1": {**SMALL, **SSM, "mamba_d_ssm": 1024},
    "granitemoehybrid": {**SMALL, **MIXED, **SSM, "layer_types": ["mamba", "mamba", "attention", "mamba"], "shared_intermediate_size": 256},
    "bamba": {**SMALL, **SSM, "attn_layer_indices": [1]},
    "nemotron_h": {
        **SMALL, "hybrid_override_pattern": "M*-E", "mamba_num_heads": 16, "mamba_head_dim": 64, "n_groups": 2, "ssm_state_size": 32,
        "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128, "moe_latent_size": 256, "n_shared_experts": 1,
        "moe_shared_expert_intermediate_size": 256, "num_nextn_predict_layers": 1, "mtp_layers_block_type": ["attention", "moe"],
    },
    "lfm2": {**SMALL, "block_ff_dim": 1024, "conv_L_cache": 3, "full_attn_idxs": [2]},
    "lfm2_moe": {**SMALL, **MIXED, "num_dense_layers": 1, "conv_L_cache": 3, "layer_types": ["conv", "full_attention", "conv", "conv"]},
    "mamba": {"num_hidden_layers": 4, "hidden_size": 512, "vocab_size": 3000},
    "mamba2": {"num_hidden_layers": 4, "hidden_size": 512, "vocab_size": 3000, "num_heads": 16, "head_dim": 64},
    "rwkv6": {"num_hidden_layers": 4, "hidden_size": 512, "vocab_size": 3000, "head_size": 64, "intermediate_size": 1792},
    "deepseek_v32": {**SMALL, **LATENT_WIDTHS, **INDEX, "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128},
    "glm_moe_dsa": {
        **SMALL, **LATENT_WIDTHS, **INDEX, "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128,
        "indexer_types": ["full", "full", "shared", "shared"], "num_nextn_predict_layers": 1,
    },
    "deepseek_v4": {
        **SMALL, **INDEX, "n_routed_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 128, "head_dim": 128,
        "q_lora_rank": 96,
        "o_lora_rank": 64, "o_groups": 4, "hc_mult": 4, "sliding_window": 128, "compress_ratios": [0, 4, 128, 4, 0],
        "num_nextn_predict_layers": 1,
    },
    "minimax_m3": {
        **SMALL, **MIXED, "dense_intermediate_size": 1024, "moe_layer_freq": [0, 1, 1, 1], "n_shared_experts": 1,
        "num_nextn_predict_layers": 1,
        "sparse_attention_config": {
            "sparse_attention_freq": [0, 1, 1, 1], "sparse_block_size": 16, "sparse_topk_blocks": 4, "sparse_index_dim": 32,
            "sparse_num_index_heads": 2,
        },
    },
    "gemma3n_text": {**SMALL, "num_kv_shared_layers": 2, "intermediate_size": [1024] * 4, "hidden_size_per_layer_input": 16},
    "gemma4_text": {**SMALL, "num_kv_shared_layers": 2, "use_double_wide_mlp": True, "hidden_size_per_layer_input": 16},
    "hunyuan_v1_moe": {**SMALL, **MIXED, "use_cla": True, "cla_share_factor": 2, "num_shared_expert": [1] * 4, "moe_topk": [4] * 4},
    "longcat_flash": {
        **SMALL, **LATENT_WIDTHS, "ffn_hidden_size": 1024, "n_routed_experts": 16, "zero_expert_num": 8, "moe_topk": 6,
        "expert_ffn_hidden_size": 128,
    },
    "nemotron-nas": {
        **SMALL, "intermediate_size": None, "num_key_value_heads": None,
        "block_configs": [
            {"attention": {"n_heads_in_group": 4, "no_op": False}, "ffn": {"ffn_mult": 5.25, "no_op": False}},
            {"attention": {"no_op": True, "n_heads_in_group": None}, "ffn": {"ffn_mult": 1.0, "no_op": False}},
            {"attention": {"n_heads_in_group": 8}, "ffn": {"no_op": True}},
            {"attention": {"replace_with_linear": True}, "ffn": {"replace_with_linear": True}},
        ],
    },
}  # fmt: skip
"""One small configuration of every kind that keeps states, selects, compresses, shares, or has layers of a shape of their own."""
PARAMS: Mapping[str, Any] = {
    "dim": 512, "n_layers": 4, "head_dim": 64, "hidden_dim": 1024, "n_heads": 8, "n_kv_heads": 2, "vocab_size": 3000,
    "moe": {"num_experts": 8, "num_experts_per_tok": 2},
}  # fmt: skip


def read(changes: Mapping[str, Any] | None = None, **more: Any) -> Model:
    return parse_config({**GOOD, **(changes or {}), **more}, name="m", where="config.json")


def dense(model_type: str = "llama", **more: Any) -> Model:
    shape = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 3000}
    return parse_config({"model_type": model_type, **shape, **more}, name="m", where="config.json")


def without(config: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in names}


def kv_bytes(model: Model) -> float:
    """All of a token's cache in 16 bits, as the table counts it: an engine keeps an indexer's key in 8."""
    groups = [g for g in model.attention if not g.shares_kv and (g.kind != "compressed" or g.compression)]
    return sum(2.0 * g.layers * (g.kv_heads * (g.k_dim + g.v_dim) + g.index_dim) / (g.compression or 1) for g in groups)


def hybrid(model_type: str, **more: Any) -> Model:
    return parse_config({"model_type": model_type, **HYBRIDS[model_type], **more}, name="m", where="config.json")


def parts(model: Model) -> tuple[int, int]:
    """Recurrent and convolution elements of a sequence."""
    return sum(s.layers * s.state_elements for s in model.states), sum(s.layers * s.conv_elements for s in model.states)
