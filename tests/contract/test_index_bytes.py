"""The total that the index of weight files says, against what the configuration makes: published totals first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_snapshot import CONFIG, tensors, write

from breakeven import api
from breakeven.errors import InputError
from breakeven.messages import text
from breakeven.origin.config_file import load_config
from breakeven.spec.model import Model

PUBLISHED: dict[str, tuple[dict[str, Any], int, int]] = {
    # Configuration, the index's metadata.total_size, and the bytes of it beyond the language model as we count it.
    "Phi-3-mini": (
        {
            "model_type": "phi3", "hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
            "intermediate_size": 8192, "vocab_size": 32064, "tie_word_embeddings": False, "sliding_window": 2047,
        }, 7642159104, 0),
    "BLOOM-176B": (
        {"model_type": "bloom", "num_attention_heads": 112, "vocab_size": 250880, "n_layer": 70, "n_embed": 14336},
        352494542848, 0),
    "Devstral-Small-2507": (
        {
            "model_type": "mistral", "hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 128, "intermediate_size": 32768, "vocab_size": 131072, "tie_word_embeddings": False, "sliding_window": None,
        }, 47144806400, 0),
    "WizardLM-2-8x22B": (
        {
            "model_type": "mixtral", "hidden_size": 6144, "num_hidden_layers": 56, "num_attention_heads": 48, "num_key_value_heads": 8,
            "intermediate_size": 16384, "vocab_size": 32000, "tie_word_embeddings": False, "num_local_experts": 8, "num_experts_per_tok": 2,
        }, 281241268224, 0),
    "falcon-180B, with a copy of its tied head": (
        {
            "model_type": "falcon", "hidden_size": 14848, "num_hidden_layers": 80, "num_attention_heads": 232, "num_kv_heads": 8,
            "vocab_size": 65024, "alibi": False, "bias": False, "new_decoder_architecture": True, "multi_query": True,
            "parallel_attn": True,
        }, 359045130240, 2 * 65024 * 14848),
    "MiMo-7B, with its MTP layer": (
        {
            "model_type": "mimo", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 128, "intermediate_size": 11008, "vocab_size": 151680, "tie_word_embeddings": False, "attention_bias": True,
            "num_nextn_predict_layers": 1,
        }, 15666819072, 2 * 210790400),
}  # fmt: skip
MEDGEMMA = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 5376, "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 16,
        "head_dim": 128, "intermediate_size": 21504, "vocab_size": 262208, "sliding_window": 1024,
    },
    "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152},
}  # fmt: skip
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}


def folder_of(folder: Path, config: dict[str, Any], total: object) -> Path:
    """What the hub's cache holds of a model without its weights."""
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    index = {"metadata": {"total_size": total}, "weight_map": {"lm_head.weight": "model-00001-of-00009.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def read(folder: Path, config: dict[str, Any], total: object) -> Model:
    return load_config(folder_of(folder, config, total))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_count_meets_published_totals_to_the_byte_and_nothing_is_said(name: str, tmp_path: Path) -> None:
    config, total, beyond = PUBLISHED[name]
    model = read(tmp_path, config, total)
    assert 2 * model.parameters.total + beyond == total
    assert not model.remarks and not model.stored_bytes


def test_towers_make_the_total_more_than_the_language_model_and_both_are_said(tmp_path: Path) -> None:
    model = read(tmp_path, MEDGEMMA, 54864813280)
    (remark,) = model.remarks
    assert remark.key == "warning.index_more"
    assert "hold 54.9 GB, more than the 54 GB that" in text(remark) and "54.9 GB，多于按配置算出的语言模型 54 GB" in text(remark, "zh")


def test_fewer_bytes_than_the_configuration_makes_are_said(tmp_path: Path) -> None:
    config, total, _ = PUBLISHED["Devstral-Small-2507"]
    assert [remark.key for remark in read(tmp_path, config, total // 2).remarks] == ["warning.index_less"]
    assert not read(tmp_path, config, total * 1.009).remarks
    assert [remark.key for remark in read(tmp_path, config, total * 1.011).remarks] == ["warning.index_more"]


def test_files_of_32_bits_are_twice_the_count_and_nothing_is_said(tmp_path: Path) -> None:
    config, total, _ = PUBLISHED["Phi-3-mini"]
    assert not read(tmp_path, {**config, "torch_dtype": "float32"}, 2 * total).remarks


def test_a_single_packed_format_takes_its_bytes_from_the_total(tmp_path: Path) -> None:
    config, _, _ = PUBLISHED["Devstral-Small-2507"]
    bare = api.model(str(folder_of(tmp_path, {**config, "quantization_config": AWQ}, None)))
    assert set(bare.stored.values()) == {"int4_g128"}
    p = bare.parameters
    # Groups of 128: a 16-bit scale and a 4-bit zero.
    packed = 1.02 * (p.attention + p.mlp) * (0.5 + 2.5 / 128)  # and some padding
    model = read(tmp_path, {**config, "quantization_config": AWQ}, 2 * (p.embedding + p.head + p.other) + packed)
    assert sum(model.stored_bytes.values()) == pytest.approx(packed, rel=1e-12) and set(model.stored_bytes) == {"attention", "mlp"}
    assert not model.remarks and "total_size" in model.sources["stored"]


def test_a_packed_total_that_is_far_off_is_said_and_not_used(tmp_path: Path) -> None:
    config, total, _ = PUBLISHED["Devstral-Small-2507"]
    model = read(tmp_path, {**config, "quantization_config": AWQ}, total)
    assert [remark.key for remark in model.remarks] == ["warning.index_more"]
    assert model.stored_bytes == api.model(str(folder_of(tmp_path, {**config, "quantization_config": AWQ}, None))).stored_bytes


@pytest.mark.parametrize("total", [None, "7642159104", True, -1, 0, float("inf"), 1e300, [], {}])
def test_a_total_that_is_none_is_passed_over(total: object, tmp_path: Path) -> None:
    assert not read(tmp_path, PUBLISHED["Phi-3-mini"][0], total).remarks


def test_an_index_that_is_no_json_is_one_line_that_names_it(tmp_path: Path) -> None:
    folder_of(tmp_path, CONFIG, 1)
    (tmp_path / "model.safetensors.index.json").write_text("<html>", encoding="utf-8")
    with pytest.raises(InputError, match=r"index\.json: not a sound safetensors file or index") as raised:
        load_config(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_configuration_alone_is_not_held_against_what_lies_beside_it(tmp_path: Path) -> None:
    folder_of(tmp_path, CONFIG, 10**12)
    assert not load_config(tmp_path / "config.json").remarks
    write(tmp_path / "model-00001-of-00009.safetensors", tensors())
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": dict.fromkeys(tensors(), "model-00001-of-00009.safetensors")}), encoding="utf-8"
    )
    assert load_config(tmp_path).sources["stored"] == "read from 1 safetensors headers"


def test_a_folder_with_mistrals_params_json_is_read_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    params = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "hidden_dim": 128, "vocab_size": 100}
    (folder / "params.json").write_text(json.dumps(params), encoding="utf-8")
    write(folder / "consolidated.safetensors", tensors())
    model = load_config(folder)
    assert model.name == "small" and model.sources["stored"] == "read from 1 safetensors headers" and not model.remarks
    assert api.model(str(folder / "params.json")).name == "small"
    monkeypatch.chdir(tmp_path)
    assert api.model("small").hidden == 64
    (folder / "params.json").unlink()
    with pytest.raises(InputError, match=r"neither config\.json nor params\.json"):
        load_config(folder)
