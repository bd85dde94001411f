"""The parser of config.json: how weights and caches are stored, and files that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from model_configs import GOOD, read, without

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.config_file import load_config
from breakeven.origin.json_file import LARGEST_CONFIG_BYTES


class TestStorage:
    @pytest.mark.parametrize(
        ("written", "stored"),
        [
            ({"quant_method": "fp8", "weight_block_size": [128, 128]}, {"attention": "fp8", "mlp": "fp8", "experts": "fp8"}),
            ({"quant_method": "mxfp4"}, {"experts": "mxfp4"}),
            ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, dict.fromkeys(("attention", "mlp", "experts"), "int4_g64")),
            ({"quant_method": "gptq", "bits": 8, "group_size": 128}, dict.fromkeys(("attention", "mlp", "experts"), "int8_weight_only")),
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
                {"experts": "nvfp4_weight_only"},
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
            {"quant_method": "gptq", "bits": 4},
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
