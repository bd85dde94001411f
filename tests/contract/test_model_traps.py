"""The traps of reading a configuration, by their numbers in the list of traps."""

from __future__ import annotations

from typing import Any

import pytest
from model_configs import GOOD, HYBRIDS, LATENT, dense, hybrid, kv_bytes, parts, read, without

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.huggingface import parse_config


class TestTraps:
    def test_9_absent_kv_heads_are_as_many_as_the_heads(self) -> None:
        assert dense("llama").attention[0].kv_heads == 8
        assert dense("opt", ffn_dim=1024, max_position_embeddings=64).attention[0].kv_heads == 8

    def test_9_but_a_class_default_counts_where_the_class_has_one_and_null_is_not_absent(self) -> None:
        assert dense("starcoder2").attention[0].kv_heads == 2
        assert dense("starcoder2", num_key_value_heads=None).attention[0].kv_heads == 8

    @pytest.mark.parametrize(
        ("model_type", "fields", "kv_heads"),
        [
            ("chatglm", {"multi_query_group_num": 2, "kv_channels": 64}, 2),
            ("falcon", {}, 1),
            ("falcon", {"multi_query": False}, 8),
            ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 4}, 4),
            ("gpt_bigcode", {"multi_query": True, "n_positions": 64}, 1),
            ("mpt", {"attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 2}}, 2),
            ("mpt", {"attn_config": {"attn_type": "multiquery_attention"}}, 1),
            (
                "step3p5",
                {
                    "num_attention_groups": 2,
                    "layer_types": ["full_attention"] * 4,
                    "moe_num_experts": 4,
                    "moe_top_k": 2,
                    "moe_layers_enum": "2,3",
                    "moe_intermediate_size": 64,
                },
                2,
            ),
        ],
    )
    def test_9_every_name_of_the_kv_heads_is_known(self, model_type: str, fields: dict[str, Any], kv_heads: int) -> None:
        assert dense(model_type, **fields).attention[0].kv_heads == kv_heads

    def test_11_a_nested_text_config_is_read_with_what_stands_outside_it(self) -> None:
        nested = {
            "model_type": "qwen3_vl",
            "text_config": {**without(GOOD, "tie_word_embeddings", "quantization_config"), "model_type": "qwen3_vl_moe_text"},
            "tie_word_embeddings": True,
            "quantization_config": GOOD["quantization_config"],
        }
        model = parse_config(nested, name="m", where="config.json")
        assert model.tied and model.stored["experts"] == "int4_g128" and model.family == "qwen3_vl_moe_text"

    def test_11_a_nested_config_takes_the_class_defaults_that_a_top_level_one_may_not(self) -> None:
        shape = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}
        model = parse_config({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", **shape}}, name="m", where="config.json")
        assert (model.vocabulary, model.attention[0].kv_heads, model.attention[0].k_dim) == (262208, 4, 256)
        with pytest.raises(InputError, match="vocab_size"):
            parse_config({"model_type": "gemma3_text", **shape}, name="m", where="config.json")

    def test_11_a_thinker_is_looked_into(self) -> None:
        text_config = {**GOOD, "model_type": "qwen3_moe"}
        omni = {"model_type": "qwen3_omni_moe", "thinker_config": {"model_type": "x", "text_config": text_config}}
        assert parse_config(omni, name="m", where="config.json").layers == 8

    def test_12_mla_caches_one_latent_and_no_second_tensor(self) -> None:
        model = parse_config(LATENT, name="m", where="config.json")
        group = model.attention[0]
        assert (group.kind, group.kv_heads, group.k_dim, group.v_dim, group.latent_rank) == ("mla", 1, 160, 0, 128)
        assert kv_bytes(model) == 4 * 160 * 2

    def test_12_a_null_query_rank_is_a_plain_projection_and_an_absent_one_the_class_default(self) -> None:
        plain = parse_config(LATENT, name="m", where="config.json").parameters.attention
        absent = parse_config(without(LATENT, "q_lora_rank"), name="m", where="config.json").parameters.attention
        assert absent - plain == 4 * (512 * 1536 + 1536 + 1536 * 8 * 96 - 512 * 8 * 96)

    def test_13_a_window_that_is_switched_off_is_no_window(self) -> None:
        assert {group.kind for group in read(use_sliding_window=False).attention} == {"full"}
        assert [(group.kind, group.layers) for group in read().attention] == [("full", 2), ("sliding", 6)]

    def test_13_mistral_slides_where_the_key_is_missing_and_not_where_it_is_null(self) -> None:
        assert dense("mistral").attention[0].window == 4096
        assert dense("mistral", sliding_window=None).attention[0].kind == "full"

    def test_13_a_window_as_wide_as_the_context_has_no_effect(self) -> None:
        assert dense("phi3", sliding_window=4096, max_position_embeddings=4096).attention[0].kind == "full"
        assert dense("phi3", sliding_window=2047, max_position_embeddings=4096).attention[0].window == 2047

    @pytest.mark.parametrize(
        ("fields", "sliding"),
        [
            ({"model_type": "gemma2"}, 2),
            ({"model_type": "cohere2"}, 3),
            ({"model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LG"}, 2),
            ({"model_type": "gemma2", "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}, 1),
            ({"model_type": "olmo3", "layer_types": ["sliding_attention"] * 6}, 4),
        ],
    )
    def test_13_patterns_by_class_by_string_and_by_list(self, fields: dict[str, Any], sliding: int) -> None:
        model = dense(**{"num_key_value_heads": 4, **fields})
        assert sum(group.layers for group in model.attention if group.kind == "sliding") == sliding

    @pytest.mark.parametrize(
        ("fields", "layers"),
        [
            ({"mlp_only_layers": [0, 3]}, 6),
            ({"mlp_only_layers": [], "decoder_sparse_step": 2}, 4),
        ],
    )
    def test_16_dense_layers_between_mixtures(self, fields: dict[str, Any], layers: int) -> None:
        found = read(fields).experts
        assert found is not None and found.layers == layers

    def test_16_shared_experts_count_as_mlp(self) -> None:
        with_one = parse_config(LATENT, name="m", where="config.json").parameters
        without_any = parse_config({**LATENT, "n_shared_experts": 0}, name="m", where="config.json").parameters
        assert with_one.mlp - without_any.mlp == 3 * 3 * 512 * 128
        assert with_one.experts == without_any.experts == 3 * 16 * 3 * 512 * 128

    def test_16_experts_in_a_type_that_has_none_are_not_guessed(self) -> None:
        with pytest.raises(NotModelledError):
            dense("llama", num_local_experts=8)

    def test_10_a_head_width_of_its_own_is_not_hidden_over_heads(self) -> None:
        assert dense("qwen3", head_dim=128).attention[0].k_dim == 128
        wide = {
            group.kind: group.k_dim for group in hybrid("gemma4_text", num_kv_shared_layers=0, head_dim=64, global_head_dim=128).attention
        }
        assert wide == {"sliding": 64, "full": 128}

    @pytest.mark.parametrize(
        ("model_type", "attends", "keeps"),
        [
            ("qwen3_5_text", 1, 3),
            ("kimi_linear", 1, 3),
            ("minimax_m1", 1, 3),
            ("jamba", 1, 3),
            ("falcon_h1", 4, 4),
            ("granitemoehybrid", 1, 3),
            ("nemotron_h", 1, 1),
            ("lfm2", 1, 3),
            ("mamba2", 0, 4),
            ("rwkv6", 0, 4),
        ],
    )
    def test_15_hybrids_cache_on_the_layers_that_attend_and_keep_states_on_the_others(
        self, model_type: str, attends: int, keeps: int
    ) -> None:
        model = hybrid(model_type)
        assert (sum(group.layers for group in model.attention), sum(group.layers for group in model.states)) == (attends, keeps)
        assert (kv_bytes(model) > 0) == (attends > 0) and sum(parts(model)) > 0

    def test_15_an_interval_and_a_list_say_the_same(self) -> None:
        listed = hybrid("qwen3_5_text", layer_types=["linear_attention"] * 3 + ["full_attention"])
        assert listed == hybrid("qwen3_5_text", full_attention_interval=4)

    def test_15_the_type_a_state_is_kept_in_is_read(self) -> None:
        assert hybrid("qwen3_5_text").state_dtype == "float32"
        assert hybrid("nemotron_h", mamba_ssm_cache_dtype="bfloat16").state_dtype == "bfloat16"
        assert hybrid("jamba").state_dtype is None
        with pytest.raises(InputError, match="int8"):
            hybrid("qwen3_5_text", mamba_ssm_dtype="int8")

    def test_16_experts_of_a_width_of_their_own_need_a_way_there_and_back(self) -> None:
        latent, plain = hybrid("nemotron_h").parameters, hybrid("nemotron_h", moe_latent_size=None).parameters
        assert latent.experts * 2 == plain.experts
        assert latent.mlp - plain.mlp == 2 * 512 * 256

    def test_16_experts_without_weights_count_for_the_router_alone(self) -> None:
        model = hybrid("longcat_flash")
        assert model.experts is not None and (model.experts.count, model.experts.top_k) == (16, 4)  # 6 of 24, of which 16 work
        assert model.parameters.experts == 4 * 16 * 3 * 512 * 128

    def test_every_kind_is_told_apart_by_its_name(self) -> None:
        assert {hybrid(model_type).family for model_type in HYBRIDS} == set(HYBRIDS)
