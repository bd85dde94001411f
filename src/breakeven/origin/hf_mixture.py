"""The routed experts of a configuration: how many, how wide, on which layers, and what is shared beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import EXPERTS, SHARED_EXPERTS, SHARED_WIDTH, TOP_K, Fields
from breakeven.origin.values import shown
from breakeven.spec.model import Experts


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A mixture of experts as counted."""

    experts: Experts
    width: int
    """Inner width of one routed expert."""
    shared_width: int
    """Inner width of all shared experts of a layer together; 0 without."""
    beyond: bool
    """Whether the layer after the last one (the first MTP layer) would hold a mixture."""


def mixture(fields: Fields, arch: Architecture, layers: int) -> Mixture | None:
    """The mixture, or None in a dense model."""
    switched = arch.mixture_switch is not None and fields.flag(arch.mixture_switch)
    if not (arch.mixture or switched):
        _refuse_unforeseen(fields)
        return None
    count = fields.count(*EXPERTS)
    top_k = fields.uniform(*TOP_K)
    if top_k is None:
        fields.require({TOP_K[0]: TOP_K})
    if top_k is None or top_k > count:
        raise InputError("config_top_k", where=fields.where, top_k=top_k, experts=count)
    holds = _layers_with_mixture(fields, layers + 1)
    width = _expert_width(fields, arch)
    found = Experts(count=count, top_k=top_k, layers=sum(holds[:layers]))
    return Mixture(experts=found, width=width, shared_width=_shared_width(fields, arch, width), beyond=holds[layers])


def _refuse_unforeseen(fields: Fields) -> None:
    count = fields.optional_count(*EXPERTS, low=0)
    if count is not None and count > 1:
        raise NotModelledError("mixture_unforeseen", where=fields.where, model_type=fields.model_type, experts=count)


def _expert_width(fields: Fields, arch: Architecture) -> int:
    width = fields.uniform(arch.expert_width)
    if width is None:
        raise InputError("config_missing_fields", where=fields.where, model_type=fields.model_type, fields=arch.expert_width)
    return width


def _shared_width(fields: Fields, arch: Architecture, width: int) -> int:
    if arch.shared_width is not None:
        return fields.count(arch.shared_width)
    written = fields.optional_count(*SHARED_WIDTH, low=0)
    if written is not None:
        return written
    return (fields.uniform(*SHARED_EXPERTS, low=0) or 0) * width


def _layers_with_mixture(fields: Fields, layers: int) -> list[bool]:
    """One answer a layer; the families write it in as many ways as there are families."""
    listed = _listed(fields, layers)
    if listed is not None:
        return listed
    if fields.raw("decoder_sparse_step") is not None:
        step, dense = fields.count("decoder_sparse_step"), set(fields.numbers("mlp_only_layers") or ())
        return [index not in dense and (index + 1) % step == 0 for index in range(layers)]
    if fields.raw("interleave_moe_layer_step") is not None:
        step = fields.count("interleave_moe_layer_step")
        return [(index + 1) % step == 0 for index in range(layers)]
    if fields.raw("moe_layer_start_index") is not None:
        start, end = fields.count("moe_layer_start_index", low=0), fields.optional_count("moe_layer_end_index", low=0)
        interval = fields.optional_count("moe_layer_interval") or 1
        return [start <= index <= (layers if end is None else end) and (index + 1) % interval == 0 for index in range(layers)]
    first = fields.optional_count("first_k_dense_replace", "num_dense_layers", low=0) or 0
    every = fields.optional_count("moe_layer_freq") or 1
    return [index >= first and index % every == 0 for index in range(layers)]


def _listed(fields: Fields, layers: int) -> list[bool] | None:
    """The layers where they are listed; an absent last one (MTP) counts as dense."""
    if isinstance(fields.raw("moe_layer_freq"), list):
        return _padded([bool(item) for item in fields.numbers("moe_layer_freq") or ()], "moe_layer_freq", fields, layers)
    kinds = fields.words("mlp_layer_types")
    if kinds is not None:
        return _padded([kind == "sparse" for kind in kinds], "mlp_layer_types", fields, layers)
    enumerated = fields.raw("moe_layers_enum")
    if enumerated is not None:
        return _chosen(_numbers_in(enumerated, fields), layers)
    if fields.raw("moe_layers") is not None:
        return _chosen(fields.numbers("moe_layers") or (), layers)
    return None


def _padded(holds: list[bool], name: str, fields: Fields, layers: int) -> list[bool]:
    if len(holds) < layers - 1:
        raise InputError("config_layer_list", where=fields.where, field=name, entries=len(holds), layers=layers - 1)
    return [*holds, False][:layers]


def _chosen(indices: Sequence[int], layers: int) -> list[bool]:
    chosen = set(indices)
    return [index in chosen for index in range(layers)]


def _numbers_in(value: object, fields: Fields) -> list[int]:
    parts = value.split(",") if isinstance(value, str) else []
    if not parts or not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise InputError("config_bad_list", where=fields.where, field="moe_layers_enum", value=shown(value))
    return [int(part) for part in parts]
