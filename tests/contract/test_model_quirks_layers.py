"""The quirks of configurations, by the numbers of the list of quirks: 19 to 33, which layers are what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from model_configs import GOOD, LATENT, MIXED, SMALL, dense, hybrid, kv_bytes, parts, read, without

from breakeven.errors import InputError, NotModelledError
from breakeven.ledger.memory import entries, entries_attended
from breakeven.origin.huggingface import parse_config
from breakeven.spec.model import Model

SUPER_49B = (
    (2.625, *(5.25,) * 5, 2.625, 2.625, *(5.25,) * 3, 3.28125, *(5.25,) * 30, *(2.625,) * 5, 1.3125, 2.625, *(1.3125,) * 3, 5.25)
    + (1.3125, 1.0, 1.0, 1.3125, 1.0, 1.0, 1.0, 1.3125, 1.3125, 0.5, 0.5, 1.0, 1.0, 0.5, 0.5, 1.0, 0.5, 0.5)
    + (5.25,) * 9
)
"""Multiples of the MLPs of Nemotron-Super-49B as published, but for layers 1 to 5 and 42 to 46, of which only their sum is known."""


@pytest.fixture(scope="module")
def rows(shared: Path) -> dict[str, dict[str, Any]]:
    lines = (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in map(json.loads, lines)}


def parsed(config: dict[str, Any]) -> Model:
    return parse_config(config, name="m", where="config.json")


def kinds(model: Model) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in model.attention:
        found[group.kind] = found.get(group.kind, 0) + group.layers
    return found


class TestWhichLayersAreWhat:
    @pytest.mark.parametrize(
        ("model_type", "word"),
        [
            ("qwen3_5_text", "linear_attention"),
            ("lfm2", "conv"),
            ("granitemoehybrid", "mamba"),
            ("minimax_m1", "linear_attention"),
            ("kimi_linear", "linear_attention"),
        ],
    )
    def test_rule_19_words_of_layers_that_keep_a_state(self, model_type: str, word: str) -> None:
        model = hybrid(model_type, layer_types=[word, "full_attention", word, word, "full_attention"])  # one more for MTP
        assert (sum(g.layers for g in model.attention), sum(s.layers for s in model.states)) == (1, 3)

    def test_rule_19_words_of_layers_that_select(self) -> None:
        assert kinds(hybrid("deepseek_v32", layer_types=["indexed_attention"] * 4)) == {"mla": 4}
        words = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"]
        by_word = hybrid("deepseek_v4", compress_ratios=None, layer_types=words)
        assert by_word.attention == hybrid("deepseek_v4").attention
        m3 = hybrid("minimax_m3", sparse_attention_config=None, layer_types=["full_attention", *["minimax_m3_sparse"] * 3])
        assert sorted(group.selected or 0 for group in m3.attention) == [0, 2048]

    def test_rule_19_an_unknown_word_is_refused_by_name(self) -> None:
        for model_type in ("llama", "qwen3_5_text", "deepseek_v4"):
            config = {"model_type": "llama", **SMALL} if model_type == "llama" else None
            with pytest.raises(NotModelledError, match="telepathic"):
                words = ["telepathic"] * 4
                parsed({**config, "layer_types": words}) if config else hybrid(model_type, compress_ratios=None, layer_types=words)

    @pytest.mark.parametrize(
        ("model_type", "sliding"),
        [
            ("gemma2", 6),
            ("gemma3_text", 10),
            ("cohere2", 9),
            ("olmo3", 9),
            ("exaone4", 9),
            ("gpt_oss", 6),
            ("gemma3n_text", 10),
            ("gemma4_text", 10),
        ],
    )
    def test_rule_20_patterns_of_the_class_where_no_list_says_so(self, model_type: str, sliding: int) -> None:
        more = {**MIXED, "sliding_window": 64, "num_kv_shared_layers": 0, "num_hidden_layers": 12}
        assert (
            kinds(parsed({"model_type": model_type, **SMALL, **(more if model_type == "gpt_oss" else without(more, *MIXED))}))["sliding"]
            == sliding
        )

    def test_rule_20_every_fourth_layer_of_qwen3_next_is_full_and_gemma4_ends_full(self) -> None:
        assert kinds(hybrid("qwen3_next", num_hidden_layers=12)) == {"full": 3}
        assert kinds(hybrid("gemma4_text", num_kv_shared_layers=0, num_hidden_layers=8))["full"] == 2

    def test_rule_21_a_window_counts_only_where_it_is_switched_on(self, rows: dict[str, dict[str, Any]]) -> None:
        assert kinds(parsed(rows["qwen2.5-7b"]["hf_config"])) == {"full": 28}
        assert kinds(read(use_sliding_window=True, max_window_layers=3)) == {"full": 3, "sliding": 5}
        assert kinds(read(use_sliding_window=True, max_window_layers=None)) == {"full": 8}  # 28 by default

    def test_rule_22_missing_null_and_a_value_are_three_things(self) -> None:
        assert [kinds(dense("mistral", **fields)) for fields in ({}, {"sliding_window": None})] == [{"sliding": 4}, {"full": 4}]
        for model_type in ("phi3", "starcoder2", "ministral3"):
            assert kinds(dense(model_type, num_key_value_heads=8)) == kinds(dense(model_type, num_key_value_heads=8, sliding_window=None))
            assert kinds(dense(model_type, num_key_value_heads=8, sliding_window=2047)) == {"sliding": 4}
        assert kinds(dense("phi3", sliding_window=262144, max_position_embeddings=131072)) == {"full": 4}

    def test_rule_23_llama_4_in_chunks_and_its_mlps(self) -> None:
        config = {"model_type": "llama4_text", **SMALL, **MIXED, "intermediate_size_mlp": 2048, "interleave_moe_layer_step": 2}
        model = parsed(config)
        assert kinds(model) == {"chunked": 3, "full": 1} and model.attention[0].window == 8192
        assert kinds(parsed({**config, "no_rope_layers": [1, 0, 1, 0]})) == {"chunked": 2, "full": 2}
        assert model.experts is not None and model.experts.layers == 2
        assert model.parameters.mlp == 2 * (3 * 512 * 2048) + 2 * (3 * 512 * 1024 + 16 * 512)

    def test_rule_24_sliding_layers_with_heads_of_their_own(self, rows: dict[str, dict[str, Any]]) -> None:
        mimo = {group.kind: group for group in parsed(rows["mimo-v2-flash"]["hf_config"]).attention}
        assert (mimo["full"].k_dim, mimo["full"].v_dim) == (192, 128) and mimo["sliding"].kv_heads != mimo["full"].kv_heads
        step = {group.kind: group.q_heads for group in parsed(rows["step-3.5-flash"]["hf_config"]).attention}
        assert step == {"full": 64, "sliding": 96}

    def test_rule_25_gemma_4_wide_full_layers_and_keys_as_values(self) -> None:
        plain, equal = (hybrid("gemma4_text", num_kv_shared_layers=0, global_head_dim=512, attention_k_eq_v=flag) for flag in (False, True))
        assert kv_bytes(plain) == kv_bytes(equal) and plain.parameters.attention - equal.parameters.attention == 2 * 512 * 512
        kv = hybrid("gemma4_text", num_kv_shared_layers=0, num_global_key_value_heads=1).attention
        assert {group.kind: group.kv_heads for group in kv} == {"sliding": 2, "full": 1}

    @pytest.mark.parametrize("model_type", ["gemma3n_text", "gemma4_text"])
    def test_rule_25_the_last_layers_keep_no_cache_of_their_own(self, model_type: str) -> None:
        model, alone = hybrid(model_type), hybrid(model_type, num_kv_shared_layers=0)
        assert sum(group.layers for group in model.attention if group.shares_kv) == 2
        assert kv_bytes(model) < kv_bytes(alone) and model.parameters.attention < alone.parameters.attention

    def test_rule_25_wide_mlps_and_a_mixture_beside_them(self) -> None:
        narrow = hybrid("gemma4_text", use_double_wide_mlp=False).parameters.mlp
        assert hybrid("gemma4_text").parameters.mlp - narrow == 2 * 3 * 512 * 1024
        both = hybrid("gemma4_text", enable_moe_block=True, use_double_wide_mlp=False, **MIXED).parameters
        assert both.experts == 4 * 16 * 3 * 512 * 128 and both.mlp == narrow + 4 * 16 * 512

    def test_rule_26_every_second_layer_of_hunyuan_large_uses_the_cache_of_the_one_before(self) -> None:
        shared, alone = hybrid("hunyuan_v1_moe"), hybrid("hunyuan_v1_moe", use_cla=False)
        assert kv_bytes(shared) * 2 == kv_bytes(alone)
        assert not any(group.shares_kv for group in alone.attention)
        assert kv_bytes(dense("hunyuan_v1_dense", cla_share_factor=2, use_cla=False)) == kv_bytes(dense("hunyuan_v1_dense"))

    def test_rule_27_lists_periods_letters_and_indices(self) -> None:
        assert kinds(hybrid("minimax_m1", attn_type_list=[1, 0, 1, 1])) == {"full": 3}
        letters = hybrid("nemotron_h", hybrid_override_pattern="MM*-*EM-", num_hidden_layers=8)
        assert (kinds(letters), letters.states[0].layers, letters.part_blocks) == ({"full": 2}, 3, 8)
        assert letters.experts is not None and letters.experts.layers == 1
        assert kinds(hybrid("jamba", attn_layer_period=2, attn_layer_offset=1)) == {"full": 2}
        mixed = hybrid("jamba", expert_layer_period=4, expert_layer_offset=3).experts
        assert mixed is not None and mixed.layers == 1
        assert kinds(hybrid("lfm2", full_attn_idxs=[0, 3])) == {"full": 2}
        both = hybrid("falcon_h1")
        assert (kinds(both), both.states[0].layers, both.part_blocks) == ({"full": 4}, 4, 0)

    def test_rule_27_the_lists_of_kimi_count_from_one(self) -> None:
        written = {"num_heads": 8, "head_dim": 64, "short_conv_kernel_size": 4}
        assert kinds(hybrid("kimi_linear", linear_attn_config={**written, "kda_layers": [1, 2], "full_attn_layers": [3, 4]})) == {"mla": 2}
        with pytest.raises(InputError, match="counted from 1"):
            hybrid("kimi_linear", linear_attn_config={**written, "kda_layers": [0, 1, 2], "full_attn_layers": [3]})

    def test_rule_28_blocks_that_a_search_has_chosen(self) -> None:
        model = hybrid("nemotron-nas")
        # 5.25 of 512 is 1792 wide, 1.0 is 341 and so 512; the last block is two square matrices.
        assert model.parameters.mlp == 3 * 512 * (1792 + 512) + 512 * 512
        assert [group.layers for group in model.attention] == [1, 1] and model.part_blocks == 3

    def test_rule_28_the_published_shape_of_nemotron_super(self, rows: dict[str, dict[str, Any]]) -> None:
        row = rows["nemotron-super-49b"]
        there = {index for low, high in _ranges(row["attention"][0]["layers"]) for index in range(low, high + 1)}
        blocks = [
            {
                "attention": {"no_op": index not in there, "n_heads_in_group": 8 if index in there else None},
                "ffn": {"ffn_mult": width, "no_op": False},
            }
            for index, width in enumerate(SUPER_49B)
        ]
        model = parsed({**row["hf_config"], "block_configs": blocks})
        assert model.parameters.total == row["total_params"] == 49_867_145_216
        assert kv_bytes(model) == row["kv_bytes_per_token_bf16"] and model.part_blocks == 31

    @pytest.mark.parametrize(
        ("fields", "layers"),
        [
            ({"first_k_dense_replace": 3}, 5),
            ({"num_dense_layers": 2}, 6),
            ({"moe_layer_start_index": 1, "moe_layer_end_index": 4, "moe_layer_interval": 1}, 4),
            ({"moe_layers_enum": "2, 3,7"}, 3),
            ({"moe_layer_freq": [0, 1, 1, 0, 1, 1, 1, 1]}, 6),
            ({"moe_layer_freq": 2}, 4),
            ({"mlp_layer_types": ["dense"] * 7 + ["sparse"]}, 1),
            ({"decoder_sparse_step": 2, "mlp_only_layers": [1]}, 3),
        ],
    )
    def test_rule_29_dense_layers_among_mixtures(self, fields: dict[str, Any], layers: int) -> None:
        base = {**without(GOOD, "decoder_sparse_step", "mlp_only_layers"), "model_type": "hunyuan_v1_moe"}
        found = parsed({**base, **fields}).experts
        assert found is not None and found.layers == layers

    def test_rule_30_heads_mean_nothing_to_mla(self) -> None:
        plain = parsed(dict(LATENT)).attention
        assert plain == parsed({**LATENT, "num_key_value_heads": 3, "head_dim": 72}).attention
        assert parsed({**LATENT, "q_lora_rank": None}).parameters != parsed(without(LATENT, "q_lora_rank")).parameters
        assert kv_bytes(parsed(dict(LATENT))) == 4 * 160 * 2

    def test_rule_31_an_indexer_keeps_a_key_where_it_runs(self) -> None:
        every, some = hybrid("deepseek_v32"), hybrid("glm_moe_dsa")
        assert kv_bytes(every) == 4 * (160 + 32) * 2
        assert kv_bytes(some) == (4 * 160 + 2 * 32) * 2
        assert {group.selected for group in some.attention} == {64}
        # The MTP layer has an indexer of its own, whatever the last layer does.
        assert some.mtp_parameters == hybrid("glm_moe_dsa", indexer_types=["full"] * 4).mtp_parameters

    def test_rule_31_a_frequency_says_what_the_list_says(self, rows: dict[str, dict[str, Any]]) -> None:
        config = rows["glm-5.2"]["hf_config"]
        assert parsed(without(config, "indexer_types")).attention == parsed(config).attention

    def test_rule_32_compressed_entries_beside_a_window(self) -> None:
        model = hybrid("deepseek_v4")
        near, quarter, long = sorted(model.attention, key=lambda group: group.compression or 0)
        assert (near.layers, quarter.layers, long.layers) == (1, 2, 1)
        assert (near.window, near.compression, near.selected) == (128, None, None)
        assert (quarter.compression, quarter.selected, quarter.index_dim) == (4, 64, 32)
        assert (long.compression, long.selected, long.index_dim) == (128, None, 0)
        assert kv_bytes(model) == 2 * (2 * (128 + 32) / 4 + 128 / 128)
        assert float(entries(quarter, 4096)) == 128 + 1024 and float(entries_attended(quarter, 4096)) == 128 + 64

    def test_rule_32_experts_in_four_bits_whatever_the_quantisation_says(self, rows: dict[str, dict[str, Any]]) -> None:
        written = {"expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
        stored = hybrid("deepseek_v4", **written).stored
        assert (stored["attention"], stored["experts"]) == ("fp8", "mxfp4")
        assert parsed(rows["deepseek-v4-pro"]["hf_config"]).parameters.total == rows["deepseek-v4-pro"]["total_params"]

    def test_rule_33_block_sparse_layers_keep_all_and_read_what_they_select(self) -> None:
        full, sparse = sorted(hybrid("minimax_m3").attention, key=lambda group: group.selected or 0)
        assert (full.layers, sparse.layers, sparse.selected, sparse.index_dim) == (1, 3, 64, 32)
        assert kv_bytes(hybrid("minimax_m3")) == 2 * (4 * 2 * 2 * 128 + 3 * 32)

    def test_states_are_those_of_their_formulas(self) -> None:
        assert parts(hybrid("qwen3_5_text")) == (3 * 8 * 128 * 128, 3 * (2 * 512 + 1024) * 3)
        assert parts(hybrid("rwkv6")) == (4 * 512 * 64, 4 * 2 * 512)


def _ranges(text: str) -> list[tuple[int, int]]:
    return [(int(part.split("-")[0]), int(part.split("-")[-1])) for part in text.split(",")]
