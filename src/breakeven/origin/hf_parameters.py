"""Parameters of a configuration by tensor class, counted matrix by matrix from its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import HIDDEN, MLP_WIDTH, VOCABULARY, Fields
from breakeven.origin.hf_attention import query_rank
from breakeven.origin.hf_mixture import Mixture
from breakeven.spec.model import Attention, Parameters


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What a configuration amounts to."""

    parameters: Parameters
    mtp_layers: int
    mtp_parameters: int
    """Of the MTP layers alone: they use the embedding and the head of the model, even where a checkpoint stores copies."""


def count_parameters(
    fields: Fields,
    arch: Architecture,
    *,
    layers: int,
    tied: bool,
    attention: Sequence[Attention],
    mixture: Mixture | None,
) -> Counted:
    """Parameters by class: embedding V·h, head V·h, attention, MLP (dense, shared, routers), routed experts, norms and positions."""
    hidden, vocabulary = fields.count(*HIDDEN), fields.count(*VOCABULARY)
    embedded = fields.optional_count("word_embed_proj_dim") or hidden
    mixed = mixture.experts.layers if mixture else 0
    dense = layers if arch.mixture_switch else layers - mixed
    mtp_layers = (fields.optional_count(arch.mtp, low=0) or 0) if arch.mtp else 0
    parameters = Parameters(
        embedding=vocabulary * embedded,
        head=0 if tied else vocabulary * embedded,
        attention=sum(group.layers * _attention(fields, arch, hidden, group) for group in attention),
        mlp=(dense * _mlp(fields, arch, hidden) if dense else 0) + (mixed * _beside_experts(arch, hidden, mixture) if mixture else 0),
        experts=mixed * _experts(arch, hidden, mixture) if mixture else 0,
        other=_other(fields, arch, hidden=hidden, embedded=embedded, layers=layers, vocabulary=vocabulary),
    )
    each = _mtp_layer(fields, arch, hidden, attention[-1], mixture) if mtp_layers else 0
    return Counted(parameters=parameters, mtp_layers=mtp_layers, mtp_parameters=mtp_layers * each)


def _biased(fields: Fields, arch: Architecture, part: str) -> bool:
    rule = arch.biases.get(part, "never")
    return rule == "always" or (rule != "never" and fields.flag(rule))


def _attention(fields: Fields, arch: Architecture, hidden: int, group: Attention) -> int:
    if group.kind == "mla":
        return _latent_attention(fields, hidden, group)
    q, k, v = group.q_heads * group.k_dim, group.kv_heads * group.k_dim, group.kv_heads * group.v_dim
    out = group.q_heads * group.v_dim
    if fields.flag("attention_k_eq_v") and group.kind == "full":
        v = 0  # the keys serve as values: one projection, though both are cached
    shared = fields.optional_count("share_q_dim")
    queries = hidden * q if shared is None else hidden * shared + shared + shared * q
    total = queries + hidden * (k + v + out)
    total += (q + k + v if _biased(fields, arch, "qkv") else 0) + (hidden if _biased(fields, arch, "out") else 0)
    total += _qk_norm(fields, arch, group) + (group.q_heads if arch.sinks else 0)
    gated = arch.head_gate is not None and fields.flag(arch.head_gate)
    return total + (hidden * group.q_heads if gated else 0)


def _qk_norm(fields: Fields, arch: Architecture, group: Attention) -> int:
    if arch.qk_norm is None or (arch.qk_norm_switch is not None and not fields.flag(arch.qk_norm_switch)):
        return 0
    if arch.qk_norm == "per_head":
        return 2 * group.k_dim
    return (group.q_heads + group.kv_heads) * group.k_dim


def _latent_attention(fields: Fields, hidden: int, group: Attention) -> int:
    rank, rope, nope, value = group.latent_rank or 0, group.rope_dim or 0, group.nope_dim or 0, group.value_dim or 0
    compressed = query_rank(fields)
    width = group.q_heads * (nope + rope)
    queries = hidden * width if compressed is None else hidden * compressed + compressed + compressed * width
    down = hidden * (rank + rope) + rank
    return queries + down + rank * group.q_heads * (nope + value) + group.q_heads * value * hidden


def _mlp_width(fields: Fields, arch: Architecture, hidden: int) -> int:
    if arch.dense_width is not None:
        return fields.count(arch.dense_width)
    ratio = (fields.optional_count("expansion_ratio") or arch.mlp_ratio) if arch.mlp_ratio else 0
    return (fields.optional_count(*MLP_WIDTH) or ratio * hidden) if ratio else fields.count(*MLP_WIDTH)


def _mlp(fields: Fields, arch: Architecture, hidden: int) -> int:
    width = _mlp_width(fields, arch, hidden)
    biases = (arch.mlp_matrices - 1) * width + hidden if _biased(fields, arch, "mlp") else 0
    return arch.mlp_matrices * hidden * width + biases


def _beside_experts(arch: Architecture, hidden: int, mixture: Mixture | None) -> int:
    """Of one layer with a mixture: the router and the shared experts."""
    if mixture is None:
        return 0
    router = mixture.experts.count * (hidden + (1 if arch.router_bias else 0))
    return router + arch.mlp_matrices * hidden * mixture.shared_width + (hidden if arch.shared_gate else 0)


def _experts(arch: Architecture, hidden: int, mixture: Mixture | None) -> int:
    """Of one layer with a mixture: the routed experts."""
    if mixture is None:
        return 0
    biases = (arch.mlp_matrices - 1) * mixture.width + hidden if arch.expert_bias else 0
    return mixture.experts.count * (arch.mlp_matrices * hidden * mixture.width + biases)


def _other(fields: Fields, arch: Architecture, *, hidden: int, embedded: int, layers: int, vocabulary: int) -> int:
    """Norms, learned positions, and what stands once beside the layers."""
    final = 0 if fields.raw("do_layer_norm_before") is False else 1
    total = (layers * _norms_per_layer(fields, arch) + final + (1 if arch.embedding_norm else 0)) * arch.norm_vectors * hidden
    total += _positions(fields, arch) * hidden
    total += vocabulary if _biased(fields, arch, "head") else 0
    return total + (2 * embedded * hidden if embedded != hidden else 0)


def _norms_per_layer(fields: Fields, arch: Architecture) -> int:
    if arch.heads != "falcon":
        return arch.norms
    if fields.flag("new_decoder_architecture"):
        return fields.optional_count("num_ln_in_parallel_attn") or 2
    return 1 if fields.flag("parallel_attn", True) else 2


def _positions(fields: Fields, arch: Architecture) -> int:
    """Rows of the table of learned positions."""
    if arch.positions is None or fields.flag("alibi", arch.heads == "mpt"):
        return 0
    return fields.count(arch.positions) + arch.position_offset


def _mtp_layer(fields: Fields, arch: Architecture, hidden: int, last: Attention, mixture: Mixture | None) -> int:
    """One MTP layer: a layer of the model, a projection of two hidden vectors into one, three norms."""
    if mixture is not None and mixture.beyond and not arch.mtp_dense:
        inner = _experts(arch, hidden, mixture) + _beside_experts(arch, hidden, mixture)
    else:
        inner = _mlp(fields, arch, hidden)
    return _attention(fields, arch, hidden, last) + inner + 2 * hidden * hidden + (arch.norms + 3) * arch.norm_vectors * hidden
