"""The quirks of configurations, by the numbers of the list of quirks: 34 to 47, what holds where nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_configs import MIXED, SMALL, SSM, dense, hybrid, parts, without

from breakeven.ledger.memory import state_bytes
from breakeven.origin.architecture import architectures
from breakeven.origin.huggingface import parse_config
from breakeven.pages import state_element_bytes
from breakeven.spec.engine import Engine
from breakeven.spec.model import Model

CLASS_FIELDS = (
    "sliding_window", "attention_chunk_size", "first_k_dense_replace", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim", "index_topk", "index_head_dim", "index_n_heads", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
    "linear_value_head_dim", "linear_conv_kernel_dim", "mamba_d_state", "mamba_d_conv", "mamba_n_groups", "mamba_expand", "conv_L_cache",
    "attn_layer_period", "attn_layer_offset", "expert_layer_period", "expert_layer_offset", "hidden_size_per_layer_input", "laurel_rank",
    "altup_num_inputs", "hc_mult", "o_lora_rank", "o_groups", "zero_expert_num", "num_dense_layers",
)  # fmt: skip
"""Fields whose absence means the class's value."""
UNREAD = {("falcon_h1", "mamba_expand"), ("deepseek_v4", "qk_rope_head_dim")}
"""Fields of a class that its shape does not follow."""


@pytest.fixture(scope="module")
def rows(shared: Path) -> dict[str, dict[str, Any]]:
    lines = (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in map(json.loads, lines)}


def parsed(config: dict[str, Any]) -> Model:
    return parse_config(config, name="m", where="config.json")


def model(model_type: str, *gone: str, **more: Any) -> Model:
    return parsed({"model_type": model_type, **without(SMALL, *gone), **more})


