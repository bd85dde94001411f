"""Parameters of one layer's attention, matrix by matrix."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import Fields
from breakeven.origin.hf_sparse import query_rank
from breakeven.spec.model import Attention


def biased(fields: Fields, arch: Architecture, part: str) -> bool:
    """Whether the matrices of a part have a bias."""
    rule = arch.biases.get(part, "never")
    return rule == "always" or (rule != "never" and fields.flag(rule))


def attention_parameters(fields: Fields, arch: Architecture, hidden: int, group: Attention) -> int:
    """Of one layer's attention: projections, biases, norms of queries and keys, gates, indexer."""
    if group.kind == "mla":
        return _latent_attention(fields, arch, hidden, group) + _indexer(fields, hidden, group)
    if group.kind == "compressed":
        return _compressed_attention(fields, hidden, group)
    q, k, v = group.q_heads * group.k_dim, group.kv_heads * group.k_dim, group.kv_heads * group.v_dim
    out = group.q_heads * group.v_dim
    if fields.flag("attention_k_eq_v") and group.kind == "full":
        v = 0  # the keys serve as values: one projection, though both are cached
    if group.shares_kv:
        k = v = 0
    shared = fields.optional_count("share_q_dim")
    queries = hidden * q if shared is None else hidden * shared + shared + shared * q
    gate = hidden * out if arch.query_gate and fields.flag(arch.query_gate) else 0
    total = queries + gate + hidden * (k + v + out) + _block_indexer(hidden, group)
    total += (q + k + v if biased(fields, arch, "qkv") else 0) + (hidden if biased(fields, arch, "out") else 0)
    total += _qk_norm(fields, arch, group) + (group.q_heads if arch.sinks else 0)
    gated = arch.head_gate is not None and fields.flag(arch.head_gate)
    return total + (hidden * group.q_heads if gated else 0)


def attention_matrices(fields: Fields, arch: Architecture, hidden: int, group: Attention) -> Mapping[str, int]:
    """Of one layer's attention: its projections by short names (``q``, ``k``, ``v``, ``o``; ``q_a`` … where they are of low rank)."""
    if group.kind == "mla":
        return _latent_matrices(fields, hidden, group)
    if group.kind == "compressed":
        rank, out, width = fields.count("q_lora_rank"), fields.count("o_lora_rank"), group.q_heads * group.k_dim
        outputs = {"o_a": width * out, "o_b": fields.count("o_groups") * out * hidden}
        return {"q_a": hidden * rank, "q_b": rank * width, "kv_a": hidden * group.k_dim, **outputs}
    out = group.q_heads * group.v_dim
    gate = hidden * out if arch.query_gate and fields.flag(arch.query_gate) else 0
    cached = 0 if group.shares_kv else hidden * group.kv_heads
    values = 0 if fields.flag("attention_k_eq_v") and group.kind == "full" else cached * group.v_dim
    shared = fields.optional_count("share_q_dim")
    width = group.q_heads * group.k_dim
    queries = hidden * width if shared is None else hidden * shared + shared * width
    return {"q": queries + gate, "k": cached * group.k_dim, "v": values, "o": hidden * out}


def _latent_matrices(fields: Fields, hidden: int, group: Attention) -> Mapping[str, int]:
    rank, rope, nope, value = group.latent_rank or 0, group.rope_dim or 0, group.nope_dim or 0, group.value_dim or 0
    compressed, width = query_rank(fields), group.q_heads * (nope + rope)
    queries = {"q": hidden * width} if compressed is None else {"q_a": hidden * compressed, "q_b": compressed * width}
    out = {"kv_b": rank * group.q_heads * (nope + value), "o": group.q_heads * value * hidden}
    return {**queries, "kv_a": hidden * (rank + rope), **out}


def _qk_norm(fields: Fields, arch: Architecture, group: Attention) -> int:
    if arch.qk_norm is None or (arch.qk_norm_switch is not None and not fields.flag(arch.qk_norm_switch)):
        return 0
    if arch.qk_norm == "per_head":
        return (1 if group.shares_kv else 2) * group.k_dim
    return (group.q_heads + (0 if group.shares_kv else group.kv_heads)) * group.k_dim


def _latent_attention(fields: Fields, arch: Architecture, hidden: int, group: Attention) -> int:
    rank, rope, nope, value = group.latent_rank or 0, group.rope_dim or 0, group.nope_dim or 0, group.value_dim or 0
    compressed = query_rank(fields)
    width = group.q_heads * (nope + rope)
    queries = hidden * width if compressed is None else hidden * compressed + compressed + compressed * width
    down = hidden * (rank + rope) + rank
    gate = hidden * group.q_heads * value if arch.query_gate and fields.flag(arch.query_gate) else 0
    return queries + gate + down + rank * group.q_heads * (nope + value) + group.q_heads * value * hidden


def _indexer(fields: Fields, hidden: int, group: Attention) -> int:
    """DSA's indexer: queries from the compressed query, one key with a norm of two vectors, a weight for each head."""
    if not group.index_dim:
        return 0
    width = group.index_heads * group.index_dim
    return (query_rank(fields) or hidden) * width + hidden * group.index_dim + 2 * group.index_dim + hidden * group.index_heads


def _block_indexer(hidden: int, group: Attention) -> int:
    """MiniMax-M3's indexer: queries and one key, a norm each."""
    return (hidden * (group.index_heads + 1) + 2) * group.index_dim if group.index_dim else 0


def _compressed_attention(fields: Fields, hidden: int, group: Attention) -> int:
    """DeepSeek-V4: a query of low rank, one key that serves as value, an output of low rank in groups, a sink for each head."""
    rank, out, width = fields.count("q_lora_rank"), fields.count("o_lora_rank"), group.q_heads * group.k_dim
    queries = hidden * rank + rank + rank * width
    outputs = width * out + fields.count("o_groups") * out * hidden
    total = queries + hidden * group.k_dim + group.k_dim + outputs + group.q_heads
    if group.compression:
        total += _compressor(hidden, group.k_dim, group.compression)
    if group.index_dim and group.compression:
        total += rank * group.index_heads * group.index_dim + hidden * group.index_heads
        total += _compressor(hidden, group.index_dim, group.compression)
    return total


def _compressor(hidden: int, width: int, ratio: int) -> int:
    """What makes one entry of several tokens: values and gates, positions, a norm; a short ratio looks at two entries' tokens at once."""
    looked_at = width * (2 if ratio == 4 else 1)
    return 2 * hidden * looked_at + ratio * looked_at + width
