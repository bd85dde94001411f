"""A GGUF file read into a model: shapes from its metadata, counts and bytes from its tensors, whatever disagrees refused."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from breakeven.errors import InputError
from breakeven.origin.gguf_engines import SOURCE
from breakeven.origin.gguf_files import heads_of, in_folder, model_name
from breakeven.origin.gguf_head import Listed
from breakeven.origin.gguf_keys import Keys, keys_of
from breakeven.origin.gguf_layers import attention_groups, part_blocks, state_groups
from breakeven.origin.gguf_tensors import Stored, kernel_formats, stored
from breakeven.origin.values import shown
from breakeven.spec.model import TENSOR_CLASSES, Experts, Model


def is_gguf(path: Path) -> bool:
    """Whether a path names a GGUF file, or a folder that holds one and no configuration."""
    if path.suffix.lower() == ".gguf":
        return True
    # os.path, since a name that no file can have is for the reader of configurations to refuse.
    return os.path.isdir(path) and not (path / "config.json").exists() and in_folder(path) is not None


def load_gguf(path: Path) -> Model:
    """The model of a GGUF file, of any part of a set, or of a folder that holds one set."""
    file = (in_folder(path) if os.path.isdir(path) else None) or path
    heads = heads_of(file)
    keys = keys_of(heads[0].values, heads[0].where)
    layers = keys.layers
    found = stored(heads, layers)
    _check_layers(keys, found)
    hidden, vocabulary = keys.count("embedding_length"), _vocabulary(keys, found)
    formats = kernel_formats(found, keys.where)
    return Model(
        name=model_name(file),
        family=keys.arch,
        layers=layers,
        hidden=hidden,
        vocabulary=vocabulary,
        attention=attention_groups(keys, found),
        states=state_groups(keys, found),
        part_blocks=part_blocks(keys, found),
        parameters=found.parameters,
        experts=_experts(keys, found),
        tied="output.weight" not in found.outside,
        dtype="bfloat16" if formats.get(_largest(found)) == "bf16" else "float16",
        max_context=keys.optional("context_length", low=1),
        stored=formats,
        stored_bytes=found.bytes,
        mtp_layers=keys.mtp_layers,
        mtp_parameters=found.mtp_parameters,
        sources=_sources(keys, len(heads)),
    )


def _sources(keys: Keys, parts: int) -> Mapping[str, str]:
    from gguf.constants import LlamaFileType

    number, title = keys.values.get("general.file_type"), keys.values.get("general.name")
    named_types = {int(kind): kind.name.removeprefix("MOSTLY_").removeprefix("ALL_") for kind in LlamaFileType}
    kind = named_types.get(number, "file type not written") if isinstance(number, int) else "file type not written"
    file = keys.where + (f" and {parts - 1} more parts" if parts > 1 else "")
    named = f" ({shown(title)})" if isinstance(title, str) and title else ""
    return {
        SOURCE: f"{kind}, {keys.arch}{named}",
        "shape": f"metadata of {file}",
        "parameters": f"tensors of {file}",
        "stored": f"tensors of {file}: {kind}",
        "dtype": "llama.cpp computes quantised weights in fp16",
    }


def _largest(found: Stored) -> str:
    return max(TENSOR_CLASSES, key=lambda name: getattr(found.parameters, name))


def _check_layers(keys: Keys, found: Stored) -> None:
    """As many layers as the metadata says, none left out. MTP layers may have been left out in the conversion."""
    wanted, held = keys.layers, sorted(found.layers)
    total = wanted + keys.mtp_layers
    if held != list(range(wanted)) and held != list(range(total)):
        missing = next((index for index in range(wanted) if index not in found.layers), None)
        count = len(held)
        raise InputError("gguf_layers_disagree", where=keys.where, layers=total, held=count, odd=held[-1] if missing is None else missing)


def _vocabulary(keys: Keys, found: Stored) -> int:
    """Rows of the embedding, which are what the metadata says of the vocabulary."""
    table = found.outside.get("token_embd.weight")
    if table is None or len(table.dims) < 2:
        raise InputError("gguf_no_tensor", where=keys.where, tensor="token_embd.weight")
    tokens = keys.values.get("tokenizer.ggml.tokens")
    listed = tokens.entries if isinstance(tokens, Listed) else None
    written = keys.optional("vocab_size", low=1) or listed or table.dims[1]
    hidden = keys.count("embedding_length")
    if table.dims[0] != hidden or table.dims[1] != written:
        shape, wanted = " × ".join(map(str, table.dims)), f"{hidden} × {written}"
        raise InputError("gguf_shape_disagrees", where=keys.where, tensor=table.name, shape=shape, wanted=wanted)
    return table.dims[1]


def _experts(keys: Keys, found: Stored) -> Experts | None:
    """The mixture, its layers told by their tensors."""
    count = keys.optional("expert_count") or 0
    mixed = [index for index in range(keys.layers) if any("_exps." in name for name in found.layers[index])]
    if not mixed:
        if count > 1:
            raise InputError("gguf_no_experts", where=keys.where, experts=count)
        return None
    top_k = keys.count("expert_used_count")
    if top_k > count:
        raise InputError("config_top_k", where=keys.where, top_k=top_k, experts=count)
    for index in mixed:
        _check_experts(keys, found, index, count)
    _check_mixed(keys, mixed)
    return Experts(count=count, top_k=top_k, layers=len(mixed))


def _check_experts(keys: Keys, found: Stored, index: int, count: int) -> None:
    for name, tensor in found.layers[index].items():
        if name.endswith("_exps.weight") and tensor.dims[-1] != count:
            shape = " × ".join(map(str, tensor.dims))
            raise InputError("gguf_shape_disagrees", where=keys.where, tensor=tensor.name, shape=shape, wanted=count)


def _check_mixed(keys: Keys, mixed: list[int]) -> None:
    """Where the metadata says which layers hold a mixture, the tensors say the same."""
    leading = keys.optional("leading_dense_block_count")
    step = keys.optional("interleave_moe_layer_step", low=1) or keys.optional("moe_every_n_layers", low=1)
    if leading is None and step is None:
        return
    wanted = [index for index in range(leading or 0, keys.layers) if step is None or (index + 1) % step == 0]
    odd = next((index for index in range(keys.layers) if (index in mixed) != (index in wanted)), None)
    if odd is not None:
        key = "leading_dense_block_count" if step is None else "interleave_moe_layer_step"
        raise InputError("gguf_layer_disagrees", where=keys.where, field=f"{keys.arch}.{key}", layer=odd)