class TestDefaults:
    @pytest.mark.parametrize("model_type", ["llama", "qwen2", "phi", "baichuan", "bloom", "gpt_neox"])
    def test_rule_34_missing_kv_heads_are_the_heads(self, model_type: str) -> None:
        assert model(model_type, "num_key_value_heads").attention[0].kv_heads == 8

    @pytest.mark.parametrize(("model_type", "kv_heads"), [("mistral", 8), ("mixtral", 8), ("jamba", 8), ("starcoder2", 2)])
    def test_rule_34_but_those_of_the_class_where_it_has_some(self, model_type: str, kv_heads: int) -> None:
        more = {"num_attention_heads": 16, "head_dim": 32, "num_hidden_layers": 8} | (MIXED if model_type in ("mixtral", "jamba") else {})
        assert model(model_type, "num_key_value_heads", **more).attention[0].kv_heads == kv_heads

    @pytest.mark.parametrize(
        ("model_type", "tied"),
        [
            *(
                (name, True)
                for name in ("gemma", "gemma2", "gemma3_text", "gemma3n_text", "gemma4_text", "cohere", "cohere2", "falcon", "opt")
            ),
            *((name, True) for name in ("bloom", "gpt2", "gpt_bigcode", "mpt", "starcoder2", "ernie4_5", "smollm3", "lfm2")),
            *((name, False) for name in ("llama", "qwen2", "qwen3", "mistral", "phi3", "olmo2", "granite", "falcon_h1")),
        ],
    )
    def test_rule_35_a_missing_tie_is_that_of_the_class(self, model_type: str, tied: bool) -> None:
        more = (
            {"n_positions": 64, "max_seq_len": 64, "max_position_embeddings": 64, "full_attn_idxs": [1]} if model_type in _SPECIAL else SSM
        )
        more = {"full_attn_idxs": [1]} if model_type == "lfm2" else without(more, "full_attn_idxs")
        more |= {"mamba_d_ssm": 1024} if model_type == "falcon_h1" else {"num_kv_shared_layers": 0} if "gemma" in model_type else {}
        more = without(more, *SSM) if model_type != "falcon_h1" else more
        assert model(model_type, **more).tied is tied

    def test_a_field_that_is_absent_takes_the_class_default(self, shared: Path) -> None:
        classes = json.loads((shared / "reference/transformers-defaults.json").read_text(encoding="utf-8"))
        apart = {}
        for name, arch in architectures().items():
            for field in CLASS_FIELDS:
                written = classes.get(name, {}).get(field)
                if written and arch.defaults.get(field) != written and (name, field) not in UNREAD:
                    apart[name, field] = (arch.defaults.get(field), written)
        assert apart == {}

    def test_rule_36_falcon_old_and_new(self) -> None:
        assert model("falcon", "num_key_value_heads").attention[0].kv_heads == 1
        assert model("falcon", "num_key_value_heads", multi_query=False).attention[0].kv_heads == 8
        new = model("falcon", "num_key_value_heads", new_decoder_architecture=True, num_kv_heads=4, multi_query=True)
        assert new.attention[0].kv_heads == 4
        assert new.parameters.other > model("falcon", "num_key_value_heads").parameters.other  # two norms to one
        assert model("falcon", "num_key_value_heads", new_decoder_architecture=True, n_head_kv=2).attention[0].kv_heads == 2

    def test_rule_37_opt_positions_projections_and_a_norm_less(self) -> None:
        plain = dense("opt", max_position_embeddings=64)
        assert plain.parameters.other == (4 * 2 + 1) * 2 * 512 + 66 * 512
        narrow = dense("opt", max_position_embeddings=64, word_embed_proj_dim=256, do_layer_norm_before=False)
        assert narrow.parameters.other == 4 * 2 * 2 * 512 + 66 * 512 + 2 * 256 * 512

    def test_rule_38_phi_biases_everywhere_phi3_none_gptj_on_the_head(self) -> None:
        assert dense("phi3").parameters.attention == 4 * 4 * 512 * 512
        assert dense("phi", num_key_value_heads=None).parameters.attention == 4 * (4 * 512 * 512 + 4 * 512)
        assert dense("gptj").parameters.attention == 4 * 4 * 512 * 512
        assert dense("gptj").parameters.other == (4 + 1) * 2 * 512 + 3000

    @pytest.mark.parametrize(
        ("model_type", "fields", "biases"),
        [
            ("qwen2", {}, 3 * 512),
            ("chatglm", {"add_qkv_bias": True}, 3 * 512),
            ("llama", {"attention_bias": True}, 4 * 512),
            ("granite", {"attention_bias": True}, 4 * 512),
            ("starcoder2", {"use_bias": False}, 0),
            ("starcoder2", {"use_bias": True}, 4 * 512),
            ("cohere", {"use_qk_norm": False}, 0),
            ("cohere", {"use_qk_norm": True}, 2 * 512),
        ],
    )
    def test_rule_39_biases_and_norms_of_queries_and_keys(self, model_type: str, fields: dict[str, Any], biases: int) -> None:
        found = dense(model_type, num_key_value_heads=8, multi_query_group_num=8, **fields)
        assert found.parameters.attention == 4 * (4 * 512 * 512 + biases)

    def test_rule_39_glm4_moe_has_biases_on_q_k_and_v_alone(self) -> None:
        mixed = {**MIXED, "n_routed_experts": 16, "head_dim": 64}
        with_bias, plain = (model("glm4_moe", attention_bias=flag, **mixed).parameters.attention for flag in (True, False))
        assert with_bias - plain == 4 * (512 + 128 + 128)

    def test_rule_40_mpt_and_dbrx_keep_tables_of_their_own(self) -> None:
        shape = {
            "model_type": "mpt",
            "n_layers": 4,
            "d_model": 512,
            "n_heads": 8,
            "vocab_size": 3000,
            "expansion_ratio": 4,
            "max_seq_len": 64,
        }
        kv = {}
        for kind in ("multihead_attention", "multiquery_attention", "grouped_query_attention"):
            kv[kind] = parsed({**shape, "attn_config": {"attn_type": kind, "kv_n_heads": 4, "alibi": True}}).attention[0].kv_heads
        assert list(kv.values()) == [8, 1, 4]
        dbrx = {"model_type": "dbrx", "n_layers": 4, "d_model": 512, "n_heads": 8, "vocab_size": 3000, "max_seq_len": 64}
        ffn = {"ffn_hidden_size": 128, "moe_num_experts": 16, "moe_top_k": 4}
        found = parsed({**dbrx, "attn_config": {"kv_n_heads": 2}, "ffn_config": ffn})
        assert found.parameters.experts == 4 * 16 * 3 * 512 * 128 and found.attention[0].kv_heads == 2

    @pytest.mark.parametrize(("model_type", "norms"), [("gemma2", 4), ("glm4", 4), ("cohere", 1), ("llama", 2), ("olmo2", 2), ("gemma", 2)])
    def test_rule_41_norms_a_layer(self, model_type: str, norms: int) -> None:
        assert dense(model_type, num_key_value_heads=4, head_dim=64).parameters.other == (4 * norms + 1) * 512

    def test_rule_41_one_norm_a_block_and_queries_normed_over_their_full_width(self) -> None:
        assert hybrid("nemotron_h").parameters.other == (4 + 1) * 512
        assert dense("olmo2").parameters.attention == 4 * (4 * 512 * 512 + 2 * 512)

    def test_rule_42_the_width_that_lfm2_makes_of_what_it_writes(self) -> None:
        assert hybrid("lfm2", block_ff_dim=6656).parameters.mlp == 4 * 3 * 512 * 4608
        assert hybrid("lfm2", block_ff_dim=6656, block_auto_adjust_ff_dim=False).parameters.mlp == 4 * 3 * 512 * 6656
        twice = hybrid("lfm2", block_ff_dim=6656, block_ffn_dim_multiplier=2.0, block_multiple_of=1000)
        assert twice.parameters.mlp == 4 * 3 * 512 * 9000

    def test_rule_43_mamba2_sizes_follow_from_its_heads(self) -> None:
        wide = hybrid("nemotron_h", mamba_num_heads=24, expand=2)
        assert parts(wide) == (24 * 64 * 32, (24 * 64 + 2 * 2 * 32) * 3)
        assert parts(hybrid("falcon_h1", mamba_d_ssm=512)) == (4 * 512 * 32, 4 * (512 + 2 * 32) * 3)

    def test_rule_43_gated_deltanet_convolves_keys_queries_and_values(self) -> None:
        found = hybrid("qwen3_5_text", linear_key_head_dim=32, linear_value_head_dim=64)
        assert parts(found) == (3 * 8 * 32 * 64, 3 * (2 * 4 * 32 + 8 * 64) * 3)

    def test_rule_44_where_the_configuration_is_silent_the_engine_decides(self) -> None:
        engine = Engine(state_dtype="bfloat16")
        assert [state_element_bytes(hybrid(name), engine) for name in ("qwen3_5_text", "jamba", "kimi_linear")] == [4.0, 2.0, 4.0]
        found = hybrid("jamba")
        assert state_bytes(found, 4.0) - state_bytes(found, 2.0) == 2 * parts(found)[0]

    def test_rule_45_an_output_gate_doubles_the_query_projection(self) -> None:
        for name in ("qwen3_5_text", "qwen3_next"):
            gated, plain = (hybrid(name, attn_output_gate=flag).parameters.attention for flag in (True, False))
            assert gated - plain == 512 * 8 * 256 and hybrid(name).parameters.attention == gated

    def test_rule_46_the_vocabulary_is_the_one_that_is_written(self, rows: dict[str, dict[str, Any]]) -> None:
        assert parsed(rows["gemma-3-27b"]["hf_config"]).vocabulary == 262208
        assert parsed(rows["qwen2.5-7b"]["hf_config"]).parameters.embedding == 152064 * 3584

    def test_rule_47_a_tied_head_is_counted_once_whatever_a_checkpoint_stores(self, rows: dict[str, dict[str, Any]]) -> None:
        for name in ("qwen3-0.6b", "qwen2.5-0.5b"):
            assert parsed(rows[name]["hf_config"]).parameters.head == 0

    def test_rule_47_mtp_layers_use_the_embedding_and_the_head_of_the_model(self, rows: dict[str, dict[str, Any]]) -> None:
        row = rows["deepseek-v3"]
        found = parsed(row["hf_config"])
        assert row["mtp_params"] - found.mtp_parameters == pytest.approx(2 * found.vocabulary * found.hidden, rel=1e-3)


_SPECIAL = ("opt", "gpt2", "gpt_bigcode", "mpt", "bloom", "falcon")
