"""The heads of a layer and the attention they make, whatever a family calls them."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.errors import InputError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import HEAD_DIM, HEADS, HIDDEN, KV_HEADS, Fields
from breakeven.spec.model import Attention, AttentionKind


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The heads of a layer."""

    q: int
    kv: int
    k_dim: int
    v_dim: int


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
    return checked(fields, Heads(q=q, kv=kv, k_dim=k_dim, v_dim=k_dim))


def checked(fields: Fields, found: Heads) -> Heads:
    """The heads, if they share their KV heads equally."""
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


def layer_of(found: Heads, kind: AttentionKind, window: int | None = None) -> Attention:
    """One layer that attends with these heads."""
    return Attention(
        kind=kind,
        layers=1,
        q_heads=found.q,
        kv_heads=found.kv,
        k_dim=found.k_dim,
        v_dim=found.v_dim,
        window=None if kind == "full" else window,
    )
