"""Parameters of a configuration by tensor class, counted matrix by matrix from its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import HIDDEN, VOCABULARY, Fields
from breakeven.origin.hf_attention_parameters import attention_parameters, biased
from breakeven.origin.hf_extras import beside_layers, lookup_parameters, stream_head_parameters, stream_parameters
from breakeven.origin.hf_layers import Block
from breakeven.origin.hf_mixture import Mixture
from breakeven.origin.hf_mlp import beside_experts, expert_parameters, last_mlp, mlp_parameters
from breakeven.origin.hf_sparse import for_mtp
from breakeven.origin.hf_states import Mixer
from breakeven.spec.model import Attention, Parameters


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a configuration's layers were found to be."""

    blocks: Sequence[Block]
    attention: Sequence[Attention]
    mixer: Mixer | None
    mixture: Mixture | None
    tied: bool


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What a configuration amounts to."""

    parameters: Parameters
    mtp_layers: int
    mtp_parameters: int
    """Of the MTP layers alone: they use the embedding and the head of the model, even where a checkpoint stores copies."""


def count_parameters(fields: Fields, arch: Architecture, shape: Shape) -> Counted:
    """Parameters by class: embedding V·h, head V·h, attention, MLP (dense, shared, routers), routed experts, norms and positions."""
    hidden, vocabulary = fields.count(*HIDDEN), fields.count(*VOCABULARY)
    embedded, layers = fields.optional_count("word_embed_proj_dim") or hidden, len(shape.blocks)
    mlps = mlp_parameters(fields, arch, hidden, shape.blocks, shape.mixture)
    matrices, vectors = beside_layers(fields, arch, hidden, layers)
    parameters = Parameters(
        embedding=vocabulary * embedded,
        head=0 if shape.tied else vocabulary * embedded,
        attention=_mixers(fields, arch, hidden, shape) + 2 * layers * stream_parameters(fields, arch, hidden),
        mlp=mlps.mlp + matrices,
        experts=mlps.experts,
        other=_other(fields, arch, hidden=hidden, embedded=embedded, blocks=shape.blocks, vocabulary=vocabulary) + vectors,
        lookup=lookup_parameters(fields, arch, layers),
    )
    mtp_layers = (fields.optional_count(arch.mtp, low=0) or 0) if arch.mtp and shape.attention else 0
    each = _mtp_layer(fields, arch, hidden, shape) if mtp_layers else 0
    return Counted(parameters=parameters, mtp_layers=mtp_layers, mtp_parameters=mtp_layers * each)


def _mixers(fields: Fields, arch: Architecture, hidden: int, shape: Shape) -> int:
    """Attention, and the mixers of the layers that keep a state."""
    attention = sum(group.layers * attention_parameters(fields, arch, hidden, group) for group in shape.attention)
    mixing = sum("mixer" in block for block in shape.blocks)
    return attention + (mixing * shape.mixer.parameters if shape.mixer else 0)


def _other(fields: Fields, arch: Architecture, *, hidden: int, embedded: int, blocks: Sequence[Block], vocabulary: int) -> int:
    """Norms, learned positions, and what stands once beside the layers."""
    final = 0 if fields.raw("do_layer_norm_before") is False else 1
    norms = sum(len(block) for block in blocks) if arch.layout == "block_configs" else len(blocks) * _norms_per_layer(fields, arch)
    total = (norms + final + (1 if arch.embedding_norm else 0)) * arch.norm_vectors * hidden
    total += _positions(fields, arch) * hidden + stream_head_parameters(fields, arch, hidden)
    total += vocabulary if biased(fields, arch, "head") else 0
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


def _mtp_layer(fields: Fields, arch: Architecture, hidden: int, shape: Shape) -> int:
    """One MTP layer: a layer of the model, a projection of two hidden vectors into one, three norms."""
    mixture = shape.mixture
    if mixture is not None and mixture.beyond and not arch.mtp_dense:
        inner = expert_parameters(arch, hidden, mixture) + beside_experts(arch, hidden, mixture)
    else:
        inner = last_mlp(fields, arch, hidden, len(shape.blocks))
    attention = attention_parameters(fields, arch, hidden, for_mtp(fields, shape.attention[-1]))
    norms = (max(arch.norms, 2) + 3) * arch.norm_vectors * hidden
    return attention + inner + 2 * hidden * hidden + norms + 2 * stream_parameters(fields, arch, hidden)
