"""Models of published rows: from the catalogue, else parsed from the shared configurations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from breakeven import catalog
from breakeven.errors import BreakevenError, UnknownNameError
from breakeven.origin.huggingface import parse_config
from breakeven.spec.model import Model

PUBLIC_CONFIGS: dict[str, dict[str, object]] = {
    "llama-2-7b": {
        "model_type": "llama",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "intermediate_size": 11008,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
    },
    "qwen3-8b": {
        "model_type": "qwen3",
        "num_hidden_layers": 36,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12288,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "smollm2-1.7b": {
        "model_type": "llama",
        "num_hidden_layers": 24,
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "intermediate_size": 8192,
        "vocab_size": 49152,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    },
    "llama-160m": {
        "model_type": "llama",
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "num_attention_heads": 12,
        "num_key_value_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
    },
    "minicpm3-4b": {
        "model_type": "deepseek_v2",  # its latent attention over dense layers, by the names of the first to have it
        "num_hidden_layers": 62,
        "hidden_size": 2560,
        "num_attention_heads": 40,
        "num_key_value_heads": 40,
        "intermediate_size": 6400,
        "vocab_size": 73448,
        "q_lora_rank": 768,
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "n_routed_experts": None,
        "first_k_dense_replace": 62,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    },
}
"""Shapes that many published rows use and that are in neither place, as their public configurations give them."""
ModelOf = Callable[[str], Model | None]


def model_finder(shared: Path) -> ModelOf:
    """A function from a model's name or repository to its shape; None where it is of a kind that is not modelled."""
    known: dict[str, dict[str, object]] = {}
    with (shared / "reference" / "models.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            known.update({str(name).lower(): row for name in (row["name"], *row["hf_ids"])})
    found: dict[str, Model | None] = {}

    def model_of(name: str) -> Model | None:
        if name not in found:
            found[name] = _load(name, known)
        return found[name]

    return model_of


def _load(name: str, known: dict[str, dict[str, object]]) -> Model | None:
    try:
        return catalog.load("models", name)
    except UnknownNameError:
        row = known.get(name.lower())
    if row is None and name in PUBLIC_CONFIGS:
        return parse_config(PUBLIC_CONFIGS[name], name=name, where="public configuration")
    try:
        return parse_config(row["hf_config"], name=name, where="shared models") if row else None  # type: ignore[arg-type]
    except BreakevenError:
        return None
