"""Configurations that are wrong: each is one clear line, or a model all the same, and never a traceback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model_configs import GOOD, HYBRIDS, LATENT, PARAMS, dense, kv_bytes, read, without

from breakeven.errors import BreakevenError, InputError, NotModelledError
from breakeven.messages import LANGUAGES, text
from breakeven.origin.huggingface import parse_config


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
        for model_type in ("zamba2", "rwkv7", "recurrent_gemma", "bailing_moe_linear"):
            with pytest.raises(NotModelledError) as caught:
                dense(model_type)
            line = text(caught.value.message, language)
            assert "\n" not in line and model_type in line and text(caught.value.message.values["kind"], language) in line  # type: ignore[arg-type]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-2, 70), max_size=9),
    st.lists(st.sampled_from(["full_attention", "sliding_attention", "sparse", "mamba", "linear_attention", "conv", "x"]), max_size=9),
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
    "sparse_attention_config",
    "linear_attn_config",
    "block_configs",
    "moe",
    "dim",
)


BASES = [GOOD, LATENT, PARAMS, *({"model_type": model_type, **config} for model_type, config in HYBRIDS.items())]
NAMES = sorted({name for base in BASES for name in base})


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A good configuration of any kind with some fields changed and some gone, most of them its own."""
    base = draw(st.sampled_from(BASES))
    own = st.sampled_from(sorted(base))
    changes = draw(st.dictionaries(st.one_of(own, own, st.sampled_from([*NAMES, *EXTRA])), VALUES, max_size=4))
    return without({**base, **changes}, *draw(st.lists(own, max_size=2)))


@example(config={**GOOD, "quantization_config": {"quant_method": "fp8", "ignore": ["re:("]}})
@given(config=mutated())
@settings(max_examples=400)
def test_any_mutation_of_a_good_configuration_is_a_model_or_an_error_of_ours(config: dict[str, Any]) -> None:
    try:
        model = parse_config(config, name="m", where="config.json")
    except BreakevenError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert model.parameters.total > 0
        attending, keeping = sum(group.layers for group in model.attention), sum(group.layers for group in model.states)
        assert max(attending, keeping) <= model.layers <= attending + keeping + model.part_blocks
        assert kv_bytes(model) >= 0 and all(group.q_heads % group.kv_heads == 0 for group in model.attention)


@pytest.mark.parametrize("base", BASES, ids=lambda base: str(base.get("model_type", "params.json")))
def test_any_one_field_gone_or_wrong_is_a_model_or_one_line(base: Mapping[str, Any]) -> None:
    for name in base:
        for config in (without(base, name), *({**base, name: wrong} for wrong in (None, "x", -1, [], {}, 10**30, True, [{}]))):
            try:
                parse_config(config, name="m", where="config.json")
            except BreakevenError as error:
                assert "\n" not in str(error)
