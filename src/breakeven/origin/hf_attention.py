"""Which layers attend how: a configuration's attention, layer by layer, gathered into groups of layers alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import CONTEXT, HEAD_DIM, HEADS, KV_HEADS, Fields, inner
from breakeven.origin.hf_heads import Heads, checked, heads, layer_of
from breakeven.origin.hf_layers import Block, cut, searched
from breakeven.origin.hf_sparse import block_sparse, compressed, latent
from breakeven.origin.values import shown
from breakeven.spec.model import Attention, AttentionKind

_LAYER_KINDS: Mapping[str, AttentionKind] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    # What does not attend is left out later, and what selects is told apart by its own rule.
    "linear_attention": "full",
    "mamba": "full",
    "mamba2": "full",
    "conv": "full",
    "minimax_m3_sparse": "full",
}


def attention_groups(fields: Fields, arch: Architecture, blocks: Sequence[Block]) -> tuple[Attention, ...]:
    """The groups of layers that attend alike, in the order in which they first appear."""
    per_layer = [layer for layer in attention_layers(fields, arch, blocks) if layer is not None]
    return tuple(replace(layer, layers=count) for layer, count in Counter(per_layer).items())


def attention_layers(fields: Fields, arch: Architecture, blocks: Sequence[Block]) -> list[Attention | None]:
    """The attention of each layer, None where a layer has none."""
    if not any("attention" in block for block in blocks):
        return [None] * len(blocks)
    every = _with_shared_caches(fields, arch, _LAYOUTS[arch.attends](fields, arch, len(blocks)))
    return [layer if "attention" in block else None for layer, block in zip(every, blocks, strict=True)]


def _with_shared_caches(fields: Fields, arch: Architecture, layers: list[Attention]) -> list[Attention]:
    """The last ``num_kv_shared_layers`` layers (or with ``use_cla`` all but one in a few) attend over an earlier cache."""
    if "shared_kv" not in arch.knows:
        return layers
    last = len(layers) - (fields.optional_count("num_kv_shared_layers", low=0) or 0)
    every = fields.optional_count("cla_share_factor") or 1 if fields.flag("use_cla") else 1
    if last < 1:
        raise InputError(
            "config_bad_number", where=fields.where, field="num_kv_shared_layers", value=len(layers) - last, low=0, high=len(layers) - 1
        )
    return [replace(layer, shares_kv=index >= last or index % every != 0) for index, layer in enumerate(layers)]


def _full(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    listed = _listed_kinds(fields, layers)
    return _windowed(fields, arch, listed or ["full"] * layers)


def _every_layer_windowed(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    listed = _listed_kinds(fields, layers)
    return _windowed(fields, arch, listed or ["sliding"] * layers)


def _switched_window(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    # The Qwen families write a window that is off: only use_sliding_window turns it on, from layer max_window_layers on.
    if not fields.flag("use_sliding_window"):
        return _full(fields, arch, layers)
    first = fields.optional_count("max_window_layers", low=0)
    start = 28 if first is None else first
    by_rule: list[AttentionKind] = ["sliding" if index >= start else "full" for index in range(layers)]
    return _windowed(fields, arch, _listed_kinds(fields, layers) or by_rule)


def _periodic(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    return _windowed(fields, arch, _listed_kinds(fields, layers) or _pattern(fields, arch, layers))


def _pattern(fields: Fields, arch: Architecture, layers: int) -> list[AttentionKind]:
    written = fields.raw("sliding_window_pattern", "_sliding_window_pattern")
    if isinstance(written, str):  # "LLLG": local, local, local, global
        if not written or set(written) - {"L", "G"}:
            raise InputError("config_bad_list", where=fields.where, field="sliding_window_pattern", value=shown(written))
        return ["full" if written[index % len(written)] == "G" else "sliding" for index in range(layers)]
    period = fields.optional_count("sliding_window_pattern", "_sliding_window_pattern") or arch.period
    return ["full" if (index + 1) % period == 0 else "sliding" for index in range(layers)]


def _windowed(fields: Fields, arch: Architecture, kinds: Sequence[AttentionKind]) -> list[Attention]:
    found = heads(fields, arch)
    sliding = _window(fields)
    chunk = fields.optional_count("attention_chunk_size")
    if "chunked" in kinds and chunk is None:
        fields.require({"attention_chunk_size": ("attention_chunk_size",)})
    sizes: Mapping[AttentionKind, int | None] = {"full": None, "sliding": sliding, "chunked": chunk}
    return [layer_of(found, kind if sizes[kind] else "full", sizes[kind]) for kind in kinds]


def _window(fields: Fields) -> int | None:
    """The window, or None where it is off: null, or as wide as the longest context."""
    if "sliding_window" in fields.config and fields.is_null("sliding_window"):
        return None
    window = fields.optional_count("sliding_window", low=0)
    context = fields.optional_count(*CONTEXT)
    return None if not window or (context is not None and window >= context) else window


def _listed_kinds(fields: Fields, layers: int) -> list[AttentionKind] | None:
    listed = fields.words("layer_types")
    if listed is None:
        return None
    cut(listed, "layer_types", fields, layers)
    unknown = set(listed) - set(_LAYER_KINDS)
    if unknown:
        raise NotModelledError("layer_type_unknown", where=fields.where, model_type=fields.model_type, kind=shown(sorted(unknown)[0]))
    return [_LAYER_KINDS[kind] for kind in listed[:layers]]  # a longer list goes on with the MTP layers


def _llama4(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    rope = fields.numbers("no_rope_layers")  # despite its name, 1 means rotary and therefore chunked
    if not rope:
        interval = fields.count("no_rope_layer_interval")
        rope = [int((index + 1) % interval != 0) for index in range(layers)]
    cut(rope, "no_rope_layers", fields, layers)
    by_rule: list[AttentionKind] = ["chunked" if rotary else "full" for rotary in rope[:layers]]
    return _windowed(fields, arch, _listed_kinds(fields, layers) or by_rule)


def _mimo2(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    pattern = fields.numbers("hybrid_layer_pattern") or ()
    cut(pattern, "hybrid_layer_pattern", fields, layers)
    base = heads(fields, arch)
    full = replace(base, v_dim=fields.optional_count("v_head_dim") or base.v_dim)
    local = checked(
        fields,
        Heads(
            q=fields.optional_count("swa_num_attention_heads") or full.q,
            kv=fields.optional_count("swa_num_key_value_heads") or full.kv,
            k_dim=fields.optional_count("swa_head_dim") or full.k_dim,
            v_dim=fields.optional_count("swa_v_head_dim") or full.v_dim,
        ),
    )
    window = fields.count("sliding_window")
    return [layer_of(local, "sliding", window) if slides else layer_of(full, "full") for slides in pattern[:layers]]


def _step35(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    kinds = _listed_kinds(fields, layers)
    if kinds is None:
        fields.require({"layer_types": ("layer_types",)})
    full, window = heads(fields, arch), _window(fields)
    other = inner(fields, "attention_other_setting")
    local = checked(
        fields,
        Heads(
            q=other.optional_count(*HEADS) or full.q,
            kv=other.optional_count(*KV_HEADS) or full.kv,
            k_dim=other.optional_count(*HEAD_DIM) or full.k_dim,
            v_dim=other.optional_count(*HEAD_DIM) or full.v_dim,
        ),
    )
    return [layer_of(local, "sliding", window) if kind == "sliding" and window else layer_of(full, "full") for kind in kinds or ()]


def _gemma4(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    local, window = heads(fields, arch), _window(fields)
    wide = fields.optional_count("global_head_dim") or local.k_dim
    kv = fields.optional_count("num_global_key_value_heads") or local.kv
    full = checked(fields, Heads(q=local.q, kv=kv, k_dim=wide, v_dim=wide))
    by_rule: list[AttentionKind] = ["sliding" if (index + 1) % arch.period and index + 1 < layers else "full" for index in range(layers)]
    kinds = _listed_kinds(fields, layers) or by_rule
    return [layer_of(full, "full") if kind == "full" else layer_of(local, "sliding" if window else "full", window) for kind in kinds]


def _chosen_by_search(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    """Each layer with as many query heads to a KV head as its block says."""
    q = fields.count(*HEADS)
    width = heads(replace(fields, config={**fields.config, "num_key_value_heads": q}), arch).k_dim
    found: list[Attention] = []
    for attention, _ in searched(fields, layers):
        group = attention.optional_count("n_heads_in_group") or q
        if q % group:
            raise InputError("config_heads_not_divisible", where=fields.where, heads=q, kv_heads=group)
        found.append(layer_of(Heads(q=q, kv=q // group, k_dim=width, v_dim=width), "full"))
    return found


def _half_sparse(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    return block_sparse(fields, _full(fields, arch, layers), layers)


_LAYOUTS: Mapping[str, Callable[[Fields, Architecture, int], list[Attention]]] = {
    "full": _full,
    "window": _every_layer_windowed,
    "gated_window": _switched_window,
    "period": _periodic,
    "llama4": _llama4,
    "mimo2": _mimo2,
    "step35": _step35,
    "gemma4": _gemma4,
    "mla": latent,
    "compressed": compressed,
    "block_sparse": _half_sparse,
    "block_configs": _chosen_by_search,
}
