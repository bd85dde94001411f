"""Which layers attend how: a configuration's attention, layer by layer, gathered into groups of layers alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import CONTEXT, HEAD_DIM, HEADS, HIDDEN, KV_HEADS, Fields, table
from breakeven.origin.values import shown
from breakeven.spec.model import Attention, AttentionKind

_LAYER_KINDS: Mapping[str, AttentionKind] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
}


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The heads of a layer."""

    q: int
    kv: int
    k_dim: int
    v_dim: int


def attention_groups(fields: Fields, arch: Architecture, layers: int) -> tuple[Attention, ...]:
    """The groups of layers that attend alike, in the order in which they first appear."""
    per_layer = _LAYOUTS[arch.attends](fields, arch, layers)
    return tuple(replace(layer, layers=count) for layer, count in Counter(per_layer).items())


def heads(fields: Fields, arch: Architecture) -> Heads:
    """The heads every layer has, unless its kind says otherwise."""
    q = fields.count(*HEADS)
    kv = _kv_heads(fields, arch, q)
    k_dim = fields.optional_count(*HEAD_DIM)
    if k_dim is None:
        hidden = fields.count(*HIDDEN)
        if hidden % q:
            raise InputError("config_hidden_not_divisible", where=fields.where, hidden=hidden, heads=q)
        k_dim = hidden // q
    return _checked(fields, Heads(q=q, kv=kv, k_dim=k_dim, v_dim=k_dim))


def _checked(fields: Fields, found: Heads) -> Heads:
    if found.q % found.kv:
        raise InputError("config_heads_not_divisible", where=fields.where, heads=found.q, kv_heads=found.kv)
    return found


def _kv_heads(fields: Fields, arch: Architecture, q: int) -> int:
    if arch.heads == "falcon" and not fields.flag("new_decoder_architecture"):
        return 1 if fields.flag("multi_query", True) else fields.optional_count(*KV_HEADS) or q
    if arch.heads == "multi_query":
        return 1 if fields.flag("multi_query", True) else q
    if arch.heads == "mpt":
        kind = fields.raw("attn_type") or "multihead_attention"
        if kind == "multiquery_attention":
            return 1
        return fields.count("kv_n_heads") if kind == "grouped_query_attention" else q
    if fields.is_null("num_key_value_heads") and "num_key_value_heads" in fields.config:
        return q  # written as null: as many as the query heads, whatever the class's default for an absent field
    return fields.optional_count(*KV_HEADS) or q


def _layer(found: Heads, kind: AttentionKind, window: int | None = None) -> Attention:
    return Attention(
        kind=kind,
        layers=1,
        q_heads=found.q,
        kv_heads=found.kv,
        k_dim=found.k_dim,
        v_dim=found.v_dim,
        window=None if kind == "full" else window,
    )


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
    return [_layer(found, kind if sizes[kind] else "full", sizes[kind]) for kind in kinds]


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
    if len(listed) < layers:
        raise InputError("config_layer_list", where=fields.where, field="layer_types", entries=len(listed), layers=layers)
    unknown = set(listed) - set(_LAYER_KINDS)
    if unknown:
        raise NotModelledError("layer_type_unknown", where=fields.where, model_type=fields.model_type, kind=shown(sorted(unknown)[0]))
    return [_LAYER_KINDS[kind] for kind in listed[:layers]]  # a longer list goes on with the MTP layers


def _llama4(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    rope = fields.numbers("no_rope_layers")  # despite its name, 1 means rotary and therefore chunked
    if not rope:
        interval = fields.count("no_rope_layer_interval")
        rope = [int((index + 1) % interval != 0) for index in range(layers)]
    if len(rope) < layers:
        raise InputError("config_layer_list", where=fields.where, field="no_rope_layers", entries=len(rope), layers=layers)
    by_rule: list[AttentionKind] = ["chunked" if rotary else "full" for rotary in rope[:layers]]
    return _windowed(fields, arch, _listed_kinds(fields, layers) or by_rule)


def _mimo2(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    pattern = fields.numbers("hybrid_layer_pattern")
    if pattern is None or len(pattern) < layers:
        raise InputError("config_layer_list", where=fields.where, field="hybrid_layer_pattern", entries=len(pattern or ()), layers=layers)
    base = heads(fields, arch)
    full = replace(base, v_dim=fields.optional_count("v_head_dim") or base.v_dim)
    local = _checked(
        fields,
        Heads(
            q=fields.optional_count("swa_num_attention_heads") or full.q,
            kv=fields.optional_count("swa_num_key_value_heads") or full.kv,
            k_dim=fields.optional_count("swa_head_dim") or full.k_dim,
            v_dim=fields.optional_count("swa_v_head_dim") or full.v_dim,
        ),
    )
    window = fields.count("sliding_window")
    return [_layer(local, "sliding", window) if slides else _layer(full, "full") for slides in pattern[:layers]]


def _step35(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    kinds = _listed_kinds(fields, layers)
    if kinds is None:
        fields.require({"layer_types": ("layer_types",)})
    full, window = heads(fields, arch), _window(fields)
    written = table(fields.raw("attention_other_setting") or {}, "attention_other_setting", fields.where)
    other = replace(fields, config=written, defaults={})
    local = _checked(
        fields,
        Heads(
            q=other.optional_count(*HEADS) or full.q,
            kv=other.optional_count(*KV_HEADS) or full.kv,
            k_dim=other.optional_count(*HEAD_DIM) or full.k_dim,
            v_dim=other.optional_count(*HEAD_DIM) or full.v_dim,
        ),
    )
    return [_layer(local, "sliding", window) if kind == "sliding" and window else _layer(full, "full") for kind in kinds or ()]


def _gemma4(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    local, window = heads(fields, arch), _window(fields)
    wide = fields.optional_count("global_head_dim") or local.k_dim
    kv = fields.optional_count("num_global_key_value_heads") or local.kv
    full = _checked(fields, Heads(q=local.q, kv=kv, k_dim=wide, v_dim=wide))
    by_rule: list[AttentionKind] = ["sliding" if (index + 1) % arch.period and index + 1 < layers else "full" for index in range(layers)]
    kinds = _listed_kinds(fields, layers) or by_rule
    return [_layer(full, "full") if kind == "full" else _layer(local, "sliding" if window else "full", window) for kind in kinds]


def _latent(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    # num_key_value_heads and head_dim mean nothing here: one latent and one rotary key a token are cached, once.
    if "kv_lora_rank" in fields.config and fields.is_null("kv_lora_rank"):
        fields = replace(fields, defaults={})
    rank, rope = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim")
    return [
        Attention(
            kind="mla",
            layers=1,
            q_heads=fields.count(*HEADS),
            kv_heads=1,
            k_dim=rank + rope,
            v_dim=0,
            latent_rank=rank,
            rope_dim=rope,
            nope_dim=fields.count("qk_nope_head_dim"),
            value_dim=fields.count("v_head_dim"),
        )
    ] * layers


_LAYOUTS: Mapping[str, Callable[[Fields, Architecture, int], list[Attention]]] = {
    "full": _full,
    "window": _every_layer_windowed,
    "gated_window": _switched_window,
    "period": _periodic,
    "llama4": _llama4,
    "mimo2": _mimo2,
    "step35": _step35,
    "gemma4": _gemma4,
    "mla": _latent,
}


def query_rank(fields: Fields) -> int | None:
    """Width of the compressed query of MLA; None where the query is projected plainly (written as null)."""
    if "q_lora_rank" in fields.config and fields.is_null("q_lora_rank"):
        return None
    return fields.optional_count("q_lora_rank", low=0) or None
