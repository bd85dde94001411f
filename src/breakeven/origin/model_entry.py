"""A model from its entry in the catalogue: every key known, the counts checked against the shape, every value sourced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from breakeven.errors import InputError
from breakeven.origin.config_fields import whole_number
from breakeven.origin.values import refuse_unknown, shown, switch, word
from breakeven.spec.model import TENSOR_CLASSES, Attention, AttentionKind, Experts, Model, Parameters

FORMATS = ("fp16", "bf16", "fp8", "int8", "int4_g128", "int4_g64", "int4_g32", "mxfp4", "nvfp4", "nf4")
DTYPES = ("bfloat16", "float16")
KV_SCHEMES = ("fp8", "int8", "nvfp4")
KINDS = get_args(AttentionKind)
CONFIDENCES = ("high", "medium", "low")
LARGEST = 10**15

_COUNTS = ("layers", "hidden", "vocabulary")
_OPTIONAL_COUNTS = ("max_context", "mtp_layers", "mtp_parameters")
_NAMES = ("hf_ids", "draft_heads", "aliases")
_NEEDED = ("family", *_COUNTS, "tied", "dtype", "attention", "parameters", "sources")
KEYS = (*_NEEDED, *_OPTIONAL_COUNTS, *_NAMES, "experts", "stored", "kv_scheme", "confidence", "notes")
_LAYER_COUNTS = ("layers", "q_heads", "kv_heads", "k_dim", "v_dim")
_LATENT = ("latent_rank", "rope_dim", "nope_dim", "value_dim")
_LAYER_KEYS = ("kind", *_LAYER_COUNTS, "window", *_LATENT)

SOURCE_OF: Mapping[str, str] = {
    "family": "shape",
    "layers": "shape",
    "hidden": "shape",
    "vocabulary": "shape",
    "tied": "shape",
    "attention": "shape",
    "experts": "shape",
    "max_context": "shape",
    "parameters": "parameters",
    "dtype": "dtype",
    "stored": "stored",
    "kv_scheme": "stored",
    "mtp_layers": "mtp",
    "mtp_parameters": "mtp",
    "draft_heads": "draft_heads",
    "hf_ids": "hf_ids",
}
"""Which line of ``[sources]`` stands for which value of an entry."""


def parse_entry(table: Mapping[str, object], name: str) -> Model:
    """A model from the table of its file."""
    path = f"{name}."
    refuse_unknown(table, KEYS, path)
    for key in _NEEDED:
        if key not in table:
            raise InputError("missing_key", path=path + key)
    counts = {key: _count(table, key, path) for key in _COUNTS}
    more = {key: _count(table, key, path, low=0) for key in _OPTIONAL_COUNTS if key in table}
    model = Model(
        name=name,
        family=word(table["family"], f"{path}family"),
        layers=counts["layers"],
        hidden=counts["hidden"],
        vocabulary=counts["vocabulary"],
        attention=_attention(table["attention"], path),
        parameters=_parameters(table["parameters"], path),
        experts=_experts(table["experts"], path) if "experts" in table else None,
        tied=switch(table["tied"], f"{path}tied"),
        dtype=_one_of(table["dtype"], DTYPES, f"{path}dtype"),
        max_context=more.get("max_context"),
        stored=_stored(table.get("stored"), path),
        kv_scheme=_optional_one_of(table, "kv_scheme", KV_SCHEMES, path),
        mtp_layers=more.get("mtp_layers", 0),
        mtp_parameters=more.get("mtp_parameters", 0),
        draft_heads=_names(table, "draft_heads", path),
        hf_ids=_names(table, "hf_ids", path),
        confidence=_optional_one_of(table, "confidence", CONFIDENCES, path) or "high",
        sources=_sources(table, path),
    )
    _check(model, path)
    return model


def _check(model: Model, path: str) -> None:
    """The layers add up, the tables of the embedding and head have the size of the vocabulary, heads divide."""
    covered = sum(group.layers for group in model.attention)
    if covered != model.layers:
        raise InputError("entry_layers", path=f"{path}attention", covered=covered, layers=model.layers)
    for group in model.attention:
        if group.q_heads % group.kv_heads:
            raise InputError("config_heads_not_divisible", where=f"{path}attention", heads=group.q_heads, kv_heads=group.kv_heads)
    tables = model.vocabulary * model.hidden
    head = 0 if model.tied else tables
    if model.parameters.head != head:
        raise InputError("entry_total", path=f"{path}parameters.head", total=model.parameters.head, counted=head)
    if model.experts is not None and model.experts.top_k > model.experts.count:
        raise InputError("config_top_k", where=f"{path}experts", top_k=model.experts.top_k, experts=model.experts.count)


def _count(table: Mapping[str, object], key: str, path: str, low: int = 1) -> int:
    return whole_number(table[key], key, path.rstrip("."), low=low, high=LARGEST)


def _table(raw: object, path: str) -> Mapping[str, object]:
    if not isinstance(raw, Mapping):
        raise InputError("not_a_table", path=path)
    return raw


def _attention(raw: object, path: str) -> tuple[Attention, ...]:
    if not isinstance(raw, list) or not raw:
        raise InputError("not_a_list", path=f"{path}attention")
    return tuple(_layers(_table(item, f"{path}attention"), f"{path}attention.{place + 1}.") for place, item in enumerate(raw))


def _layers(table: Mapping[str, object], path: str) -> Attention:
    refuse_unknown(table, _LAYER_KEYS, path)
    kind: AttentionKind = _one_of(table.get("kind"), KINDS, f"{path}kind")  # type: ignore[assignment]
    needed = (*_LAYER_COUNTS, *(_LATENT if kind == "mla" else ()), *(("window",) if kind in ("sliding", "chunked") else ()))
    for key in needed:
        if key not in table:
            raise InputError("missing_key", path=path + key)
    counts = {key: _count(table, key, path, low=0 if key == "v_dim" else 1) for key in needed}
    return Attention(kind=kind, **counts)


def _parameters(raw: object, path: str) -> Parameters:
    table = _table(raw, f"{path}parameters")
    refuse_unknown(table, TENSOR_CLASSES, f"{path}parameters.")
    for key in TENSOR_CLASSES:
        if key not in table:
            raise InputError("missing_key", path=f"{path}parameters.{key}")
    return Parameters(**{key: _count(table, key, f"{path}parameters.", low=0) for key in TENSOR_CLASSES})


def _experts(raw: object, path: str) -> Experts:
    table = _table(raw, f"{path}experts")
    keys = ("count", "top_k", "layers")
    refuse_unknown(table, keys, f"{path}experts.")
    for key in keys:
        if key not in table:
            raise InputError("missing_key", path=f"{path}experts.{key}")
    return Experts(**{key: _count(table, key, f"{path}experts.") for key in keys})


def _stored(raw: object, path: str) -> Mapping[str, str]:
    table = _table({} if raw is None else raw, f"{path}stored")
    refuse_unknown(table, TENSOR_CLASSES, f"{path}stored.")
    return {key: _one_of(value, FORMATS, f"{path}stored.{key}") for key, value in table.items()}


def _sources(table: Mapping[str, object], path: str) -> Mapping[str, str]:
    raw = _table(table["sources"], f"{path}sources")
    refuse_unknown(raw, sorted(set(SOURCE_OF.values())), f"{path}sources.")
    for key, source in SOURCE_OF.items():
        if table.get(key) and source not in raw:
            raise InputError("entry_unsourced", path=path + key, name=source)
    return {key: word(value, f"{path}sources.{key}") for key, value in raw.items()}


def _names(table: Mapping[str, object], key: str, path: str) -> tuple[str, ...]:
    raw = table.get(key, [])
    if not isinstance(raw, list):
        raise InputError("not_a_list", path=path + key)
    return tuple(word(item, path + key) for item in raw)


def _one_of(value: object, names: Sequence[str], path: str) -> str:
    if not isinstance(value, str) or value not in names:
        raise InputError("not_one_of", path=path, value=shown(value), names=", ".join(names))
    return value


def _optional_one_of(table: Mapping[str, object], key: str, names: Sequence[str], path: str) -> str | None:
    return _one_of(table[key], names, path + key) if key in table else None
