"""Attention over a latent, over what an indexer selects, and over compressed entries: MLA, DSA, DeepSeek-V4, block-sparse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from breakeven.errors import NotModelledError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import HEADS, Fields, inner
from breakeven.origin.hf_layers import cut
from breakeven.origin.values import shown
from breakeven.spec.model import Attention

_INDEX = ("index_topk", "index_head_dim", "index_n_heads")


def latent(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    """MLA, with an indexer where the type has one."""
    # num_key_value_heads and head_dim mean nothing here: one latent and one rotary key a token are cached, once.
    if "kv_lora_rank" in fields.config and fields.is_null("kv_lora_rank"):
        fields = replace(fields, defaults={})
    rank, rope = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim")
    plain = Attention(
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
    if "sparse_indexer" not in arch.knows:
        return [plain] * layers
    return [_indexed(fields, plain) if own else _selected(fields, plain) for own in _own_indexer(fields, layers)]


def for_mtp(fields: Fields, last: Attention) -> Attention:
    """The attention of an MTP layer: as the last layer's, with an indexer of its own, or with the window alone."""
    if last.kind == "compressed":
        return replace(last, compression=None, selected=None, index_dim=0, index_heads=0)
    return _indexed(fields, last) if last.kind == "mla" and last.selected is not None else last


def _selected(fields: Fields, layer: Attention) -> Attention:
    return replace(layer, selected=fields.count(_INDEX[0]))


def _indexed(fields: Fields, layer: Attention) -> Attention:
    selected, width, heads = (fields.count(name) for name in _INDEX)
    return replace(layer, selected=selected, index_dim=width, index_heads=heads)


def _own_indexer(fields: Fields, layers: int) -> list[bool]:
    """Layers that run and keep an indexer; the others attend to what the one before them selected."""
    kinds = fields.words("indexer_types")
    if kinds is None:  # every index_topk_freq-th layer after the first few
        every, skip = fields.optional_count("index_topk_freq") or 1, fields.optional_count("index_skip_topk_offset", low=0) or 0
        return [max(index - skip + 1, 0) % every == 0 for index in range(layers)]
    cut(kinds, "indexer_types", fields, layers)
    unknown = set(kinds) - {"full", "shared"}
    if unknown:
        raise NotModelledError("layer_type_unknown", where=fields.where, model_type=fields.model_type, kind=shown(sorted(unknown)[0]))
    return [kind == "full" for kind in kinds[:layers]]


def compressed(fields: Fields, arch: Architecture, layers: int) -> list[Attention]:
    """DeepSeek-V4: a window as it is, beyond it one entry in 4 tokens (of which an indexer selects) or in 128, or nothing."""
    width = fields.count("head_dim")
    near = Attention(
        kind="compressed",
        layers=1,
        q_heads=fields.count(*HEADS),
        kv_heads=1,
        k_dim=width,
        v_dim=0,
        value_dim=width,
        window=fields.count("sliding_window"),
    )
    return [_beyond(fields, near, ratio) for ratio in _ratios(fields, layers)]


def _beyond(fields: Fields, near: Attention, ratio: int) -> Attention:
    if not ratio:
        return near
    far = replace(near, compression=ratio)
    return _indexed(fields, far) if ratio == _INDEXED_RATIO else far


_INDEXED_RATIO = 4
_V4_TYPES = ("compressed_sparse_attention", "heavily_compressed_attention")


def _ratios(fields: Fields, layers: int) -> Sequence[int]:
    written = fields.numbers("compress_ratios")
    if written is None:
        return _ratios_by_type(fields, layers)
    cut(written, "compress_ratios", fields, layers)
    return written[:layers]


def _ratios_by_type(fields: Fields, layers: int) -> Sequence[int]:
    kinds = fields.words("layer_types")
    if kinds is None:
        fields.require({"compress_ratios": ("compress_ratios",)})
    found = kinds or ()
    cut(found, "layer_types", fields, layers)
    unknown = set(found) - {*_V4_TYPES, "sliding_attention"}
    if unknown:
        raise NotModelledError("layer_type_unknown", where=fields.where, model_type=fields.model_type, kind=shown(sorted(unknown)[0]))
    rates = inner(fields, "compress_rates")
    by_type = {kind: rates.optional_count(kind) or usual for kind, usual in zip(_V4_TYPES, (_INDEXED_RATIO, 128), strict=True)}
    return [by_type.get(kind, 0) for kind in found[:layers]]


def block_sparse(fields: Fields, full: Sequence[Attention], layers: int) -> list[Attention]:
    """MiniMax-M3: on the layers marked, the best blocks by an index key kept for every token; the cache keeps its full size."""
    written = inner(fields, "sparse_attention_config")
    marked = _marked(fields, written, layers)
    if not any(marked):
        return list(full)
    blocks = written.optional_count("sparse_topk_blocks") or fields.count("index_topk_blocks")
    size = written.optional_count("sparse_block_size") or fields.count("index_block_size")
    width = written.optional_count("sparse_index_dim") or fields.count("index_head_dim")
    heads = written.optional_count("sparse_num_index_heads") or fields.count("index_n_heads")
    return [
        replace(layer, selected=blocks * size, index_dim=width, index_heads=heads) if marks else layer
        for layer, marks in zip(full, marked, strict=True)
    ]


def _marked(fields: Fields, written: Fields, layers: int) -> list[bool]:
    if written.raw("use_sparse_attention") is not None and not written.flag("use_sparse_attention"):
        return [False] * layers
    marks = written.numbers("sparse_attention_freq")
    if marks is not None:
        cut(marks, "sparse_attention_freq", fields, layers)
        return [bool(mark) for mark in marks[:layers]]
    kinds = fields.words("layer_types")
    if kinds is None:
        fields.require({"sparse_attention_config": ("sparse_attention_config",)})
    cut(kinds or (), "layer_types", fields, layers)
    return [kind == "minimax_m3_sparse" for kind in (kinds or ())[:layers]]


def query_rank(fields: Fields) -> int | None:
    """Width of the compressed query of MLA; None where the query is projected plainly (written as null)."""
    if "q_lora_rank" in fields.config and fields.is_null("q_lora_rank"):
        return None
    return fields.optional_count("q_lora_rank", low=0) or None
