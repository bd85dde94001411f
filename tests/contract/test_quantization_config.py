"""Every common way to write a quantisation down: formats by tensor class, and the bytes of the parts.

Rules are those of the reference notes on configurations (48-52), traps those of its notes on what operators trip over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model_configs import GOOD, PARAMS, read, without

from breakeven import api
from breakeven.errors import BreakevenError, InputError, NotModelledError
from breakeven.kernels import BY_STORED, weight_kernel
from breakeven.ledger.draft import draft_weight_bytes
from breakeven.origin.config_file import load_config
from breakeven.origin.huggingface import parse_config
from breakeven.origin.model_entry import FORMATS
from breakeven.spec.model import TENSOR_CLASSES, Model

ALL = ("attention", "mlp", "experts")
GROUP = {"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group", "symmetric": True}
FLOAT8 = {"num_bits": 8, "type": "float", "strategy": "channel"}
TOKEN8 = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}
NVFP4 = {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"}


def every(name: str, *more: str) -> dict[str, str]:
    return dict.fromkeys((*ALL, *more), name)


def size(model: Model, *, mtp: bool = False) -> float:
    """Bytes of the checkpoint: as stored, else 16 bit."""
    by_class = sum(model.stored_bytes.get(kind, 2.0 * getattr(model.parameters, kind)) for kind in TENSOR_CLASSES)
    return by_class + (model.stored_bytes.get("mtp", 2.0 * model.mtp_parameters) if mtp else 0.0)


def row(shared: Path, name: str) -> dict[str, Any]:
    lines = (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()
    return next(found for found in map(json.loads, lines) if found["name"] == name)


def quantised(shared: Path, name: str, written: Mapping[str, Any] | None) -> Model:
    return parse_config({**row(shared, name)["hf_config"], "quantization_config": written}, name=name, where=name)


FORMS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("49 fp8 by block", {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}, every("fp8")),
    ("49 fp8 per tensor", {"quant_method": "fp8", "weight_block_size": None, "activation_scheme": "static"}, every("fp8")),
    ("52 fbgemm", {"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]}, every("fp8")),
    ("50 mxfp4", {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}, {"experts": "mxfp4"}),
    ("52 gptq by column", {"quant_method": "gptq", "bits": 4, "group_size": -1, "desc_act": False, "sym": True}, every("int4")),
    ("52 gptq 8 bit", {"quant_method": "gptq", "bits": 8, "group_size": 32}, every("int8_weight_only")),
    ("52 gptq head", {"quant_method": "gptq", "bits": 4, "group_size": 64, "lm_head": True}, every("int4_g64", "head")),
    ("52 awq", {"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "zero_point": True, "version": "gemm"}, every("int4_g128")),
    ("52 auto-round", {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}, every("int4_g128")),
    ("hqq", {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}, every("int4_g64")),
    ("eetq", {"quant_method": "eetq", "weights": "int8"}, every("int8_weight_only")),
    ("52 bitsandbytes fp4", {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"}, every("nf4")),
    ("52 bitsandbytes 8", {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["lm_head"]}, every("int8")),
    ("51 no method", {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, every("fp8")),
    ("51 flat with producer", {"producer": {"name": "modelopt"}, "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}, every("nvfp4")),
    ("51 weights only", {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"}, every("nvfp4_weight_only")),
    ("51 nvfp4 awq", {"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ"}, every("nvfp4")),
    ("51 w4a8", {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, every("int4_g128")),
    (
        "51 mixed",
        {
            "quant_method": "modelopt",
            "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {
                **{f"model.layers.{i}.self_attn.qkv_proj": {"quant_algo": "FP8"} for i in range(8)},
                **{f"model.layers.{i}.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16} for i in range(8)},
            },
        },
        {"attention": "fp8", "experts": "nvfp4"},
    ),
    (
        "50 several groups",
        {
            "quant_method": "compressed-tensors",
            "format": "mixed-precision",
            "ignore": ["lm_head", "re:.*mlp.gate$"],
            "config_groups": {
                "group_0": {"targets": ["Linear"], "weights": FLOAT8, "input_activations": TOKEN8, "format": "float-quantized"},
                "group_1": {"targets": ["re:.*experts.*"], "weights": NVFP4, "input_activations": NVFP4, "format": "nvfp4-pack-quantized"},
            },
        },
        {"attention": "fp8", "mlp": "fp8", "experts": "nvfp4"},
    ),
    (
        "50 int8 with activations",
        {
            "quant_method": "compressed-tensors",
            "format": "int-quantized",
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8, "type": "int"}}},
        },
        every("int8"),
    ),
    (
        "50 weights alone",
        {"quant_method": "compressed-tensors", "format": "naive-quantized", "config_groups": {"group_0": {"weights": FLOAT8}}},
        every("fp8_weight_only"),
    ),
    ("50 no groups", {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": ["re:.*self_attn.*"]},
     {"mlp": "mxfp4", "experts": "mxfp4"}),
    (
        "52 quark",
        {
            "quant_method": "quark",
            "global_quant_config": {"weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32}, "input_tensors": {}},
            "layer_quant_config": {"*self_attn*": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, "input_tensors": {}}},
            "exclude": ["lm_head", "re:.*mlp.gate$"],
        },
        {"attention": "fp8", "mlp": "mxfp4", "experts": "mxfp4"},
    ),
    ("52 torchao word", {"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 64}},
     every("int4_g64")),
    (
        "52 torchao table",
        {
            "quant_method": "torchao",
            "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 128}, "_version": 1}},
            "include_input_output_embeddings": True,
        },
        every("int4_g128", "head", "embedding"),
    ),
    (
        "52 torchao by module",
        {
            "quant_method": "torchao",
            "quant_type": {
                "default": {
                    "_type": "ModuleFqnToConfig",
                    "_data": {
                        "module_fqn_to_config": {
                            "_default": {"_type": "Int8DynamicActivationInt4WeightConfig", "_data": {"group_size": 32}},
                            "model.embed_tokens": {
                                "_type": "IntxWeightOnlyConfig",
                                "_data": {"weight_dtype": {"_type": "torch.dtype", "_data": "int8"}, "granularity": {"_type": "PerAxis"}},
                            },
                            "lm_head": None,
                        }
                    },
                }
            },
        },
        {**every("int4_g32"), "embedding": "int8_weight_only"},
    ),
    ("48 mlx mode", {"bits": 4, "group_size": 32, "mode": "mxfp4"}, every("mxfp4", "head", "embedding")),
    ("48 mlx overrides", {"bits": 4, "group_size": 64, "lm_head": {"bits": 8, "group_size": 64}, "model.embed_tokens": False},
     {**every("int4_g64"), "head": "int8_weight_only"}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "written", "stored"), FORMS, ids=[form[0] for form in FORMS])
def test_every_form_is_read_by_tensor_class_rules_48_to_52(rule: str, written: dict[str, Any], stored: dict[str, str]) -> None:
    model = read(quantization_config=written)
    assert model.stored == stored
    assert set(stored.values()) <= set(FORMATS)
    assert all(weight_kernel(BY_STORED.get(name, name)).source for name in stored.values())


REFUSED = [
    ({"quant_method": "gptq", "bits": 2, "group_size": 128}, "bits=2"),
    ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "bits=3"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 48}, "group_size=48"),
    ({"quant_method": "aqlm", "in_group_size": 8}, "aqlm"),
    ({"quant_method": "exl2", "bits": 4.25}, "exl2"),
    ({"quant_method": "vptq"}, "vptq"),
    ({"quant_method": "higgs", "bits": 4}, "higgs"),
    ({"bits": 6, "group_size": 64}, "bits=6"),
    ({"quant_method": "torchao", "quant_type": "autoquant"}, "autoquant"),
    ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "int3", "qscheme": "per_group", "group_size": 32}}}, "int3"),
    ({"quant_method": "modelopt", "quant_algo": "W2A16"}, "W2A16"),
    ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "MIXED_PRECISION"),
    ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {"lm_head": {"quant_algo": "INT1"}}}, "INT1"),
    ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "data_type": "mx_fp"}, "mx_fp"),
    ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 3, "type": "int"}}}}, "num_bits=3"),
    ({"quant_method": "bitsandbytes"}, "bitsandbytes"),
]


@pytest.mark.parametrize(("written", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_what_has_no_kernel_family_is_refused_by_name_with_what_is_known(written: dict[str, Any], told: str) -> None:
    with pytest.raises(NotModelledError) as caught:
        read(quantization_config=written)
    line = str(caught.value)
    assert told in line and "nvfp4 and nf4 are" in line and "\n" not in line


class TestPlaces:
    WRITTEN: Mapping[str, Any] = {"quant_method": "fp8", "weight_block_size": [128, 128]}

    def test_48_inside_the_text_config(self) -> None:
        inner = {**without(GOOD, "quantization_config"), "model_type": "qwen3_vl_moe_text", "quantization_config": self.WRITTEN}
        model = parse_config({"model_type": "qwen3_vl", "text_config": inner}, name="m", where="config.json")
        assert model.stored == every("fp8")

    @pytest.mark.parametrize("nested", [True, False])
    def test_48_in_a_file_of_its_own_nested_or_flat(self, tmp_path: Path, nested: bool) -> None:
        own = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "*self_attn*"]}
        beside = {"producer": {"name": "modelopt", "version": "0.33"}, "quantization": own} if nested else own
        (tmp_path / "config.json").write_text(json.dumps(without(GOOD, "quantization_config")), encoding="utf-8")
        (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
        model = load_config(tmp_path)
        assert (model.stored, model.kv_scheme) == ({"mlp": "nvfp4", "experts": "nvfp4"}, "fp8")

    def test_48_mlx_writes_quantization(self) -> None:
        model = parse_config({**without(GOOD, "quantization_config"), "quantization": {"bits": 4, "group_size": 64}}, name="m", where="c")
        assert model.stored == every("int4_g64", "head", "embedding")

    def test_48_mistral_writes_it_into_params_json(self) -> None:
        written = {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}
        assert parse_config({**PARAMS, "quantization": written}, name="m", where="params.json").stored == {
            "attention": "fp8", "experts": "fp8"
        }  # fmt: skip
        with pytest.raises(NotModelledError, match="int5"):
            parse_config({**PARAMS, "quantization": {"qformat_weight": "int5"}}, name="m", where="params.json")

    def test_51_the_kv_scheme_by_every_name(self) -> None:
        forms = ({"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, {"kv_cache_quant_algo": "FP8"})
        assert {read(quantization_config={"quant_algo": "FP8", **form}).kv_scheme for form in forms} == {"fp8"}
        outputs = {"*k_proj": {"output_tensors": {"dtype": "fp8_e4m3"}}, "*v_proj": {"output_tensors": {"dtype": "fp8_e4m3"}}}
        weight = {"weight": {"dtype": "fp8_e4m3"}, "input_tensors": {}}
        quark = {"quant_method": "quark", "global_quant_config": weight, "kv_cache_quant_config": outputs}
        assert read(quantization_config=quark).kv_scheme == "fp8"


FILES: list[tuple[str, dict[str, Any], float, str]] = [
    ("qwen2.5-7b", {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}, 5.57e9,
     "Qwen/Qwen2.5-7B-Instruct-AWQ, size of its safetensors files, recalled"),
    ("llama-3.1-8b", {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": FLOAT8, "input_activations": TOKEN8}}}, 9.08e9,
     "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8, size of its safetensors files, recalled"),
    ("llama-3.1-8b", {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "format": "pack-quantized", "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": GROUP}}}, 5.7e9,
     "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16, size of its safetensors files, recalled"),
    ("minimax-m2", {"quant_method": "fp8", "weight_block_size": [128, 128]}, 230e9, "MiniMaxAI/MiniMax-M2, size of its files, recalled"),
    ("gpt-oss-20b", {"quant_method": "mxfp4"}, 13.76e9, "openai/gpt-oss-20b, size of its safetensors files, recalled"),
    ("gpt-oss-120b", {"quant_method": "mxfp4"}, 65.25e9, "openai/gpt-oss-120b, size of its safetensors files, recalled"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "written", "published", "source"), FILES, ids=[f"{f[0]} {f[1]['quant_method']}" for f in FILES])
def test_the_bytes_are_those_of_the_published_files(
    shared: Path, name: str, written: dict[str, Any], published: float, source: str
) -> None:
    assert size(quantised(shared, name, written)) == pytest.approx(published, rel=5e-3), source


def test_47_deepseek_v3_with_its_mtp_layer_and_the_copies_it_stores(shared: Path) -> None:
    """688.59 GB are the ``total_size`` of its index (recalled): the MTP layer stores an embedding and a head of its own."""
    model = quantised(shared, "deepseek-v3", row(shared, "deepseek-v3")["quantization_config"])
    copies = 2.0 * (model.parameters.embedding + model.parameters.head)
    assert size(model, mtp=True) + copies == pytest.approx(688.59e9, rel=1e-3)


def test_8_half_a_byte_a_weight_would_be_wrong_by_a_quarter_for_a_small_model(shared: Path) -> None:
    """Qwen2.5-0.5B: the embedding, which is the head too, is more than a quarter of it."""
    awq = quantised(shared, "qwen2.5-0.5b", {"quant_method": "awq", "bits": 4, "group_size": 128})
    assert size(awq) > 1.25 * (0.5 * awq.parameters.total)


# Rows whose stored configuration has lost what says how the weights are stored.
UNREADABLE = {"kimi-k2.5": "format pack-quantized without its config_groups: neither bits nor groups are left"}


def _configurations(found: dict[str, Any]) -> list[dict[str, Any]]:
    config = found["hf_config"] or {}
    inner = config.get("text_config") or {}
    places = (found["quantization_config"], config.get("quantization_config"), config.get("quantization"), inner.get("quantization_config"))
    return [place for place in places if place]


def test_every_quantisation_of_the_table_is_read_or_refused_for_a_listed_reason(shared: Path) -> None:
    rows = [json.loads(line) for line in (shared / "reference/models.jsonl").read_text(encoding="utf-8").splitlines()]
    tried, refused = set(), set()
    for found in rows:
        for written in _configurations(found):
            tried.add(found["name"])
            try:
                model = parse_config({**found["hf_config"], "quantization_config": written}, name=found["name"], where=found["name"])
            except NotModelledError as error:
                assert "pack-quantized" in str(error)
                refused.add(found["name"])
            else:
                assert model.stored["experts"] in ("fp8", "mxfp4")
                assert size(model) < 0.62 * 2 * model.parameters.total
    assert len(tried) >= 15 and refused == set(UNREADABLE)


def test_draft_weights_of_mtp_are_those_of_the_parts(shared: Path) -> None:
    model = quantised(shared, "deepseek-v3", row(shared, "deepseek-v3")["quantization_config"])
    flags = {"model": "deepseek-v3", "hardware.device": "h200-sxm", "hardware.count": 8, "engine.tensor_parallel_size": 8}
    flags |= {"engine.speculative": {"method": "mtp", "num_speculative_tokens": 1}, "workload.batch": 1, "workload.context_tokens": 1000}
    from dataclasses import replace

    deployment = replace(api.load(flags=flags)[0], model=model)
    assert draft_weight_bytes(deployment) == model.stored_bytes["mtp"] / 8


def test_a_list_of_every_expert_is_read_in_a_moment() -> None:
    names = [f"model.layers.{i}.mlp.experts.{e}.{m}_proj" for i in range(60) for e in range(128) for m in ("gate", "up", "down")]
    layers = {name: {"quant_algo": "NVFP4", "group_size": 16} for name in names}
    written = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    assert read(quantization_config=written, num_hidden_layers=60).stored == {"experts": "nvfp4"}


@pytest.mark.parametrize("pattern", ["re:(", "re:(a+)+b", "re:(.*)*x", "re:" + "a" * 2000])
def test_an_expression_that_is_none_or_would_take_forever_is_one_line(pattern: str) -> None:
    with pytest.raises(InputError) as caught:
        read(quantization_config={"quant_method": "fp8", "ignore": [pattern]})
    assert "regular expression" in str(caught.value) and "\n" not in str(caught.value)


ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 200), st.floats(allow_nan=False), st.text(max_size=6), st.sampled_from(["re:.*", "fp8"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip


@st.composite
def mutilated(draw: st.DrawFn) -> dict[str, Any]:
    """One of the forms with something in it, at any depth, replaced or removed."""
    written = json.loads(json.dumps(draw(st.sampled_from([form[1] for form in FORMS]))))
    place = written
    while True:
        key = draw(st.sampled_from(sorted(place)))
        if isinstance(place[key], dict) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        if draw(st.booleans()):
            del place[key]
        else:
            place[key] = draw(ANYTHING)
        return written


@example(written={})
@example(written={"quant_method": "torchao", "quant_type": []})
@example(written={"quant_method": "awq", "bits": 4, "group_size": [128]})
@given(written=st.one_of(mutilated(), st.dictionaries(st.sampled_from(["quant_method", "bits", "quant_algo", "ignore"]), ANYTHING)))
@settings(max_examples=300, deadline=None)
def test_any_mutilated_quantisation_is_a_storage_or_one_clear_line(written: dict[str, Any]) -> None:
    try:
        model = read(quantization_config=written)
    except BreakevenError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert set(model.stored.values()) <= set(FORMATS)
        assert all(0.4 < value / getattr(model.parameters, kind) <= 2.0 for kind, value in model.stored_bytes.items() if kind != "mtp")
