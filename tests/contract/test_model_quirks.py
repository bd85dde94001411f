"""The quirks of configurations, by the numbers of the list of quirks: 1 to 18, where fields are and what they are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_configs import GOOD, HYBRIDS, LATENT, MIXED, PARAMS, SMALL, dense, hybrid, read, without

from breakeven.errors import InputError
from breakeven.origin.huggingface import parse_config
from breakeven.origin.mistral_params import is_params
from breakeven.spec.model import Model


@pytest.fixture(scope="module")
def rows(shared: Path) -> dict[str, dict[str, Any]]:
    lines = (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in map(json.loads, lines)}


def parsed(config: dict[str, Any], name: str = "m") -> Model:
    return parse_config(config, name=name, where="config.json")


def row_model(rows: dict[str, dict[str, Any]], name: str) -> Model:
    return parsed(rows[name]["hf_config"], name)


class TestWhereTheFieldsAre:
    @pytest.mark.parametrize("name", ["gemma-3-4b", "llama-4-scout", "qwen3.5-27b", "kimi-k2.5", "ministral-3-8b", "step-3"])
    def test_rule_1_the_text_half_of_a_wrapper_is_read(self, rows: dict[str, dict[str, Any]], name: str) -> None:
        assert row_model(rows, name).parameters.total == pytest.approx(rows[name]["total_params"], rel=1e-3)

    def test_rule_1_a_thinker_holds_a_wrapper_of_its_own_and_outer_fields_count(self) -> None:
        inner = {**without(GOOD, "tie_word_embeddings"), "model_type": "qwen3_moe"}
        omni = {"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": inner, "vision_config": {}}, "tie_word_embeddings": True}
        assert parsed(omni).tied and parsed(omni).layers == 8

    @pytest.mark.parametrize(
        "path", [("text_config",), ("llm_config",), ("language_config",), ("llm", "text_model"), ("brain",), ("a", "b")]
    )
    def test_rule_1_deeper_and_renamed_wrappers_are_looked_into(self, path: tuple[str, ...]) -> None:
        config: dict[str, Any] = {**SMALL, "model_type": "llama"}
        for name in reversed(path):
            config = {"model_type": "wrapper", name: config, "vision_config": {"num_hidden_layers": 2, "hidden_size": 64}}
        if path == ("a", "b"):  # two unknown names deep: nothing says which half it is
            with pytest.raises(InputError) as caught:
                parsed(config)
            assert "\n" not in str(caught.value)
        else:
            assert parsed(config).family == "llama" and parsed(config).layers == 4

    @pytest.mark.parametrize(
        ("outer", "inner"),
        [
            ("gemma3", "gemma3_text"),
            ("qwen3_5_moe", "qwen3_5_moe_text"),
            ("kimi_k25", "kimi_k2"),
            ("kimi_k3", "kimi_linear"),
            ("mistral3", "mistral"),
        ],
    )
    def test_rule_2_the_inner_type_decides_and_follows_from_the_outer_where_it_is_absent(self, outer: str, inner: str) -> None:
        config = {"kimi_linear": HYBRIDS["kimi_linear"], "kimi_k2": without(LATENT, "model_type")}.get(
            inner, {**SMALL, **(MIXED if "moe" in inner else {})}
        )
        assert parsed({"model_type": outer, "text_config": config}).family == inner
        assert parsed({"model_type": outer, "text_config": {**SMALL, "model_type": "llama"}}).family == "llama"

    def test_rule_3_a_nested_configuration_lists_only_what_differs_from_its_class(self, rows: dict[str, dict[str, Any]]) -> None:
        group = row_model(rows, "gemma-3-4b").attention[0]
        assert (group.q_heads, group.kv_heads, group.k_dim) == (8, 4, 256) and row_model(rows, "gemma-3-4b").vocabulary == 262208

    @pytest.mark.parametrize("model_type", ["qwen3_5_text", "gemma3n_text", "gemma4_text", "ministral3"])
    def test_rule_3_an_empty_nested_configuration_is_the_class(self, model_type: str) -> None:
        assert parsed({"model_type": "wrapper", "text_config": {"model_type": model_type}}).layers >= 30

    def test_rule_4_dtype_and_torch_dtype_are_one_and_rope_parameters_by_kind_do_no_harm(self) -> None:
        rope = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
        assert dense("llama", dtype="float16").dtype == dense("llama", torch_dtype="float16").dtype == "float16"
        assert dense("gemma2", rope_parameters=rope, num_key_value_heads=4).layers == 4

    def test_rule_5_params_json_is_read_by_the_same_count(self, rows: dict[str, dict[str, Any]]) -> None:
        config = rows["mistral-large-3-675b"]["hf_config"]
        params = {
            "dim": 7168, "n_layers": 61, "head_dim": 128, "hidden_dim": 16384, "n_heads": 128, "n_kv_heads": 128, "vocab_size": 131072,
            "tied_embeddings": False, "max_position_embeddings": 294912, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128, "kv_lora_rank": 512, "v_head_dim": 128,
            "moe": {"num_experts": 128, "num_experts_per_tok": 4, "expert_hidden_dim": 4096, "num_shared_experts": 1,
                    "first_k_dense_replace": 3},
        }  # fmt: skip
        ours, theirs = parsed(params), parsed(config)
        assert is_params(params) and not is_params(config)
        assert (ours.parameters, ours.attention, ours.experts) == (theirs.parameters, theirs.attention, theirs.experts)

    def test_rule_5_small_params_are_mistral_or_mixtral(self) -> None:
        mixed, plain = parsed(dict(PARAMS)), parsed(without(PARAMS, "moe"))
        assert mixed.experts is not None and mixed.experts.count == 8 and mixed.family == "mixtral"
        assert plain.family == "mistral" and plain.attention[0].kind == "full" and plain.attention[0].kv_heads == 2
        assert parsed({**without(PARAMS, "moe"), "sliding_window": 256}).attention[0].window == 256
        for name in ("dim", "n_heads", "vocab_size"):
            with pytest.raises(InputError):
                parsed({**without(PARAMS, name), "model_type": None} if name == "dim" else without(PARAMS, name))


class TestNamesOfTheSameThing:
    @pytest.mark.parametrize("name", ["num_hidden_layers", "num_layers", "n_layer", "n_layers"])
    def test_rule_6_layers(self, name: str) -> None:
        assert parsed({**without(SMALL, "num_hidden_layers"), "model_type": "llama", name: 3}).layers == 3

    def test_rule_6_the_list_of_blocks_counts_where_no_number_does(self, rows: dict[str, dict[str, Any]]) -> None:
        assert row_model(rows, "nemotron-3-ultra-550b-a55b").layers == 108
        blocks = ["mamba", "moe", "attention"]
        assert (
            parsed({**without({"model_type": "nemotron_h", **MIXED, **SMALL}, "num_hidden_layers"), "layers_block_type": blocks}).layers
            == 3
        )

    @pytest.mark.parametrize("name", ["hidden_size", "n_embd", "n_embed", "d_model"])
    def test_rule_7_width(self, name: str) -> None:
        assert parsed({**without(SMALL, "hidden_size"), "model_type": "llama", name: 256}).hidden == 256

    @pytest.mark.parametrize("name", ["num_attention_heads", "n_head", "n_heads", "num_heads"])
    def test_rule_7_heads(self, name: str) -> None:
        assert parsed({**without(SMALL, "num_attention_heads"), "model_type": "llama", name: 4}).attention[0].q_heads == 4

    @pytest.mark.parametrize("name", ["num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups"])
    def test_rule_8_kv_heads(self, name: str) -> None:
        assert parsed({**without(SMALL, "num_key_value_heads"), "model_type": "llama", name: 4}).attention[0].kv_heads == 4

    def test_rule_8_kv_heads_of_a_searched_block_are_heads_over_its_group(self) -> None:
        assert sorted(group.kv_heads for group in hybrid("nemotron-nas").attention) == [1, 2]

    @pytest.mark.parametrize("name", ["intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner", "block_ff_dim"])
    def test_rule_9_ffn(self, name: str) -> None:
        assert parsed({**without(SMALL, "intermediate_size"), "model_type": "llama", name: 700}).parameters.mlp == 4 * 3 * 512 * 700

    def test_rule_9_ffn_by_layer_by_ratio_and_not_at_all(self) -> None:
        assert hybrid("gemma3n_text", intermediate_size=[64, 64, 64, 128]).parameters.mlp < hybrid("gemma3n_text").parameters.mlp
        assert dense("gpt2", n_inner=None, intermediate_size=None, n_positions=64).parameters.mlp == 4 * (2 * 512 * 2048 + 2048 + 512)
        shape = without(SMALL, "intermediate_size")
        assert parsed({**shape, **MIXED, "model_type": "qwen3_5_moe_text"}).parameters.experts > 0

    def test_rule_10_vocabulary_and_the_longest_context(self) -> None:
        assert parsed({**without(SMALL, "vocab_size"), "model_type": "llama", "padded_vocab_size": 77}).vocabulary == 77
        for name in ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "model_max_length", "max_position_embedding"):
            assert dense("llama", **{name: 999}).max_context == 999
        assert dense("cohere", max_position_embeddings=8192, model_max_length=131072).max_context == 131072

    @pytest.mark.parametrize("name", ["head_dim", "attention_head_dim", "kv_channels"])
    def test_rule_11_width_of_a_head(self, name: str) -> None:
        assert dense("llama", **{name: 96}).attention[0].k_dim == 96

    @pytest.mark.parametrize("name", ["qwen3-0.6b", "mistral-nemo-12b", "gemma-7b", "gpt-oss-20b", "seed-oss-36b"])
    def test_rule_11_width_that_is_not_hidden_over_heads(self, rows: dict[str, dict[str, Any]], name: str) -> None:
        model = row_model(rows, name)
        assert model.attention[0].k_dim == rows[name]["head_dim"] != model.hidden / model.attention[0].q_heads

    @pytest.mark.parametrize("name", ["n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"])
    def test_rule_12_experts(self, name: str) -> None:
        found = parsed({**without(GOOD, "num_experts"), name: 32}).experts
        assert found is not None and found.count == 32

    @pytest.mark.parametrize(
        "name", ["num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts"]
    )
    def test_rule_13_experts_a_token(self, name: str) -> None:
        for written in (2, [2] * 8):
            found = parsed({**without(GOOD, "num_experts_per_tok"), name: written}).experts
            assert found is not None and found.top_k == 2

    def test_rule_14_width_of_an_expert_is_its_own_or_the_plain_one(self) -> None:
        listed = parsed({"model_type": "hunyuan_v1_moe", **SMALL, **MIXED, "moe_intermediate_size": [128] * 4})
        assert listed.parameters.experts == 4 * 16 * 3 * 512 * 128
        for model_type in ("mixtral", "gpt_oss", "minimax_m2", "phimoe", "granitemoe", "grok-1"):
            plain = parsed({"model_type": model_type, **without(SMALL, "torch_dtype"), **MIXED}).parameters.experts
            assert plain == pytest.approx(4 * 16 * 3 * 512 * 1024, rel=5e-3)

    @pytest.mark.parametrize(
        ("fields", "width"),
        [
            ({"n_shared_experts": 2}, 256),
            ({"num_shared_experts": 1}, 128),
            ({"num_shared_expert": [1] * 4}, 128),
            ({"moe_num_shared_experts": 3}, 384),
            ({"shared_expert_intermediate_size": 320}, 320),
            ({"share_expert_dim": 64}, 64),
            ({"moe_shared_expert_intermediate_size": 96}, 96),
            ({"shared_intermediate_size": 0}, 0),
            ({"n_shared_experts": None}, 0),
        ],
    )
    def test_rule_15_shared_experts(self, fields: dict[str, Any], width: int) -> None:
        without_any = parsed({"model_type": "hunyuan_v1_moe", **SMALL, **MIXED}).parameters.mlp
        assert parsed({"model_type": "hunyuan_v1_moe", **SMALL, **MIXED, **fields}).parameters.mlp - without_any == 4 * 3 * 512 * width

    def test_rule_15_a_shared_expert_of_qwen_has_a_gate(self) -> None:
        gated = parsed({"model_type": "qwen2_moe", **SMALL, **MIXED, "shared_expert_intermediate_size": 128}).parameters.mlp
        assert gated == 4 * (16 * 512 + 3 * 512 * 128 + 512)

    @pytest.mark.parametrize(("model_type", "field"), [("nemotron_h", "moe_latent_size"), ("kimi_linear", "routed_expert_hidden_size")])
    def test_rule_16_latent_experts_work_on_a_width_of_their_own(self, model_type: str, field: str) -> None:
        half, whole = hybrid(model_type, **{field: 256}).parameters, hybrid(model_type, **{field: None}).parameters
        mixed = hybrid(model_type).experts
        assert mixed is not None and whole.experts == 2 * half.experts
        assert half.mlp - whole.mlp == mixed.layers * 2 * 512 * 256

    @pytest.mark.parametrize(
        ("model_type", "field"),
        [
            ("deepseek_v32", "num_nextn_predict_layers"),
            ("qwen3_5_text", "mtp_num_hidden_layers"),
            ("minimax_m3", "num_nextn_predict_layers"),
        ],
    )
    def test_rule_17_mtp_by_any_of_its_names(self, model_type: str, field: str) -> None:
        assert [hybrid(model_type, **{field: count}).mtp_layers for count in (0, 1, 2)] == [0, 1, 2]

    def test_rule_17_modules_without_tensors_and_tensors_without_a_field_are_not_counted(self, rows: dict[str, dict[str, Any]]) -> None:
        assert parsed({"model_type": "minimax_m2", **SMALL, **MIXED, "use_mtp": True, "num_mtp_modules": 3}).mtp_layers == 0
        assert hybrid("qwen3_next").mtp_layers == 0
        assert row_model(rows, "mimo-v2-flash").mtp_layers == 0

    @pytest.mark.parametrize("name", ["tie_word_embeddings", "tie_embedding"])
    def test_rule_18_tie(self, name: str) -> None:
        for tied in (True, False):
            assert read(**{"tie_word_embeddings": None, name: tied}).tied is tied

    def test_latent_configurations_stay_as_they_were(self) -> None:
        assert parsed(dict(LATENT)).attention[0].selected is None
