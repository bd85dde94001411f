"""A model from its entry in the catalogue: every key known, the counts checked against the shape, every value sourced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from breakeven.errors import InputError
from breakeven.origin.config_fields import whole_number
from breakeven.origin.values import refuse_unknown, shown, switch, word
from breakeven.spec.model import TENSOR_CLASSES, Attention, AttentionKind, Experts, Model, Parameters, StateKind, States

FORMATS = (
    *("fp16", "bf16", "fp8", "fp8_weight_only", "int8", "int8_weight_only"),
    *("int4", "int4_g128", "int4_g64", "int4_g32", "mxfp4", "nvfp4", "nvfp4_weight_only", "nf4"),
)
DTYPES = ("bfloat16", "float16")
KV_SCHEMES = ("fp8", "int8", "nvfp4")
KINDS = get_args(AttentionKind)
STATE_KINDS = get_args(StateKind)
STATE_DTYPES = ("float32", "bfloat16", "float16")
CONFIDENCES = ("high", "medium", "low")
LARGEST = 10**15

_COUNTS = ("layers", "hidden", "vocabulary")
_OPTIONAL_COUNTS = ("max_context", "mtp_layers", "mtp_parameters", "part_blocks")
_NAMES = ("hf_ids", "draft_heads", "aliases")
_NEEDED = ("family", *_COUNTS, "tied", "dtype", "parameters")
_MORE = ("sources", "attention", "experts", "states", "state_dtype", "stored", "kv_scheme", "confidence", "notes")
KEYS = (*_NEEDED, *_OPTIONAL_COUNTS, *_NAMES, *_MORE)
_LAYER_COUNTS = ("layers", "q_heads", "kv_heads", "k_dim", "v_dim")
_LATENT = ("latent_rank", "rope_dim", "nope_dim", "value_dim")
_SPARSE = ("selected", "index_dim", "index_heads", "compression")
_LAYER_KEYS = ("kind", *_LAYER_COUNTS, "window", *_LATENT, *_SPARSE, "shares_kv")
_STATE_COUNTS = ("layers", "state_elements", "conv_elements", "heads")

SOURCE_OF: Mapping[str, str] = {
    "family": "shape",
    "layers": "shape",
    "hidden": "shape",
    "vocabulary": "shape",
    "tied": "shape",
    "attention": "shape",
    "experts": "shape",
    "states": "shape",
    "state_dtype": "shape",
    "part_blocks": "shape",
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
        attention=_attention(table.get("attention", []), path),
        parameters=_parameters(table["parameters"], path),
        experts=_experts(table["experts"], path) if "experts" in table else None,
        states=_states(table.get("states", []), path),
        state_dtype=_optional_one_of(table, "state_dtype", STATE_DTYPES, path),
        part_blocks=more.get("part_blocks", 0),
        tied=switch(table["tied"], f"{path}tied"),
        dtype=_one_of(table["dtype"], DTYPES, f"{path}dtype"),
        max_context=more.get("max_context"),
        stored=_stored(table.get("stored"), path),
        kv_scheme=_optional_one_of(table, "kv_scheme", KV_SCHEMES, path),
        mtp_layers=more.get("mtp_layers", 0),
        mtp_parameters=more.get("mtp_parameters", 0),
        draft_heads=_names(table, "draft_heads", path),
        hf_ids=_names(table, "hf_ids", path),
        confidence=(_optional_one_of(table, "confidence", CONFIDENCES, path) or "high") if "sources" in table else "low",
        sources=_sources(table, path) if "sources" in table else {},
    )
    _check(model, path)
    return model


def _check(model: Model, path: str) -> None:
    """The layers add up, the tables of the embedding and head have the size of the vocabulary, heads divide."""
    covered = sum(group.layers for group in model.attention)
    stateful = sum(group.layers for group in model.states)
    # A layer may hold both, and a block neither: then it is a part of a layer.
    if not model.layers - model.part_blocks <= covered + stateful or max(covered, stateful) > model.layers:
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
    if not isinstance(raw, list):
        raise InputError("not_a_list", path=f"{path}attention")
    return tuple(_layers(_table(item, f"{path}attention"), f"{path}attention.{place + 1}.") for place, item in enumerate(raw))


def _layers(table: Mapping[str, object], path: str) -> Attention:
    refuse_unknown(table, _LAYER_KEYS, path)
    kind: AttentionKind = _one_of(table.get("kind"), KINDS, f"{path}kind")  # type: ignore[assignment]
    windowed = kind in ("sliding", "chunked", "compressed")
    latent = _LATENT if kind == "mla" else ("value_dim",) if kind == "compressed" else ()
    needed = (*_LAYER_COUNTS, *latent, *(("window",) if windowed else ()))
    for key in needed:
        if key not in table:
            raise InputError("missing_key", path=path + key)
    counts = {key: _count(table, key, path, low=0 if key == "v_dim" else 1) for key in (*needed, *(key for key in _SPARSE if key in table))}
    shares = switch(table["shares_kv"], f"{path}shares_kv") if "shares_kv" in table else False
    return Attention(kind=kind, shares_kv=shares, **counts)


def _states(raw: object, path: str) -> tuple[States, ...]:
    if not isinstance(raw, list):
        raise InputError("not_a_list", path=f"{path}states")
    return tuple(_state(_table(item, f"{path}states"), f"{path}states.{place + 1}.") for place, item in enumerate(raw))


def _state(table: Mapping[str, object], path: str) -> States:
    refuse_unknown(table, ("kind", "mixer", *_STATE_COUNTS), path)
    for key in ("kind", "mixer", *_STATE_COUNTS):
        if key not in table:
            raise InputError("missing_key", path=path + key)
    kind: StateKind = _one_of(table["kind"], STATE_KINDS, f"{path}kind")  # type: ignore[assignment]
    counts = {key: _count(table, key, path, low=0 if key.endswith("elements") else 1) for key in _STATE_COUNTS}
    return States(kind=kind, mixer=word(table["mixer"], f"{path}mixer"), **counts)


def _parameters(raw: object, path: str) -> Parameters:
    table = _table(raw, f"{path}parameters")
    refuse_unknown(table, TENSOR_CLASSES, f"{path}parameters.")
    for key in TENSOR_CLASSES:
        if key not in table and key != "lookup":
            raise InputError("missing_key", path=f"{path}parameters.{key}")
    return Parameters(**{key: _count(table, key, f"{path}parameters.", low=0) for key in table})


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
