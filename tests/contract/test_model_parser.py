"""The parser of config.json against every published configuration of the reference table, and against bad ones."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from breakeven.errors import BreakevenError, InputError, NotModelledError
from breakeven.messages import LANGUAGES, text
from breakeven.origin.config_file import load_config
from breakeven.origin.huggingface import parse_config
from breakeven.origin.json_file import LARGEST_CONFIG_BYTES
from breakeven.spec.model import Model

MODELLED = {"full", "sliding", "chunked", "mla"}
READ, REFUSED = 174, 44
"""How the table splits today; a change is told by this test, not passed over."""

REFUSED_TYPES = ("jamba", "qwen3_5_text", "deepseek_v32", "gemma3n_text", "nemotron-nas", "rwkv6", "lfm2", "minimax_m3", "deepseek_v4")
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


def read(changes: Mapping[str, Any] | None = None, **more: Any) -> Model:
    return parse_config({**GOOD, **(changes or {}), **more}, name="m", where="config.json")


def dense(model_type: str = "llama", **more: Any) -> Model:
    shape = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 3000}
    return parse_config({"model_type": model_type, **shape, **more}, name="m", where="config.json")


def without(config: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in names}


def kv_bytes(model: Model) -> int:
    return sum(group.layers * group.kv_heads * (group.k_dim + group.v_dim) * 2 for group in model.attention)


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()]


def each_read(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Model]]:
    for row in rows:
        try:
            yield row, parse_config(row["hf_config"], name=row["name"], where=row["name"])
        except NotModelledError:
            continue


class TestTheReferenceTable:
    def test_every_line_is_read_or_refused_by_name_and_the_split_is_told(
        self, rows: list[dict[str, Any]], record_property: Callable[[str, object], None]
    ) -> None:
        refused: list[NotModelledError] = []
        for row in rows:
            try:
                parse_config(row["hf_config"], name=row["name"], where=row["name"])
            except NotModelledError as refusal:  # any other exception fails the test
                refused.append(refusal)
        kinds = Counter(text(refusal.message.values["kind"]) for refusal in refused)  # type: ignore[arg-type]
        record_property("split", f"{len(rows) - len(refused)} read, {len(refused)} refused: {dict(kinds)}")
        assert (len(rows) - len(refused), len(refused)) == (READ, REFUSED)

    def test_refuses_no_line_whose_layers_are_all_modelled(self, rows: list[dict[str, Any]]) -> None:
        names = {row["name"] for row, _ in each_read(rows)}
        plain = {row["name"] for row in rows if {group["kind"] for group in row["attention"]} <= MODELLED}
        borrowing = {row["name"] for row in rows if any("kv_shared_with_earlier_layer" in group for group in row["attention"])}
        assert plain - names == borrowing
        assert names <= plain

    def test_parameters_agree_within_a_thousandth(self, rows: list[dict[str, Any]]) -> None:
        far = {row["name"]: model.parameters.total / row["total_params"] for row, model in each_read(rows)}
        assert {name: ratio for name, ratio in far.items() if abs(ratio - 1) > 1e-3} == {}

    def test_each_class_of_parameters_agrees_within_a_thousandth_of_the_model(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            ours, theirs, slack = model.parameters, row["param_breakdown"], 1e-3 * row["total_params"]
            assert ours.embedding == theirs["embed"] and ours.head == theirs["lm_head"], row["name"]
            assert abs(ours.attention - theirs["attention_and_mixers"]) <= slack, row["name"]
            assert abs(ours.mlp + ours.experts - theirs["dense_mlp"] - theirs["moe"]) <= slack, row["name"]

    def test_kv_bytes_per_token_agree_exactly(self, rows: list[dict[str, Any]]) -> None:
        assert {row["name"]: kv_bytes(model) - row["kv_bytes_per_token_bf16"] for row, model in each_read(rows)} == {
            row["name"]: 0 for row, _ in each_read(rows)
        }

    def test_layers_attend_as_the_table_says(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            ours = sorted((group.kind, group.layers, group.window or 0) for group in model.attention)
            assert ours == sorted((group["kind"], group["n"], group.get("window") or 0) for group in row["attention"]), row["name"]

    def test_experts_are_those_of_the_table(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            moe, ours = row["moe"], model.experts
            found = None if ours is None else (ours.count, ours.top_k, ours.layers)
            assert found == (None if moe is None else (moe["n_routed_experts"], moe["top_k"], moe["n_moe_layers"])), row["name"]

    def test_mtp_layers_agree_but_for_copies_of_the_embedding_and_head(self, rows: list[dict[str, Any]]) -> None:
        for row, model in each_read(rows):
            assert model.mtp_layers == (row["mtp_layers"] if row["mtp_params"] else 0), row["name"]
            copies = model.mtp_layers * model.vocabulary * model.hidden
            apart = min(abs(row["mtp_params"] - model.mtp_parameters - count * copies) for count in (0, 1, 2))
            assert apart <= 1e-3 * model.mtp_parameters, row["name"]


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


class TestStorage:
    @pytest.mark.parametrize(
        ("written", "stored"),
        [
            ({"quant_method": "fp8", "weight_block_size": [128, 128]}, {"attention": "fp8", "mlp": "fp8", "experts": "fp8"}),
            ({"quant_method": "mxfp4"}, {"experts": "mxfp4"}),
            ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, dict.fromkeys(("attention", "mlp", "experts"), "int4_g64")),
            ({"quant_method": "gptq", "bits": 8, "group_size": 128}, dict.fromkeys(("attention", "mlp", "experts"), "int8")),
            (
                {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
                dict.fromkeys(("attention", "mlp", "experts"), "nf4"),
            ),
            ({"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "*self_attn*"]}, dict.fromkeys(("mlp", "experts"), "nvfp4")),
            (
                {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}},
                dict.fromkeys(("attention", "mlp", "experts"), "fp8"),
            ),
            (
                {"quant_method": "fp8", "modules_to_not_convert": ["self_attn", "lm_head", "mlp.gate"]},
                dict.fromkeys(("mlp", "experts"), "fp8"),
            ),
            (
                {
                    "quant_method": "compressed-tensors",
                    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*mlp\\.(gate|up|down)_proj.*", "re:.*shared_experts.*"],
                    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
                },
                {"experts": "int4_g32"},
            ),
            (
                {
                    "quant_method": "compressed-tensors",
                    "config_groups": {
                        "group_0": {"targets": ["re:.*experts.*"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}}
                    },
                },
                {"experts": "nvfp4"},
            ),
            ({"bits": 4, "group_size": 64}, dict.fromkeys(("attention", "mlp", "experts", "head", "embedding"), "int4_g64")),
        ],
    )
    def test_formats_are_read_by_tensor_class(self, written: dict[str, Any], stored: dict[str, str]) -> None:
        assert read(quantization_config=written).stored == stored

    @pytest.mark.parametrize(
        "written",
        [
            {"quant_method": "quark"},
            {"quant_method": "gptq", "bits": 3, "group_size": 128},
            {"quant_algo": "MIXED_PRECISION"},
            {"quant_method": "compressed-tensors", "format": "pack-quantized"},
            {"quant_method": "fp8", "kv_cache_scheme": "int2"},
            {"quant_method": "gptq", "bits": 4, "group_size": -1},
        ],
    )
    def test_other_formats_are_refused_by_name(self, written: dict[str, Any]) -> None:
        with pytest.raises(NotModelledError):
            read(quantization_config=written)

    @pytest.mark.parametrize(
        ("written", "scheme"),
        [
            ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, "fp8"),
            ({"kv_cache_quant_algo": "FP8"}, "fp8"),
            ({"kv_cache_scheme": None}, None),
            ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, "int8"),
        ],
    )
    def test_the_kv_scheme_of_a_checkpoint_is_kept(self, written: dict[str, Any], scheme: str | None) -> None:
        assert read(quantization_config={"quant_method": "fp8", **written}).kv_scheme == scheme


class TestBadConfigurations:
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 0, 10**12, "64", [64], {}, True, 3.5])
    @pytest.mark.parametrize("field", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "num_experts"])
    def test_a_number_that_is_none_names_its_field(self, field: str, value: object) -> None:
        with pytest.raises(InputError, match=field):
            read({field: value})

    def test_all_missing_fields_are_named_at_once(self) -> None:
        with pytest.raises(InputError) as caught:
            parse_config({"model_type": "llama", "num_attention_heads": 8}, name="m", where="config.json")
        assert all(name in str(caught.value) for name in ("num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size"))

    def test_heads_that_do_not_divide(self) -> None:
        with pytest.raises(InputError, match="8 attention heads cannot share 3 KV heads"):
            read(num_key_value_heads=3)
        with pytest.raises(InputError, match="head_dim"):
            dense("llama", num_attention_heads=7)

    def test_an_unknown_type_is_refused_though_its_fields_look_plain(self) -> None:
        with pytest.raises(NotModelledError, match="new_llm_9000"):
            dense("new_llm_9000")

    @pytest.mark.parametrize(
        "fields",
        [
            {"index_topk": 2048},
            {"layer_types": ["linear_attention"] * 4},
            {"num_kv_shared_layers": 2},
            {"use_cla": True},
            {"linear_attn_config": {"kda_layers": [1]}},
            {"layer_types": ["conv"] * 4},
            {"block_configs": [{}]},
        ],
    )
    def test_a_kind_not_modelled_is_refused_inside_a_known_type(self, fields: dict[str, Any]) -> None:
        with pytest.raises(NotModelledError):
            dense("llama", **fields)

    def test_what_is_written_with_line_breaks_stays_on_one_line(self) -> None:
        for fields in ({"model_type": "a\nb"}, {"layer_types": ["a\nb"] * 4}, {"quantization_config": {"quant_method": "a\nb"}}):
            with pytest.raises(NotModelledError) as caught:
                dense(**fields)
            assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_every_refusal_of_a_type_is_one_line_that_names_the_kind(self, language: str) -> None:
        for model_type in REFUSED_TYPES:
            with pytest.raises(NotModelledError) as caught:
                dense(model_type)
            line = text(caught.value.message, language)
            assert "\n" not in line and model_type in line and text(caught.value.message.values["kind"], language) in line  # type: ignore[arg-type]


class TestBadFiles:
    def test_a_file_and_its_folder_read_alike(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(GOOD), encoding="utf-8")
        assert load_config(tmp_path).parameters == load_config(tmp_path / "config.json").parameters == read().parameters
        assert load_config(tmp_path).name == tmp_path.name

    def test_modelopt_keeps_its_quantisation_in_a_file_beside(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps(without(GOOD, "quantization_config")), encoding="utf-8")
        beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
        (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
        model = load_config(tmp_path)
        assert model.stored["attention"] == "fp8" and model.kv_scheme == "fp8"

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[1, 2]", b"null", b"\xff\xfe\x00", b"[" * 200_000, b'{"model_type": "llama"}', b"{}", b"1" * 5000]
    )
    def test_what_is_no_configuration_is_one_clear_error(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "config.json"
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_config(path)
        assert "config.json" in str(caught.value) and "\n" not in str(caught.value)

    def test_a_gigabyte_is_refused_unread(self, tmp_path: Path) -> None:
        path = tmp_path / "config.json"
        with path.open("wb") as file:
            file.truncate(10**9)  # sparse: it takes no room, and reading it would take a second
        with pytest.raises(InputError, match="1 GB"):
            load_config(path)
        assert LARGEST_CONFIG_BYTES < 10**9

    def test_a_loop_of_links_a_missing_file_an_empty_folder_and_a_pipe(self, tmp_path: Path) -> None:
        loop, pipe = tmp_path / "loop.json", tmp_path / "pipe"
        loop.symlink_to(loop)
        os.mkfifo(pipe)
        for path in (loop, tmp_path / "absent.json", tmp_path, pipe, Path("a" * 5000), Path("nul\0byte")):
            with pytest.raises(InputError) as caught:
                load_config(path)
            assert "\n" not in str(caught.value)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-2, 70), max_size=9),
    st.lists(st.sampled_from(["full_attention", "sliding_attention", "sparse", "x"]), max_size=9),
    st.dictionaries(
        st.sampled_from(["quant_method", "bits", "ignore", "model_type", "attn_type"]),
        st.one_of(st.text(max_size=5), st.integers()),
        max_size=3,
    ),
)
EXTRA = (
    "layer_types",
    "mlp_layer_types",
    "moe_layer_freq",
    "moe_layers_enum",
    "no_rope_layers",
    "attn_config",
    "text_config",
    "attn_type_list",
)


@example(base=GOOD, changes={"quantization_config": {"quant_method": "fp8", "ignore": ["re:("]}}, dropped=[])
@given(
    base=st.sampled_from([GOOD, LATENT]),
    changes=st.dictionaries(st.sampled_from([*GOOD, *LATENT, *EXTRA]), VALUES, max_size=4),
    dropped=st.lists(st.sampled_from([*GOOD, *LATENT]), max_size=2),
)
def test_any_mutation_of_a_good_configuration_is_a_model_or_an_error_of_ours(
    base: Mapping[str, Any],
    changes: dict[str, Any],
    dropped: list[str],
) -> None:
    try:
        model = parse_config(without({**base, **changes}, *dropped), name="m", where="config.json")
    except BreakevenError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert model.parameters.total > 0 and sum(group.layers for group in model.attention) == model.layers
