"""The model as vLLM loads it: weights in bf16, configuration, tokenizer.

``PYTHONPATH=tools python tools/live/snapshot.py SOURCE.gguf FOLDER``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import real_model
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CONTROL = 3
"""The type that a GGUF file gives to tokens that are no text."""


def main() -> None:
    reader, folder = GGUFReader(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer(reader).save(str(folder / "tokenizer.json"))
    held = {"config": configuration(reader), "generation_config": ends(reader), "tokenizer_config": tokenizer_configuration(reader)}
    for name, document in held.items():
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    part = folder / "model.part"
    real_model.write(part, dict(real_model.tensors(reader)))
    part.rename(folder / "model.safetensors")


def said(reader: GGUFReader, key: str) -> Any:
    return reader.fields[key].contents()


def ends(reader: GGUFReader) -> dict[str, Any]:
    return {
        "bos_token_id": said(reader, "tokenizer.ggml.bos_token_id"),
        "eos_token_id": said(reader, "tokenizer.ggml.eos_token_id"),
        "pad_token_id": said(reader, "tokenizer.ggml.eos_token_id"),
    }


def configuration(reader: GGUFReader) -> dict[str, Any]:
    heads = said(reader, "llama.attention.head_count")
    further: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "head_dim": said(reader, "llama.embedding_length") // heads,
        "rms_norm_eps": float(said(reader, "llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": float(said(reader, "llama.rope.freq_base")),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
    }
    return {**real_model.configuration(reader), **ends(reader), **further}


def tokenizer_configuration(reader: GGUFReader) -> dict[str, Any]:
    tokens = said(reader, "tokenizer.ggml.tokens")
    named = {key.replace("_id", ""): tokens[number] for key, number in ends(reader).items()}
    return named | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": said(reader, "llama.context_length"),
        "clean_up_tokenization_spaces": False,
        "chat_template": said(reader, "tokenizer.chat_template"),
    }


def tokenizer(reader: GGUFReader) -> Tokenizer:
    tokens, kinds = said(reader, "tokenizer.ggml.tokens"), said(reader, "tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in said(reader, "tokenizer.ggml.merges")]
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    made.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return made


if __name__ == "__main__":
    main()
