"""The routed experts of a configuration: how many, how wide, on which layers, and what is shared beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import EXPERTS, SHARED_EXPERTS, SHARED_WIDTH, TOP_K, Fields
from breakeven.origin.hf_layers import Block
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
    holds: tuple[bool, ...]
    """Layers that hold a mixture."""
    beyond: bool
    """Whether the layer after the last one (the first MTP layer) would hold a mixture."""
    latent: int | None = None
    """Width the routed experts work on, where it is not the hidden size."""
    latent_norm: bool = False
    idle: int = 0
    """Experts that pass a token on as it is: routed to, without weights."""


def mixture(fields: Fields, arch: Architecture, blocks: Sequence[Block]) -> Mixture | None:
    """The mixture, or None in a dense model."""
    switched = arch.mixture_switch is not None and fields.flag(arch.mixture_switch)
    if not (arch.mixture or switched):
        _refuse_unforeseen(fields)
        return None
    if arch.mixture_optional and (fields.optional_count(*EXPERTS, low=0) or 0) < 2:
        return None
    holds = _layers_with_mixture(fields, arch, blocks)
    if not any(holds[:-1]):
        return None
    count, width = fields.count(*EXPERTS), _expert_width(fields, arch)
    idle = fields.optional_count("zero_expert_num", low=0) or 0
    return Mixture(
        experts=Experts(count=count, top_k=_top_k(fields, count, idle), layers=sum(holds[:-1])),
        width=width,
        shared_width=_shared_width(fields, arch, width),
        holds=tuple(holds[:-1]),
        beyond=holds[-1],
        latent=fields.optional_count("moe_latent_size", "routed_expert_hidden_size"),
        latent_norm=fields.flag("latent_moe_use_norm"),
        idle=idle,
    )


def _top_k(fields: Fields, count: int, idle: int) -> int:
    """Experts that work on a token: of those it is routed to, the part that is not idle."""
    top_k = fields.uniform(*TOP_K)
    if top_k is None:
        fields.require({TOP_K[0]: TOP_K})
    if top_k is None or top_k > count + idle:
        raise InputError("config_top_k", where=fields.where, top_k=top_k, experts=count + idle)
    return max(1, round(top_k * count / (count + idle)))


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
        return fields.count(arch.shared_width, low=0)
    written = fields.optional_count(*SHARED_WIDTH, low=0)
    if written is not None:
        return written
    return (fields.uniform(*SHARED_EXPERTS, low=0) or 0) * width


def _layers_with_mixture(fields: Fields, arch: Architecture, blocks: Sequence[Block]) -> list[bool]:
    """One answer a layer and one for the layer beyond; the families write it in as many ways as there are families."""
    layers = len(blocks) + 1
    if arch.layout == "pattern":
        return [*("experts" in block for block in blocks), "moe" in (fields.words("mtp_layers_block_type") or ("moe",))]
    if arch.attentions_per_layer > 1:  # two attentions and two MLPs make a layer, with one mixture beside them
        return [index % arch.attentions_per_layer == 0 for index in range(layers)]
    return _by_rule(fields, layers)


def _by_rule(fields: Fields, layers: int) -> list[bool]:
    listed = _listed(fields, layers)
    if listed is not None:
        return listed
    if fields.raw("decoder_sparse_step") is not None:
        step, dense = fields.count("decoder_sparse_step"), set(fields.numbers("mlp_only_layers") or ())
        return [index not in dense and (index + 1) % step == 0 for index in range(layers)]
    if fields.raw("expert_layer_period") is not None:
        every, first = fields.count("expert_layer_period"), fields.count("expert_layer_offset", low=0)
        return [index % every == first for index in range(layers)]
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


_SPARSE_TYPES = ("sparse", "moe", "hash_moe")


def _listed(fields: Fields, layers: int) -> list[bool] | None:
    """The layers where they are listed; an absent last one (MTP) is as the one before it."""
    if isinstance(fields.raw("moe_layer_freq"), list):
        return _padded([bool(item) for item in fields.numbers("moe_layer_freq") or ()], "moe_layer_freq", fields, layers)
    kinds = fields.words("mlp_layer_types")
    if kinds is not None:
        return _padded([kind in _SPARSE_TYPES for kind in kinds], "mlp_layer_types", fields, layers)
    enumerated = fields.raw("moe_layers_enum")
    if enumerated is not None:
        return _chosen(_numbers_in(enumerated, fields), layers)
    if fields.raw("moe_layers") is not None:
        return _chosen(fields.numbers("moe_layers") or (), layers)
    return None


def _padded(holds: list[bool], name: str, fields: Fields, layers: int) -> list[bool]:
    if len(holds) < layers - 1:
        raise InputError("config_layer_list", where=fields.where, field=name, entries=len(holds), layers=layers - 1)
    return [*holds, *holds[-1:]][:layers]


def _chosen(indices: Sequence[int], layers: int) -> list[bool]:
    chosen = set(indices)
    return [index in chosen for index in range(layers)]


def _numbers_in(value: object, fields: Fields) -> list[int]:
    parts = value.split(",") if isinstance(value, str) else []
    if not parts or not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise InputError("config_bad_list", where=fields.where, field="moe_layers_enum", value=shown(value))
    return [int(part) for part in parts]
