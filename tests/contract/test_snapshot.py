"""A snapshot folder: true bytes by tensor class from safetensors headers, made by hand here."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from breakeven import api, catalog, cli
from breakeven.errors import InputError, NotModelledError
from breakeven.kernels import weight_kernels
from breakeven.ledger.memory import weight_bytes
from breakeven.levers import weight_quant
from breakeven.origin.config_file import load_config
from breakeven.origin.safetensors_header import BITS, read_header
from breakeven.origin.tensor_names import is_buffer, is_scale, tensor_class
from breakeven.spec.model import Model

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LAYER = {
    "self_attn.q_proj": (64, 64),
    "self_attn.k_proj": (32, 64),
    "self_attn.v_proj": (32, 64),
    "self_attn.o_proj": (64, 64),
    "mlp.gate_proj": (128, 64),
    "mlp.up_proj": (128, 64),
    "mlp.down_proj": (64, 128),
    "input_layernorm": (64,),
    "post_attention_layernorm": (64,),
}
Tensors = dict[str, tuple[str, tuple[int, ...]]]


def tensors(dtype: str = "BF16") -> Tensors:
    found: Tensors = {
        "model.embed_tokens.weight": ("BF16", (100, 64)),
        "lm_head.weight": ("BF16", (100, 64)),
        "model.norm.weight": ("BF16", (64,)),
    }
    for layer in range(2):
        for name, shape in LAYER.items():
            found[f"model.layers.{layer}.{name}.weight"] = (dtype if len(shape) > 1 else "BF16", shape)
            if dtype == "F8_E4M3" and len(shape) > 1:
                found[f"model.layers.{layer}.{name}.weight_scale_inv"] = ("F32", (1, 1))
    return found


def write(path: Path, given: Tensors, *, short: int = 0, **changes: Any) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape) in given.items():
        size = math.prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    for name, offsets in changes.items():
        header[name]["data_offsets"] = offsets
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at - short))


def snapshot(folder: Path, given: Tensors, **config: Any) -> Path:
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}), encoding="utf-8")
    write(folder / "model.safetensors", given)
    return folder


def held(model: Model) -> float:
    return weight_bytes(model, weight_kernels(model, catalog.engine(), catalog.load("hardware", "h100-sxm")))


def test_the_bytes_of_a_16_bit_snapshot_are_exact_by_class(tmp_path: Path) -> None:
    model = load_config(snapshot(tmp_path, tensors()))
    assert model.stored_bytes == {
        "embedding": 12800, "head": 12800, "attention": 2 * 2 * 12288, "mlp": 2 * 2 * 24576, "other": 2 * 5 * 64
    }  # fmt: skip
    assert not model.stored and not model.remarks
    assert model.sources["stored"] == "read from 1 safetensors headers"
    assert held(model) == sum(model.stored_bytes.values())


def test_types_decide_where_the_configuration_is_silent_and_scales_are_counted_with_their_class(tmp_path: Path) -> None:
    model = load_config(snapshot(tmp_path, tensors("F8_E4M3")))
    assert model.stored == {"attention": "fp8", "mlp": "fp8"}
    assert model.stored_bytes["attention"] == 2 * (12288 + 4 * 4)
    assert not model.remarks
    assert held(model) == sum(model.stored_bytes.values())


def test_files_without_tensors_or_without_half_of_the_layers_are_not_the_model(tmp_path: Path) -> None:
    whole = tensors("BF16")
    half = {name: held for name, held in whole.items() if ".layers.1." not in name}
    for place, (held, said) in enumerate(((half, "hold"), ({}, "embedding, attention, mlp"))):
        folder = tmp_path / str(place)
        folder.mkdir()
        with pytest.raises(InputError, match=said) as refused:
            load_config(snapshot(folder, held))
        assert "\n" not in str(refused.value)


def test_a_lever_that_changes_the_format_reads_its_own_bytes_and_put_back_those_of_the_files(tmp_path: Path) -> None:
    model = load_config(snapshot(tmp_path, tensors("F8_E4M3")))
    device = catalog.load("hardware", "h100-sxm")
    assert weight_kernels(model, catalog.engine(quantization="int4_marlin"), device)["mlp"].bytes == 0.53
    stays = weight_kernels(model, catalog.engine(quantization="fp8"), device)["mlp"].bytes
    assert stays == model.stored_bytes["mlp"] / model.parameters.mlp
    hardware = api.hardware("h100-sxm")
    workload = api.load(
        flags={"model": "llama-3.1-8b", "hardware.device": "h100-sxm", "workload.batch": 1, "workload.context_tokens": 100}
    )[0]
    from dataclasses import replace

    off = weight_quant.remove(replace(workload, model=model, hardware=hardware))
    assert {kernel.bytes for kernel in weight_kernels(off.model, off.engine, device).values()} == {2.0}
    again = weight_quant.apply(off, "fp8")
    assert weight_kernels(again.model, again.engine, device)["mlp"].bytes == stays


def test_towers_are_held_and_not_read_and_mtp_layers_are_kept_apart(tmp_path: Path) -> None:
    more: Tensors = {"visual.blocks.0.attn.qkv.weight": ("BF16", (64, 64)), "model.layers.2.eh_proj.weight": ("BF16", (64, 128))}
    model = load_config(snapshot(tmp_path, {**tensors(), **more}))
    plain = sum(value for name, value in model.stored_bytes.items() if name != "mtp")
    assert model.beside_bytes == 2 * 64 * 64 and model.stored_bytes["mtp"] == 2 * 64 * 128
    assert held(model) == plain + model.beside_bytes
    assert [remark.key for remark in model.remarks] == ["warning.towers"]


def test_a_head_stored_although_tied_is_not_counted_rule_47(tmp_path: Path) -> None:
    model = load_config(snapshot(tmp_path, tensors(), tie_word_embeddings=True))
    assert "head" not in model.stored_bytes and not model.remarks and "tied head" in model.sources["stored"]


def test_matrices_of_32_bits_count_as_the_16_they_are_served_in(tmp_path: Path) -> None:
    model = load_config(snapshot(tmp_path, tensors("F32"), torch_dtype="float32"))
    assert model.stored_bytes["mlp"] == 2 * 2 * 24576


def test_a_count_that_differs_and_unknown_names_are_said(tmp_path: Path) -> None:
    model = load_config(snapshot(tmp_path, {**tensors(), "model.riddle.weight": ("BF16", (100, 64))}))
    assert [remark.key for remark in model.remarks] == ["warning.count_differs", "warning.tensors_unknown"]
    read = sum(math.prod(shape) for _, shape in tensors().values()) + 6400
    assert model.remarks[0].values["counted"] == model.parameters.total == read - 6400 and model.remarks[0].values["read"] == read


def test_packed_weights_without_a_format_are_refused_by_name(tmp_path: Path) -> None:
    given = {name: (("I32", (8, 64)) if "mlp" in name else entry) for name, entry in tensors().items()}
    with pytest.raises(NotModelledError, match="packed in I32"):
        load_config(snapshot(tmp_path, given))


def test_shards_are_those_of_the_index_and_a_missing_one_is_named(tmp_path: Path) -> None:
    snapshot(tmp_path, tensors())
    (tmp_path / "model.safetensors").unlink()
    given = tensors()
    names = list(given)
    parts = {"a.safetensors": names[:9], "b.safetensors": names[9:]}
    for file, part in parts.items():
        write(tmp_path / file, {name: given[name] for name in part})
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert load_config(tmp_path).sources["stored"] == "read from 2 safetensors headers"
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(InputError, match=r"1 of 2 weight files.*b\.safetensors"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cut short"),
        (struct.pack("<Q", 2**60), "above 100000000"),
        (struct.pack("<Q", 100) + b"{}", "cut short"),
        (struct.pack("<Q", 2) + b"[]", "not an object"),
        (struct.pack("<Q", 2) + b"xx", "not JSON"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    ],
)
def test_a_file_that_is_none_is_one_clear_line(content: bytes, said: str, tmp_path: Path) -> None:
    snapshot(tmp_path, tensors())
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=said) as raised:
        load_config(tmp_path)
    assert "\n" not in str(raised.value)


def test_truncated_data_overlaps_and_absurd_offsets_are_one_clear_line(tmp_path: Path) -> None:
    snapshot(tmp_path, tensors())
    file, given = tmp_path / "model.safetensors", tensors()
    write(file, given, short=1)
    with pytest.raises(InputError, match="cut short"):
        load_config(tmp_path)
    write(file, given, **{"lm_head.weight": [0, 12800]})
    with pytest.raises(InputError, match="overlaps"):
        load_config(tmp_path)
    write(file, given, **{"lm_head.weight": [0, 5]})
    with pytest.raises(InputError, match="5 bytes for 6400"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("transformer.h.3.attn.c_attn.weight", "attention"),
        ("transformer.h.3.mlp.c_fc.weight", "mlp"),
        ("transformer.wpe.weight", "other"),
        ("gpt_neox.layers.1.attention.query_key_value.weight", "attention"),
        ("gpt_neox.layers.1.mlp.dense_h_to_4h.weight", "mlp"),
        ("gpt_neox.embed_in.weight", "embedding"),
        ("embed_out.weight", "head"),
        ("model.language_model.layers.1.linear_attn.in_proj_qkvz.weight", "attention"),
        ("model.language_model.embed_tokens.weight", "embedding"),
        ("backbone.layers.1.mixer.in_proj.weight", "attention"),
        ("backbone.layers.1.mixer.experts.4.up_proj.weight", "experts"),
        ("backbone.layers.1.mixer.up_proj.weight", "mlp"),
        ("backbone.layers.1.mixer.gate.weight", "mlp"),
        ("backbone.layers.1.norm.weight", "other"),
        ("model.layers.1.block_sparse_moe.experts.7.w1.weight", "experts"),
        ("model.layers.1.block_sparse_moe.gate.weight", "mlp"),
        ("model.layers.1.mlp.experts.gate_up_proj_blocks", "experts"),
        ("model.layers.1.mlp.router.weight", "mlp"),
        ("model.layers.1.mlp.shared_experts.down_proj.weight", "mlp"),
        ("model.layers.1.self_attn.kv_a_layernorm.weight", "attention"),
        ("model.layers.1.self_attn.indexer.wk.weight", "attention"),
        ("model.layers.1.mamba.A_log", "attention"),
        ("model.decoder.layers.1.fc1.weight", "mlp"),
        ("model.decoder.layers.1.self_attn_layer_norm.weight", "other"),
        ("model.layers.8.mlp.experts.1.up_proj.weight", "mtp"),
        ("mtp.fc.weight", "mtp"),
        ("vision_tower.encoder.layers.1.self_attn.q_proj.weight", "tower"),
        # Names of published files, as their indices list them.
        ("model.mtp_layers.0.self_attn.q_proj.weight", "mtp"),
        ("model.language_model.layers.1.linear_attn.in_proj_qkv.weight", "attention"),
        ("model.language_model.layers.1.linear_attn.dt_bias", "attention"),
        ("model.language_model.layers.1.mlp.experts.179.gate_proj.weight", "experts"),
        ("model.language_model.layers.1.mlp.shared_expert_gate.weight", "mlp"),
        ("language_model.model.layers.1.pre_feedforward_layernorm.weight", "other"),
        ("multi_modal_projector.mm_input_projection_weight", "tower"),
        ("transformer.h.1.self_attention.query_key_value.weight", "attention"),
        ("transformer.h.1.ln_mlp.weight", "other"),
        ("h.1.mlp.dense_4h_to_h.bias", "mlp"),
        ("word_embeddings_layernorm.weight", "other"),
        ("word_embeddings.weight", "embedding"),
        ("transformer.h.1.mlp.w1.weight", "mlp"),
        ("model.transformer.blocks.1.att_proj.weight.quant_state.bitsandbytes__nf4", "attention"),
        ("model.transformer.blocks.1.attn_out.weight", "attention"),
        ("model.transformer.blocks.1.ff_proj.weight.absmax", "mlp"),
        ("model.transformer.ff_out.weight", "head"),
        ("model.vision_backbone.image_pooling_2d.wk.bias", "tower"),
        ("model.transformer.wte.new_embedding", "embedding"),
        ("model.layers.1.mlp.down_proj.biases", "mlp"),
        ("lm_head.scales", "head"),
        ("model.riddle", None),
    ],
)
def test_names_of_many_families_fall_into_their_class(name: str, kind: str | None) -> None:
    assert tensor_class(name, 8) == kind


@pytest.mark.parametrize(
    "name",
    [
        "q_proj.weight_scale_inv", "q_proj.weight_scale", "q_proj.weight_scale_2", "q_proj.input_scale", "q_proj.k_scale",
        "q_proj.scales", "q_proj.qzeros", "q_proj.g_idx", "q_proj.weight_shape", "q_proj.weight_zero_point", "q_proj.biases",
        "q_proj.weight_global_scale", "q_proj.weight.absmax", "q_proj.weight.nested_absmax", "q_proj.weight.quant_map",
        "q_proj.weight.nested_quant_map", "q_proj.weight.quant_state.bitsandbytes__nf4", "q_proj.SCB", "q_proj.weight_format",
        "mlp.experts.gate_up_proj_scales", "q_proj.scales_and_zeros",
    ],
)  # fmt: skip
def test_scales_and_zeros_of_every_format_are_bytes_and_no_parameters(name: str, tmp_path: Path) -> None:
    assert is_scale(f"model.layers.1.self_attn.{name}")
    more: Tensors = {f"model.layers.1.self_attn.{name}": ("F32", (8, 4))}
    model = load_config(snapshot(tmp_path, {**tensors(), **more}))
    plain = load_config(snapshot(tmp_path, tensors()))
    kind = "experts" if "experts" in name else "attention"
    assert model.stored_bytes[kind] - plain.stored_bytes.get(kind, 0) == 8 * 4 * 4
    assert not model.remarks


@pytest.mark.parametrize(
    "name", ["q_proj.weight", "q_proj.bias", "A_log", "q_proj.qweight", "q_proj.weight_packed", "experts.down_proj_blocks"]
)
def test_weights_and_biases_are_no_scales(name: str) -> None:
    assert not is_scale(f"model.layers.1.self_attn.{name}")


def test_masks_and_frequencies_that_an_engine_makes_itself_are_not_counted(tmp_path: Path) -> None:
    more: Tensors = {"model.layers.1.self_attn.rotary_emb.inv_freq": ("F32", (8,)), "h.1.attn.bias": ("F32", (1, 1, 64, 64))}
    assert all(is_buffer(name) for name in more)
    assert load_config(snapshot(tmp_path, {**tensors(), **more})).stored_bytes == load_config(snapshot(tmp_path, tensors())).stored_bytes


def test_blocks_and_scales_of_mxfp4_are_its_bytes_and_its_format(tmp_path: Path) -> None:
    mixture = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    given = {name: entry for name, entry in tensors().items() if ".mlp." not in name}
    for layer in range(2):
        start = f"model.layers.{layer}.mlp"
        for name, rows, width in (("gate_up_proj", 256, 64), ("down_proj", 64, 128)):
            given[f"{start}.experts.{name}_blocks"] = ("U8", (4, rows, width // 32, 16))
            given[f"{start}.experts.{name}_scales"] = ("U8", (4, rows, width // 32))
        given[f"{start}.router.weight"] = ("BF16", (4, 64))
    model = load_config(snapshot(tmp_path, given, **mixture))
    assert model.stored == {"experts": "mxfp4"} and not model.remarks
    assert model.stored_bytes["experts"] == model.parameters.experts * 17 / 32
    assert held(model) == sum(model.stored_bytes.values())


def test_towers_stand_in_the_arithmetic_of_the_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more: Tensors = {"visual.blocks.0.attn.qkv.weight": ("BF16", (1000, 1000))}
    folder = snapshot(tmp_path, {**tensors(), **more})
    flags = ["--hardware", "h100-sxm", "--batch", "1", "--context", "100", "--draws", "16"]
    assert cli.run(["advise", "--model", str(folder), *flags, "--explain", "kv_quant"]) == 0
    assert "+ 2 MB)/(1·1)" in capsys.readouterr().out.replace("\n", " ")


def test_a_real_snapshot_is_counted_as_its_headers_say() -> None:
    """Set BREAKEVEN_SNAPSHOT to a folder with a config.json and safetensors files in 16 bits."""
    given = os.environ.get("BREAKEVEN_SNAPSHOT")
    if not given:
        pytest.skip("BREAKEVEN_SNAPSHOT names no folder with safetensors files")
    model = api.model(given)
    stored = sum(tensor.bytes for file in Path(given).glob("*.safetensors") for tensor in read_header(file).values())
    assert not model.remarks and held(model) == sum(model.stored_bytes.values())
    assert model.parameters.total * 2 == stored == held(model)
