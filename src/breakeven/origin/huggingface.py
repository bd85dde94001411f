"""A Hugging Face ``config.json`` read into a model: shapes as written, parameters counted, unknown kinds refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from breakeven.errors import InputError
from breakeven.origin.architecture import Architecture, known
from breakeven.origin.config_fields import CONTEXT, HEADS, HIDDEN, LAYERS, MLP_WIDTH, VOCABULARY, Fields, table
from breakeven.origin.hf_attention import attention_groups
from breakeven.origin.hf_mixture import mixture
from breakeven.origin.hf_parameters import count_parameters
from breakeven.origin.hf_quantization import storage
from breakeven.origin.values import shown
from breakeven.spec.model import TENSOR_CLASSES, Model, Parameters

_NESTS = ("text_config", "llm_config", "language_config")
# A wrapper of vision and text may leave out the type of its text half: it follows from its own.
_TEXT_TYPE_OF = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "gemma3n": "gemma3n_text",
    "llama4": "llama4_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "mistral3": "mistral",
    "step3_vl": "step3_text",
    "step3p7": "step3p5",
}
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
    """The model a ``config.json`` describes; ``where`` stands in the error lines."""
    fields = _text_fields(config, where)
    arch = known(fields, name)
    fields = replace(fields, defaults={**arch.defaults, **(arch.nested if fields.config is not config else {})})
    fields = _with_inner_tables(fields)
    _require_shape(fields, arch)
    layers = fields.count(*LAYERS)
    attention, experts = attention_groups(fields, arch, layers), mixture(fields, arch, layers)
    tied = _tied(fields, config, arch)
    counted = count_parameters(fields, arch, layers=layers, tied=tied, attention=attention, mixture=experts)
    written = _first(config, fields.config, "quantization_config", "quantization")
    kept = storage(written, fields, name, layers=layers, classes=_classes(counted.parameters))
    dtype, dtype_source = _dtype(config, fields)
    return Model(
        name=name,
        family=fields.model_type,
        layers=layers,
        hidden=fields.count(*HIDDEN),
        vocabulary=fields.count(*VOCABULARY),
        attention=attention,
        parameters=counted.parameters,
        experts=experts.experts if experts else None,
        tied=tied,
        dtype=dtype,
        max_context=_context(fields),
        stored=kept.stored,
        kv_scheme=kept.kv_scheme,
        mtp_layers=counted.mtp_layers,
        mtp_parameters=counted.mtp_parameters,
        sources={"shape": where, "parameters": f"counted from {where} (language model only)", "dtype": dtype_source},
    )


def _text_fields(config: Mapping[str, object], where: str) -> Fields:
    outer = config.get("model_type")
    inner: Mapping[str, object] = config
    thinker = config.get("thinker_config")
    for name in ("thinker_config", *_NESTS) if thinker is not None else _NESTS:
        if inner.get(name) is not None:
            inner = table(inner[name], name, where)
    inferred = _TEXT_TYPE_OF.get(outer) if isinstance(outer, str) and inner is not config else None
    model_type = inner.get("model_type", inferred if inner is not config else outer)
    if not isinstance(model_type, str) or not model_type:
        raise InputError("config_no_model_type", where=where)
    return Fields(config=inner, where=where, model_type=shown(model_type))


def _with_inner_tables(fields: Fields) -> Fields:
    """MPT and DBRX keep attention and MLP in tables of their own; the outer name wins."""
    merged: dict[str, object] = {}
    for name in ("attn_config", "ffn_config"):
        if fields.config.get(name) is not None:
            merged |= table(fields.config[name], name, fields.where)
    return replace(fields, config={**{key: value for key, value in merged.items() if key != "model_type"}, **fields.config})


def _require_shape(fields: Fields, arch: Architecture) -> None:
    needed = {name: names for names in (LAYERS, HIDDEN, HEADS, VOCABULARY) for name in names[:1]}
    if not (arch.mlp_ratio or arch.mixture):
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


def _classes(parameters: Parameters) -> tuple[str, ...]:
    return tuple(kind for kind in TENSOR_CLASSES if getattr(parameters, kind))
