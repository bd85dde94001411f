"""GGUF files read into models: what the metadata and the tensors say is what the configuration of the same model says."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType
from gguf_sample import F32, Keys, Shape, attention, blocks, ends, experts, heads, mlp, write

import breakeven as be
from breakeven.errors import InputError, NotModelledError
from breakeven.kernels import kv_kernel, weight_kernel, weight_kernels, weight_names
from breakeven.ledger.memory import kv_bytes_per_token, state_bytes, weight_bytes
from breakeven.levers import weight_quant
from breakeven.origin.gguf import load_gguf
from breakeven.origin.gguf_head import read_head
from breakeven.origin.huggingface import parse_config
from breakeven.origin.resolve import resolve
from breakeven.spec.model import TENSOR_CLASSES, Model


def same(read: Model, config: Mapping[str, object]) -> None:
    """The model of a file is that of the configuration: shapes alike, parameters but for what norms and rotary tables differ in."""
    written = parse_config(config, name="m", where="config.json")
    assert read.attention == written.attention
    assert read.states == written.states
    assert read.experts == written.experts
    assert (read.layers, read.hidden, read.vocabulary, read.tied, read.mtp_layers) == (
        written.layers,
        written.hidden,
        written.vocabulary,
        written.tied,
        written.mtp_layers,
    )
    for kind in TENSOR_CLASSES:
        norms = 6 * read.hidden * (read.layers + 1) if kind in ("attention", "other", "mlp") else 0
        assert abs(getattr(read.parameters, kind) - getattr(written.parameters, kind)) <= norms, kind


LLAMA = {**blocks(32, {**attention(4096, 32, 8, 128), "ffn_norm.weight": (4096,), **mlp(4096, 14336)}), **ends(4096, 128256)}
LLAMA_KEYS = {
    "block_count": 32, "embedding_length": 4096, "context_length": 131072, "vocab_size": 128256, "general.file_type": 15, **heads(32, 8),
}  # fmt: skip


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return write(tmp_path / "Llama-3.1-8B-Q4_K_M.gguf", "llama", LLAMA_KEYS, LLAMA)


def test_rule_53_and_54_a_llama_is_what_its_configuration_says(llama: Path) -> None:
    config = {
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
    }  # fmt: skip
    read = load_gguf(llama)
    same(read, config)
    assert read.parameters.total == 8_030_261_248
    assert read.name == "Llama-3.1-8B-Q4_K_M"
    assert "Q4_K_M" in read.sources["gguf"]


def test_rule_57_without_an_output_tensor_the_head_is_tied(tmp_path: Path) -> None:
    keys = {"block_count": 16, "embedding_length": 2048, **heads(32, 8, key_length=64, value_length=64)}
    tensors = {**blocks(16, {**attention(2048, 32, 8, 64), "ffn_norm.weight": (2048,), **mlp(2048, 8192)}), **ends(2048, 128256, True)}
    read = load_gguf(write(tmp_path / "a.gguf", "llama", keys, tensors))
    config = {
        "model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 64, "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": True,
    }  # fmt: skip
    same(read, config)
    assert read.parameters.head == 0


def test_rule_54_gemma_3_slides_five_layers_in_six(tmp_path: Path) -> None:
    layer = {
        **attention(1152, 4, 1, 256, norms=True), "post_attention_norm.weight": (1152,), "ffn_norm.weight": (1152,),
        "post_ffw_norm.weight": (1152,), **mlp(1152, 6912),
    }  # fmt: skip
    keys = {
        "block_count": 26, "embedding_length": 1152, "context_length": 32768,
        **heads(4, 1, key_length=256, value_length=256, sliding_window=512),
    }  # fmt: skip
    read = load_gguf(write(tmp_path / "a.gguf", "gemma3", keys, {**blocks(26, layer), **ends(1152, 262144, True)}))
    config = {
        "model_type": "gemma3_text", "num_hidden_layers": 26, "hidden_size": 1152, "num_attention_heads": 4, "num_key_value_heads": 1,
        "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144, "sliding_window": 512, "max_position_embeddings": 32768,
    }  # fmt: skip
    same(read, config)
    assert [(group.kind, group.layers) for group in read.attention] == [("sliding", 22), ("full", 4)]


@pytest.mark.parametrize(
    ("arch", "more", "sliding"),
    [
        ("gemma2", {}, 4), ("gpt-oss", {"sliding_window": 128}, 4), ("cohere2", {"sliding_window": 4096}, 6), ("exaone4", {}, 0),
        ("olmo2", {}, 0), ("olmo2", {"sliding_window": 64}, 6), ("phi3", {"sliding_window": 2047}, 0), ("llama4", {}, 6),
        ("gemma3", {"sliding_window": 64, "sliding_window_pattern": [True] * 7 + [False]}, 7),
        ("gemma3", {"sliding_window": 64, "sliding_window_pattern": 4}, 6), ("smallthinker", {"sliding_window": 4096}, 6),
    ],
)  # fmt: skip
def test_rule_54_and_58_windows_that_a_file_does_not_write_are_those_of_its_architecture(
    tmp_path: Path, arch: str, more: Mapping[str, object], sliding: int
) -> None:
    keys = {"block_count": 8, "embedding_length": 256, **heads(4, 2, **more)}
    tensors = {**blocks(8, {**attention(256, 4, 2, 64), **mlp(256, 512)}), **ends(256, 512)}
    read = load_gguf(write(tmp_path / "a.gguf", arch, keys, tensors))
    assert sum(group.layers for group in read.attention if group.window) == sliding


def test_rule_55_shared_experts_count_with_the_mlp(tmp_path: Path) -> None:
    layer = {
        **attention(2048, 16, 16, 128), "attn_q.bias": (2048,), "attn_k.bias": (2048,), "attn_v.bias": (2048,), "ffn_norm.weight": (2048,),
        **experts(2048, 1408, 60), **mlp(2048, 5632, "_shexp"), "ffn_gate_inp_shexp.weight": (2048,),
    }  # fmt: skip
    keys = {"block_count": 24, "embedding_length": 2048, "expert_count": 60, "expert_used_count": 4, **heads(16, 16)}
    read = load_gguf(write(tmp_path / "a.gguf", "qwen2moe", keys, {**blocks(24, layer), **ends(2048, 151936)}))
    config = {
        "model_type": "qwen2_moe", "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 16,
        "intermediate_size": 5632, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts": 60,
        "num_experts_per_tok": 4, "vocab_size": 151936,
    }  # fmt: skip
    same(read, config)


LATENT = {
    "attn_norm.weight": (2048,), "attn_q.weight": (16 * 192, 2048), "attn_kv_a_mqa.weight": (576, 2048), "attn_kv_a_norm.weight": (512,),
    "attn_k_b.weight": (16, 512, 128), "attn_v_b.weight": (16, 128, 512), "attn_output.weight": (2048, 16 * 128),
    "ffn_norm.weight": (2048,),
}  # fmt: skip
LATENT_KEYS = {
    "block_count": 27, "embedding_length": 2048, "expert_count": 64, "expert_used_count": 6, "leading_dense_block_count": 1,
    "rope.dimension_count": 64,
    **heads(16, 1, kv_lora_rank=512, key_length=576, value_length=512, key_length_mla=192, value_length_mla=128),
}  # fmt: skip


def latent() -> dict[str, Shape]:
    mixed = {**LATENT, **experts(2048, 1408, 64), **mlp(2048, 2816, "_shexp")}
    first = {f"blk.0.{name}": shape for name, shape in {**LATENT, **mlp(2048, 10944)}.items()}
    rest = {name: shape for name, shape in blocks(27, mixed).items() if not name.startswith("blk.0.")}
    return {**first, **rest, **ends(2048, 102400)}


def test_rule_56_a_latent_cache_is_one_head_of_rank_and_rope(tmp_path: Path) -> None:
    read = load_gguf(write(tmp_path / "a.gguf", "deepseek2", LATENT_KEYS, latent()))
    config = {
        "model_type": "deepseek_v2", "num_hidden_layers": 27, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 16,
        "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "vocab_size": 102400,
    }  # fmt: skip
    same(read, config)
    assert kv_bytes_per_token(read, kv_kernel("bf16")) == 27 * 576 * 2


def test_rule_56_a_file_converted_before_the_latent_cache_keeps_all_heads(tmp_path: Path) -> None:
    keys = {key: value for key, value in LATENT_KEYS.items() if not key.endswith("_mla")}
    keys |= heads(16, 16, key_length=192, value_length=128)
    read = load_gguf(write(tmp_path / "a.gguf", "deepseek2", keys, latent()))
    assert kv_bytes_per_token(read, kv_kernel("bf16")) == 27 * 16 * (192 + 128) * 2


def test_rule_56_an_indexer_selects_and_keeps_keys_only_where_it_has_tensors(tmp_path: Path) -> None:
    tensors = latent() | {f"blk.{index}.indexer.attn_k.weight": (128, 2048) for index in range(9)}
    keys = LATENT_KEYS | {"attention.indexer.head_count": 64, "attention.indexer.key_length": 128, "attention.indexer.top_k": 2048}
    read = load_gguf(write(tmp_path / "a.gguf", "deepseek32", keys, tensors))
    assert [(g.layers, g.selected, g.index_dim) for g in read.attention] == [(9, 2048, 128), (18, 2048, 0)]


def test_rule_56_compressed_layers_keep_a_window_and_one_entry_in_so_many(tmp_path: Path) -> None:
    keys = {"block_count": 3, "nextn_predict_layers": 0, "embedding_length": 256, **heads(4, 1, key_length=128, sliding_window=128)}
    keys |= {"attention.compress_ratios": [0, 4, 128, 0], "attention.indexer.head_count": 8}
    keys |= {"attention.indexer.key_length": 64, "attention.indexer.top_k": 512}
    tensors = {**blocks(3, {"attn_q_a.weight": (64, 256), **mlp(256, 512)}), "blk.1.indexer.attn_q_b.weight": (512, 64), **ends(256, 512)}
    read = load_gguf(write(tmp_path / "a.gguf", "deepseek4", keys, tensors))
    assert [(g.window, g.compression, g.index_dim, g.selected) for g in read.attention] == [
        (128, None, 0, None),
        (128, 4, 64, 512),
        (128, 128, 0, None),
    ]


MAMBA2 = {"ssm_in.weight": (2 * 512 + 2 * 128 + 8, 256), "ssm_conv1d.weight": (768, 4), "ssm_a": (8,), "ssm_out.weight": (256, 512)}
MAMBA2_KEYS = {"ssm.conv_kernel": 4, "ssm.inner_size": 512, "ssm.state_size": 128, "ssm.group_count": 1, "ssm.time_step_rank": 8}
ATTENDS, MLP, SSM = "attends", "mlp", "ssm"


def hybrid(path: Path, arch: str, kinds: list[set[str]], keys: Mapping[str, object], mixer: Mapping[str, Shape] = MAMBA2) -> Model:
    each = {ATTENDS: attention(256, 4, 2, 64), MLP: mlp(256, 512), SSM: dict(mixer)}
    tensors = {f"blk.{i}.{name}": shape for i, kind in enumerate(kinds) for part in kind for name, shape in each[part].items()}
    base = {"block_count": len(kinds), "embedding_length": 256, "attention.head_count": 4}
    return load_gguf(write(path / "a.gguf", arch, {**base, **keys}, {**tensors, **ends(256, 512)}))


def test_rule_57_gated_deltanet_layers_keep_a_state_of_heads_by_key_by_value(tmp_path: Path) -> None:
    # Qwen3.5-27B: 48 linear layers with 48 value heads and 16 key heads of 128, kernel 4.
    mixer = {"attn_qkv.weight": (10240, 256), "attn_gate.weight": (6144, 256), "ssm_conv1d.weight": (10240, 4)}
    keys = {"attention.head_count_kv": 2, "full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.inner_size": 6144, "ssm.state_size": 128}
    keys |= {"ssm.group_count": 16, "ssm.time_step_rank": 48}
    read = hybrid(tmp_path, "qwen35", ([{SSM, MLP}] * 3 + [{ATTENDS, MLP}]) * 16, keys, mixer)
    (states,) = read.states
    assert (states.mixer, states.kind, states.layers, states.heads) == ("gated_deltanet", "linear", 48, 48)
    assert state_bytes(read, 4.0) == 153_944_064.0
    assert [(group.kind, group.layers) for group in read.attention] == [("full", 16)]
    assert read.part_blocks == 0


@pytest.mark.parametrize(
    ("arch", "kinds", "kv", "layers", "parts"),
    [
        ("nemotron_h", [{SSM}, {MLP}, {ATTENDS}, {MLP}], [0, 0, 2, 0], (1, 1), 4),
        ("granitehybrid", [{SSM, MLP}, {SSM, MLP}, {ATTENDS, MLP}], [0, 0, 2], (1, 2), 0),
        ("falcon-h1", [{SSM, ATTENDS, MLP}] * 3, 2, (3, 3), 0),
        ("mamba2", [{SSM}] * 3, 0, (0, 3), 3),
    ],
)  # fmt: skip
def test_rule_57_layers_hold_what_their_tensors_say(
    tmp_path: Path, arch: str, kinds: list[set[str]], kv: object, layers: tuple[int, int], parts: int
) -> None:
    read = hybrid(tmp_path, arch, kinds, {"attention.head_count_kv": kv, **MAMBA2_KEYS})
    assert (sum(g.layers for g in read.attention), sum(s.layers for s in read.states)) == layers
    assert read.part_blocks == parts
    assert (read.states[0].state_elements, read.states[0].conv_elements, read.states[0].heads) == (512 * 128, 3 * (512 + 256), 8)


def test_rule_57_short_convolutions_keep_their_window_alone(tmp_path: Path) -> None:
    mixer = {"shortconv.conv.weight": (256, 3), "shortconv.in_proj.weight": (768, 256), "shortconv.out_proj.weight": (256, 256)}
    kinds = [{SSM, MLP}, {SSM, MLP}, {ATTENDS, MLP}]
    read = hybrid(tmp_path, "lfm2", kinds, {"attention.head_count_kv": [0, 0, 2], "shortconv.l_cache": 3}, mixer)
    (states,) = read.states
    assert (states.kind, states.layers, states.state_elements, states.conv_elements) == ("conv", 2, 0, 512)


def test_rule_57_kimi_delta_attention_keeps_no_cache_though_it_has_queries(tmp_path: Path) -> None:
    mixer = {**attention(256, 4, 4, 64), "ssm_conv1d_q.weight": (256, 4)}
    keys = {"attention.head_count_kv": [0, 0, 0, 2], "ssm.conv_kernel": 4, "kda.head_dim": 64}
    read = hybrid(tmp_path, "kimi-linear", [{SSM, MLP}] * 3 + [{ATTENDS, MLP}], keys, mixer)
    assert (read.states[0].layers, read.states[0].state_elements, read.states[0].conv_elements) == (3, 4 * 64 * 64, 3 * 3 * 256)
    assert [group.layers for group in read.attention] == [1]


def test_rule_54_gemma_3n_shares_the_cache_of_its_last_layers(tmp_path: Path) -> None:
    keys = {"block_count": 30, "embedding_length": 256, **heads(4, 2, sliding_window=512, shared_kv_layers=10)}
    tensors = {
        **blocks(30, {**attention(256, 4, 2, 64), **mlp(256, 512)}),
        **ends(256, 512, True),
        "per_layer_token_embd.weight": (512, 7680),
    }
    read = load_gguf(write(tmp_path / "a.gguf", "gemma3n", keys, tensors))
    assert sum(group.layers for group in read.attention if group.shares_kv) == 10
    assert kv_bytes_per_token(read, kv_kernel("bf16")) == 20 * 2 * 128 * 2
    assert read.parameters.embedding == 512 * 256 + 512 * 7680


def test_gpt_oss_stores_its_experts_in_mxfp4_and_the_rest_wider(tmp_path: Path) -> None:
    layer = {
        **attention(2880, 64, 8, 64), "attn_sinks.weight": (64,), "attn_q.bias": (4096,), "attn_k.bias": (512,), "attn_v.bias": (512,),
        "attn_output.bias": (2880,), "post_attention_norm.weight": (2880,), **experts(2880, 2880, 32), "ffn_gate_inp.bias": (32,),
        **{f"ffn_{n}_exps.bias": (32, 2880) for n in ("gate", "up", "down")},
    }  # fmt: skip
    keys = {"block_count": 24, "embedding_length": 2880, "expert_count": 32, "expert_used_count": 4, "context_length": 131072}
    keys |= heads(64, 8, key_length=64, value_length=64, sliding_window=128)
    kinds = {"exps.weight": GGMLQuantizationType.MXFP4, "bias": F32}
    path = write(tmp_path / "a.gguf", "gpt-oss", keys, {**blocks(24, layer), **ends(2880, 201088)}, GGMLQuantizationType.Q8_0, **kinds)
    read = load_gguf(path)
    config = {
        "model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4, "vocab_size": 201088,
        "sliding_window": 128, "max_position_embeddings": 131072,
    }  # fmt: skip
    same(read, config)
    assert (read.stored["experts"], read.stored["attention"]) == ("mxfp4_gguf", "q8_0")
    kernels = weight_kernels(read, be.engine("llamacpp"), be.hardware("h100-sxm").device)
    assert kernels["experts"].bytes == pytest.approx((17 / 32 * 2880 + 4) / (2880 + 1))  # the biases beside them in 32 bits


def mtp_file(path: Path) -> Path:
    layer = {**attention(256, 4, 2, 64), "post_attention_norm.weight": (256,), **experts(256, 128, 8), **mlp(256, 128, "_shexp")}
    extra = {"nextn.eh_proj.weight": (256, 512), "nextn.embed_tokens.weight": (512, 256), "nextn.shared_head_head.weight": (512, 256)}
    tensors = {**blocks(5, layer), **{f"blk.4.{name}": shape for name, shape in extra.items()}, **ends(256, 512)}
    keys = {"block_count": 5, "nextn_predict_layers": 1, "embedding_length": 256, "expert_count": 8, "expert_used_count": 2, **heads(4, 2)}
    return write(path / "a.gguf", "glm4moe", keys, tensors, GGMLQuantizationType.Q8_0)


def test_rule_53_the_block_count_includes_the_mtp_layers_which_are_counted_apart(tmp_path: Path) -> None:
    read = load_gguf(mtp_file(tmp_path))
    assert (read.layers, read.mtp_layers) == (4, 1)
    each = 256 * 64 * 12 + 2 * 256 + 3 * 8 * 256 * 128 + 8 * 256 + 3 * 256 * 128
    assert read.mtp_parameters == each + 256 * 512
    assert read.parameters.total == 4 * each + 2 * 512 * 256 + 256


def test_trap_18_one_fact_under_other_names_gives_the_same_cache(llama: Path, tmp_path: Path) -> None:
    per_layer = LLAMA_KEYS | heads([32] * 32, [8] * 32, key_length=128, value_length=128)  # type: ignore[arg-type]
    other = write(tmp_path / "b.gguf", "llama", per_layer, LLAMA)
    assert load_gguf(llama).attention == load_gguf(other).attention == be.model("llama-3.1-8b").attention


def split(folder: Path) -> list[Path]:
    names = list(LLAMA)
    parts = []
    for part in range(3):
        keys = {**(LLAMA_KEYS if part == 0 else {}), "split.no": part, "split.count": 3}
        path = folder / f"big-{part + 1:05}-of-00003.gguf"
        parts.append(write(path, "llama", keys, {name: LLAMA[name] for name in names[part::3]}))
    return parts


def test_a_set_of_parts_is_one_model_whichever_part_is_named(llama: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    parts = split(folder)
    (folder / "mmproj-big.gguf").write_bytes(b"")
    whole = load_gguf(llama)
    for path in (*parts, folder):
        read = load_gguf(path)
        assert (read.name, read.parameters, read.attention, read.stored_bytes) == (
            "big",
            whole.parameters,
            whole.attention,
            whole.stored_bytes,
        )
    parts[1].unlink()
    with pytest.raises(InputError, match=r"big-00002-of-00003\.gguf is missing"):
        load_gguf(parts[0])


@pytest.mark.parametrize(
    ("keys", "tensors", "says"),
    [
        ({"block_count": 31}, {}, "31 layers"),
        ({"block_count": 33}, {}, "33 layers"),
        ({"vocab_size": 128000}, {}, "4096 × 128000"),
        ({"attention.head_count_kv": 4}, {}, "attn_k.weight is 4096 × 1024 where the metadata asks for 512"),
        ({"attention.head_count_kv": 7}, {}, "32"),
        ({"attention.head_count": [32, 32]}, {}, "2 entries for 32 layers"),
        ({"attention.head_count_kv": [8] * 31 + [0]}, {}, "disagree on layer 31"),
        ({"expert_count": 8, "expert_used_count": 2}, {}, "8 experts"),
        ({"block_count": 2**31}, {}, "block_count"),
        ({}, {"blk.3.ssm_conv1d.weight": (768, 4)}, "recurrent state"),
    ],
)  # fmt: skip
def test_metadata_and_tensors_that_disagree_are_one_line(tmp_path: Path, keys: Keys, tensors: Mapping[str, Shape], says: str) -> None:
    path = write(tmp_path / "a.gguf", "llama", {**LLAMA_KEYS, **keys}, {**LLAMA, **tensors})
    with pytest.raises(InputError) as refused:
        load_gguf(path)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_bytes_of_every_ggml_family_are_those_of_ggml() -> None:
    own = {"q4_k_m": None, "mxfp4_gguf": "MXFP4"}
    types = {kind.name.lower(): size / block for kind, (block, size) in GGML_QUANT_SIZES.items()}
    for name in weight_names():
        kind = own.get(name, name.upper())
        if kind is not None and kind.lower() in types and name != "nvfp4" and name != "mxfp4":
            assert weight_kernel(name).bytes == types[kind.lower()], name


@pytest.mark.parametrize(
    "kind", [t for t in GGMLQuantizationType if t.name[:1] in "FBQIMT" and not t.name.startswith(("I8", "I1", "I3", "I6", "F64"))]
)
def test_every_common_ggml_type_runs_at_its_own_bytes_or_is_refused_by_name(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    keys = {"block_count": 2, "embedding_length": 256, **heads(4, 2)}
    path = write(tmp_path / "a.gguf", "llama", keys, {**blocks(2, {**attention(256, 4, 2, 64), **mlp(256, 512)}), **ends(256, 512)}, kind)
    if kind.name in ("Q8_1", "Q8_K", "Q1_0"):
        with pytest.raises(NotModelledError, match=kind.name):
            load_gguf(path)
        return
    read = load_gguf(path)
    kernels = weight_kernels(read, be.engine("llamacpp"), be.hardware("rtx-4090").device)
    block, size = GGML_QUANT_SIZES[kind]
    assert kernels["mlp"].bytes == size / block
    assert weight_bytes(read, kernels) == sum(read.stored_bytes.values())


def test_off_means_sixteen_bits_and_another_type_its_own_bytes(llama: Path) -> None:
    d = resolve(flags={"model": str(llama), "hardware": "rtx-4090", "batch": 1, "context": 1000, "output": 100}).deployment
    assert weight_quant.setting_on(d) == "q4_k_m"
    off = weight_quant.remove(d)
    kernels = weight_kernels(off.model, off.engine, off.hardware.device)
    assert weight_bytes(off.model, kernels) == 2.0 * d.model.parameters.total
    again = weight_quant.apply(off, "q4_k_m")
    as_filed = weight_kernels(again.model, again.engine, again.hardware.device)
    assert weight_bytes(again.model, as_filed) == sum(d.model.stored_bytes.values())
    wider = weight_quant.apply(d, "q8_0")
    assert weight_kernels(wider.model, wider.engine, wider.hardware.device)["mlp"].bytes == 34 / 32


def test_a_gguf_file_is_served_by_llama_cpp_unless_an_engine_is_named(llama: Path) -> None:
    flags = {"model": str(llama), "hardware": "h100-sxm", "batch": 1, "context": 1000, "output": 100}
    unnamed = resolve(flags=flags)
    assert unnamed.deployment.engine.name == "llamacpp"
    assert unnamed.deployment.provenance["engine.name"] == "assumed"
    assert [m.key for m in unnamed.warnings if "gguf" in m.key] == ["warning.gguf_engine"]
    assert [m.key for m in resolve(flags={**flags, "engine": "vllm"}).warnings if "gguf" in m.key] == ["warning.gguf_experimental"]
    assert not [m.key for m in resolve(flags={**flags, "engine": "llama.cpp"}).warnings if "gguf" in m.key]
    with pytest.raises(NotModelledError, match="does not read GGUF"):
        resolve(flags={**flags, "engine": "trtllm"})


def test_the_head_is_what_the_gguf_library_reads(llama: Path) -> None:
    ours, theirs = read_head(llama), GGUFReader(llama)
    assert {t.name: (t.dims, t.kind, t.elements, t.bytes) for t in ours.tensors} == {
        t.name: (tuple(t.shape.tolist()), t.tensor_type.name, t.n_elements, t.n_bytes) for t in theirs.tensors
    }
    plain = {key: field.contents() for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert ours.values == plain
    assert GGUFValueType.UINT32 in theirs.fields["llama.block_count"].types


@pytest.mark.skipif("BREAKEVEN_GGUF" not in os.environ, reason="BREAKEVEN_GGUF does not name SmolLM2-135M-Instruct as a GGUF file")
def test_a_real_file_is_read_as_it_is() -> None:
    path = Path(os.environ["BREAKEVEN_GGUF"])
    read, library = load_gguf(path), GGUFReader(path)
    assert kv_bytes_per_token(read, kv_kernel("bf16")) == 23_040
    assert read.parameters.total == sum(tensor.n_elements for tensor in library.tensors) == 134_515_008
    assert sum(read.stored_bytes.values()) == sum(tensor.n_bytes for tensor in library.tensors)
    assert replace(read.parameters, head=0) == replace(be.model("smollm2-135m").parameters, head=0)


def test_the_bandwidth_shares_of_k_and_iq_types_are_those_of_the_public_rows(shared: Path) -> None:
    rows = [
        r
        for r in csv.DictReader((shared / "data/lever_points.csv").read_text(encoding="utf-8").splitlines())
        if r["source"].startswith("llama.cpp tools/quantize")
    ]
    found = {
        m[1]: (float(m[2]), 1000 / float(r["value_on"])) for r in rows if (m := re.search(r"->(\w+)\(([\d.]+) bpw\)", r["lever_setting"]))
    }
    wide, slow = 16.0005, 1000 / float(rows[0]["value_off"])
    bits, quick = found["Q8_0"]
    a = (slow - quick) / (wide - bits / 0.95)
    fixed = slow - a * wide
    for row, name in {"Q2_K": "q2_k", "Q3_K_S": "q3_k", "Q5_K_S": "q5_k", "Q6_K": "q6_k", "IQ4_XS": "iq4_xs", "IQ2_XXS": "iq2_xxs"}.items():
        bits, ms = found[row]
        assert weight_kernel(name).phi["default"] == pytest.approx(a * bits / (ms - fixed), abs=0.006), row
