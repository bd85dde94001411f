"""Modules that a quantisation leaves out or stores otherwise: what a mixed class is called, and its bytes part by part.

Rules are those of the reference notes on configurations, traps those of its notes on what operators trip over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model_configs import HYBRIDS, LATENT, dense, read
from test_snapshot import snapshot, tensors

from breakeven import catalog
from breakeven.kernels import weight_kernel, weight_kernels
from breakeven.origin.config_file import load_config
from breakeven.origin.huggingface import parse_config

GROUP = {"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group", "symmetric": True}
FLOAT8 = {"num_bits": 8, "type": "float", "strategy": "channel"}


class TestModulesLeftOut:
    def test_18_the_larger_part_by_parameters_decides_not_by_names(self) -> None:
        """Query and output are two names of four, and four fifths of the parameters (8 heads to 1)."""
        small = {"quant_method": "fp8", "modules_to_not_convert": ["k_proj", "v_proj"]}
        large = {"quant_method": "fp8", "modules_to_not_convert": ["q_proj", "o_proj"]}
        assert dense(num_key_value_heads=1, quantization_config=small).stored["attention"] == "fp8"
        assert "attention" not in dense(num_key_value_heads=1, quantization_config=large).stored

    def test_18_a_mixed_class_has_the_bytes_of_its_parts(self) -> None:
        model = dense(quantization_config={"quant_method": "fp8", "modules_to_not_convert": ["down_proj"]})
        matrix = 4 * 512 * 1024
        assert model.stored["mlp"] == "fp8" and model.stored_bytes["mlp"] == 2 * matrix * 1 + matrix * 2

    def test_18_a_few_layers_in_16_bit_show_in_the_bytes(self) -> None:
        kept = [f"model.layers.{i}" for i in (0,)]
        model = dense(quantization_config={"quant_method": "fp8", "modules_to_not_convert": kept})
        assert model.stored_bytes["mlp"] == model.parameters.mlp * (3 * 1 + 1 * 2) / 4

    def test_18_a_class_mostly_in_16_bit_is_16_bit_at_the_bytes_of_its_parts(self) -> None:
        model = dense(quantization_config={"quant_method": "fp8", "modules_to_not_convert": [f"layers.{i}." for i in (0, 1, 2)]})
        assert "mlp" not in model.stored and model.stored_bytes["mlp"] == model.parameters.mlp * (1 + 3 * 2) / 4
        device = catalog.load("hardware", "h100-sxm")
        assert weight_kernels(model, catalog.engine(), device)["mlp"].bytes == 1.75

    def test_8_routers_norms_and_biases_stay_at_16_bits(self) -> None:
        model = read(quantization_config={"quant_method": "fp8"}, attention_bias=True)
        router, hidden = 16 * 512, 512
        matrices = 8 * hidden * (8 * 64 + 2 * 2 * 64 + 8 * 64)
        assert model.stored_bytes["mlp"] == model.parameters.mlp + router * 7
        assert model.stored_bytes["attention"] == matrices + 2 * (model.parameters.attention - matrices)

    def test_8_head_and_embedding_stay_at_16_bits_unless_it_is_said(self) -> None:
        model = read(quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 128})
        assert not {"head", "embedding"} & (set(model.stored) | set(model.stored_bytes))

    @pytest.mark.parametrize(
        ("written", "bits"),
        [
            ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 4 + 20 / 128),
            ({"quant_method": "gptq", "bits": 4, "group_size": 32}, 4 + 20 / 32),
            ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": False}, 4 + 16 / 128),
            ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": GROUP}}}, 4 + 16 / 128),
            ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4.5),
            ({"bits": 4, "group_size": 64}, 4.5),
            ({"quant_algo": "NVFP4"}, 4.5),
        ],
    )
    def test_8_scales_and_zero_points_are_counted(self, written: dict[str, Any], bits: float) -> None:
        assert dense(quantization_config=written).stored_bytes["mlp"] * 8 == dense().parameters.mlp * bits

    def test_52_double_quantisation_makes_the_scales_smaller(self) -> None:
        nf4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
        once, twice = (dense(quantization_config={**nf4, "bnb_4bit_use_double_quant": on}).stored_bytes["mlp"] for on in (False, True))
        assert (once - twice) * 8 == pytest.approx(dense().parameters.mlp * 0.373, rel=2e-3)

    def test_52_dynamic_leaves_out_and_changes(self) -> None:
        dynamic = {"-:.*self_attn.*": {}, "+:.*down_proj": {"bits": 8, "group_size": 32}}
        model = dense(quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": dynamic})
        assert model.stored == {"mlp": "int4_g128"}
        third = model.parameters.mlp / 3
        assert model.stored_bytes["mlp"] * 8 == pytest.approx(2 * third * (4 + 20 / 128) + third * (8 + 24 / 32))

    def test_52_auto_round_gives_modules_their_own_width(self) -> None:
        extra = {f"model.layers.{i}.self_attn.{m}_proj": {"bits": 16, "data_type": "float"} for i in range(4) for m in "qkvo"}
        model = dense(quantization_config={"quant_method": "auto-round", "bits": 4, "group_size": 128, "extra_config": extra})
        assert model.stored == {"mlp": "int4_g128"}

    def test_50_a_target_by_name_goes_before_one_by_class(self) -> None:
        groups = {"a": {"targets": ["Linear"], "weights": GROUP}, "b": {"targets": ["model.layers.0.mlp.down_proj"], "weights": FLOAT8}}
        model = dense(quantization_config={"quant_method": "compressed-tensors", "config_groups": groups})
        one, all_of = 512 * 1024, model.parameters.mlp
        assert model.stored_bytes["mlp"] == one + (all_of - one) * (4 + 16 / 128) / 8

    def test_48_an_mlx_override_of_the_routers_shows_in_the_bytes(self) -> None:
        own = {f"model.layers.{i}.mlp.gate": {"bits": 8, "group_size": 64} for i in range(8)}
        plain, other = (read(quantization_config={"bits": 4, "group_size": 64, **more}) for more in ({}, own))
        assert (other.stored_bytes["mlp"] - plain.stored_bytes["mlp"]) * 8 == 7 * 16 * 512 * 4

    def test_mtp_layers_follow_publishers_of_fp8_and_nobody_else(self) -> None:
        config = {**LATENT, "num_nextn_predict_layers": 1}
        by = {
            method: parse_config({**config, "quantization_config": written}, name="m", where="c")
            for method, written in {"fp8": {"quant_method": "fp8"}, "awq": {"quant_method": "awq", "bits": 4, "group_size": 128}}.items()
        }
        assert "mtp" not in by["awq"].stored_bytes
        assert by["fp8"].mtp_parameters < by["fp8"].stored_bytes["mtp"] < 2 * by["fp8"].mtp_parameters
        left = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.4"]}
        assert "mtp" not in parse_config({**config, "quantization_config": left}, name="m", where="c").stored_bytes

    def test_experts_of_deepseek_v4_are_fp4_beside_fp8(self) -> None:
        config = {
            "model_type": "deepseek_v4",
            **HYBRIDS["deepseek_v4"],
            "expert_dtype": "fp4",
            "quantization_config": {"quant_method": "fp8"},
        }
        model = parse_config(config, name="m", where="config.json")
        assert model.stored["experts"] == "mxfp4" and model.stored["attention"] == "fp8"
        assert model.stored_bytes["experts"] == model.parameters.experts * weight_kernel("mxfp4").bytes

    def test_w4a8_is_computed_in_16_bits_and_says_so(self) -> None:
        model = read(quantization_config={"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"})
        assert [remark.key for remark in model.remarks] == ["warning.activations_narrower"]

    def test_a_format_without_groups_says_what_is_taken(self) -> None:
        model = read(quantization_config={"quant_method": "compressed-tensors", "format": "float-quantized"})
        assert [remark.key for remark in model.remarks] == ["warning.no_config_groups"]


def test_files_of_a_mixed_class_keep_the_format_that_the_configuration_gives_it(tmp_path: Path) -> None:
    """Two matrices of three in 4 bits hold fewer bytes than the third in 16, and still are the larger part."""
    given = {name: tensor for name, tensor in tensors().items() if "gate_proj" not in name and "up_proj" not in name}
    packed = {f"model.layers.{i}.mlp.{m}_proj.qweight": ("I32", (8, 128)) for i in range(2) for m in ("gate", "up")}
    written = {"quant_method": "gptq", "bits": 4, "group_size": 64, "dynamic": {"-:.*(self_attn|down_proj).*": {}}}
    model = load_config(snapshot(tmp_path, {**given, **packed}, quantization_config=written))
    assert model.stored == {"mlp": "int4_g64"} and model.stored_bytes["mlp"] == 2 * (2 * 4096 + 16384)
