"""GGUF files with every tensor they should have and a hole where its data would be: large models that cost nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter

Shape = tuple[int, ...]
Keys = Mapping[str, object]
F32 = GGMLQuantizationType.F32
Q4_K = GGMLQuantizationType.Q4_K


def write(
    path: Path, arch: str, keys: Keys, tensors: Mapping[str, Shape], kind: GGMLQuantizationType = Q4_K, **kinds: GGMLQuantizationType
) -> Path:
    """A GGUF file as converters write it, its data a hole: shapes in NumPy's order, vectors in 32 bits."""
    writer = GGUFWriter(path, arch)
    for key, value in keys.items():
        name = key if "." in key and key.split(".")[0] in ("general", "tokenizer", "split") else f"{arch}.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, bool):
            writer.add_bool(name, value)
        else:
            (writer.add_string if isinstance(value, str) else writer.add_uint32)(name, value)  # type: ignore[operator]
    for name, shape in tensors.items():
        stored = next((kinds[part] for part in kinds if part in name), kind)
        stored = F32 if len(shape) == 1 or shape[-1] % GGML_QUANT_SIZES[stored][0] else stored
        block, size = GGML_QUANT_SIZES[stored]
        writer.add_tensor_info(name, shape, np.dtype(np.float16), int(np.prod(shape)) // block * size, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    sizes = [int(np.prod(shape)) * 4 + 32 for shape in tensors.values()]
    os.truncate(path, path.stat().st_size + sum(sizes) + 4096)
    return path


def blocks(layers: int, each: Mapping[str, Shape]) -> dict[str, Shape]:
    return {f"blk.{index}.{name}": shape for index in range(layers) for name, shape in each.items()}


def ends(hidden: int, vocabulary: int, tied: bool = False) -> dict[str, Shape]:
    head = {} if tied else {"output.weight": (vocabulary, hidden)}
    return {"token_embd.weight": (vocabulary, hidden), "output_norm.weight": (hidden,), **head}


def attention(hidden: int, q: int, kv: int, wide: int, norms: bool = False) -> dict[str, Shape]:
    found: dict[str, Shape] = {
        "attn_norm.weight": (hidden,),
        "attn_q.weight": (q * wide, hidden),
        "attn_k.weight": (kv * wide, hidden),
        "attn_v.weight": (kv * wide, hidden),
        "attn_output.weight": (hidden, q * wide),
    }
    return found | ({"attn_q_norm.weight": (wide,), "attn_k_norm.weight": (wide,)} if norms else {})


def mlp(hidden: int, width: int, suffix: str = "") -> dict[str, Shape]:
    up = {f"ffn_{name}{suffix}.weight": (width, hidden) for name in ("gate", "up")}
    return {**up, f"ffn_down{suffix}.weight": (hidden, width)}


def experts(hidden: int, width: int, count: int) -> dict[str, Shape]:
    up = {f"ffn_{name}_exps.weight": (count, width, hidden) for name in ("gate", "up")}
    return {**up, "ffn_down_exps.weight": (count, hidden, width), "ffn_gate_inp.weight": (count, hidden)}


def heads(q: int, kv: object, **more: object) -> dict[str, object]:
    return {"attention.head_count": q, "attention.head_count_kv": kv, **{f"attention.{name}": value for name, value in more.items()}}
