"""A Hugging Face ``config.json`` read into a model: shapes as written, parameters counted, unknown kinds refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from breakeven.errors import InputError
from breakeven.origin.architecture import Architecture, known
from breakeven.origin.config_fields import CONTEXT, HEADS, HIDDEN, LAYERS, MLP_WIDTH, VOCABULARY, Fields, table
from breakeven.origin.hf_attention import attention_groups
from breakeven.origin.hf_layers import blocks, layer_count, part_blocks
from breakeven.origin.hf_mixture import mixture
from breakeven.origin.hf_modules import held
from breakeven.origin.hf_parameters import Shape, count_parameters
from breakeven.origin.hf_quantization import storage
from breakeven.origin.hf_states import mixer, state_dtype, states
from breakeven.origin.hf_wrappers import text_fields
from breakeven.origin.mistral_params import as_config, is_params
from breakeven.origin.values import shown
from breakeven.spec.model import Model

_DTYPES = {
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float32": "bfloat16",
    "half": "float16",
    "torch.bfloat16": "bfloat16",
    "torch.float16": "float16",
    "torch.float32": "bfloat16",
}


def parse_config(config: Mapping[str, object], *, name: str, where: str) -> Model:
    """The model a ``config.json`` (or Mistral's ``params.json``) describes; ``where`` stands in the error lines."""
    if is_params(config):
        config = as_config(config, where)
    fields = text_fields(config, where)
    arch = known(fields, name)
    fields = replace(fields, defaults={**arch.defaults, **(arch.nested if fields.config is not config else {})})
    fields = _with_inner_tables(fields)
    _require_shape(fields, arch)
    layers = layer_count(fields, arch)
    shape = _shape(fields, arch, layers, tied=_tied(fields, config, arch))
    counted = count_parameters(fields, arch, shape)
    written = _first(config, fields.config, "quantization_config", "quantization")
    kept = storage(written, fields, name, held(fields, arch, shape, counted))
    dtype, dtype_source = _dtype(config, fields)
    return Model(
        name=name,
        family=fields.model_type,
        layers=layers,
        hidden=fields.count(*HIDDEN),
        vocabulary=fields.count(*VOCABULARY),
        attention=tuple(shape.attention),
        parameters=counted.parameters,
        states=states(arch, shape.mixer, shape.blocks),
        state_dtype=state_dtype(fields),
        part_blocks=part_blocks(shape.blocks),
        experts=shape.mixture.experts if shape.mixture else None,
        tied=shape.tied,
        dtype=dtype,
        max_context=_context(fields),
        stored=kept.stored,
        stored_bytes=kept.stored_bytes,
        remarks=kept.remarks,
        kv_scheme=kept.kv_scheme,
        mtp_layers=counted.mtp_layers,
        mtp_parameters=counted.mtp_parameters,
        sources={"shape": where, "parameters": f"counted from {where} (language model only)", "dtype": dtype_source},
    )


def _shape(fields: Fields, arch: Architecture, layers: int, *, tied: bool) -> Shape:
    found = blocks(fields, arch, layers)
    return Shape(
        blocks=found,
        attention=attention_groups(fields, arch, found),
        mixer=mixer(fields, arch, found),
        mixture=mixture(fields, arch, found),
        tied=tied,
    )


def _with_inner_tables(fields: Fields) -> Fields:
    """MPT and DBRX keep attention and MLP in tables of their own; the outer name wins."""
    merged: dict[str, object] = {}
    for name in ("attn_config", "ffn_config"):
        if fields.config.get(name) is not None:
            merged |= table(fields.config[name], name, fields.where)
    return replace(fields, config={**{key: value for key, value in merged.items() if key != "model_type"}, **fields.config})


def _require_shape(fields: Fields, arch: Architecture) -> None:
    asked = [HIDDEN, VOCABULARY]
    if arch.layout != "pattern":
        asked.append(LAYERS)
    if arch.layout != "mixers":
        asked.append(HEADS)
    needed = {names[0]: names for names in asked}
    if not (arch.mlp_ratio or arch.mixture or arch.mlp_width in ("searched", "none")):
        needed["intermediate_size"] = MLP_WIDTH
    fields.require(needed)


def _first(outer: Mapping[str, object], inner: Mapping[str, object], *names: str) -> object:
    return next((source[name] for source in (inner, outer) for name in names if source.get(name) is not None), None)


def _tied(fields: Fields, outer: Mapping[str, object], arch: Architecture) -> bool:
    written = _first(outer, fields.config, "tie_word_embeddings", "tie_embedding")
    if written is None:
        return arch.tied
    if not isinstance(written, bool):
        raise InputError("config_bad_flag", where=fields.where, field="tie_word_embeddings", value=shown(written))
    return written


def _dtype(outer: Mapping[str, object], fields: Fields) -> tuple[str, str]:
    """The dtype, and how it is known. Engines serve a 32-bit checkpoint at 16 bits, and so do we."""
    written = _first(outer, fields.config, "dtype", "torch_dtype")
    if written is None:
        return "bfloat16", "assumed: the configuration does not say"
    found = _DTYPES.get(written) if isinstance(written, str) else None
    if found is None:
        raise InputError("config_bad_dtype", where=fields.where, value=shown(written))
    return found, f"{fields.where}: {written}" + (", served at 16 bits" if "32" in str(written) else "")


def _context(fields: Fields) -> int | None:
    """The longest of the lengths written: Command R's position field is shorter than what the model is made for."""
    found = [fields.optional_count(name) for name in CONTEXT if fields.config.get(name) is not None]
    return max((length for length in found if length is not None), default=fields.optional_count(*CONTEXT))
