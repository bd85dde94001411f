"""The matrices of a configuration by the names that lists of modules call them, with their parameters.

Experts of a layer are alike: the first stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import HIDDEN, Fields
from breakeven.origin.hf_attention import attention_layers
from breakeven.origin.hf_attention_parameters import attention_matrices
from breakeven.origin.hf_mlp import dense_matrices, routed_matrices, router_matrix, shared_matrices
from breakeven.origin.hf_parameters import Counted, Shape
from breakeven.origin.hf_sparse import for_mtp
from breakeven.spec.model import TENSOR_CLASSES

Role = Literal["linear", "expert", "router", "head", "embedding", "mtp_linear", "mtp_expert", "mtp_join"]

_SPELLED: Mapping[str, tuple[str, ...]] = {
    "q": ("self_attn.q_proj", "self_attn.qkv_proj", "attn.c_attn", "attention.wq", "self_attention.query_key_value", "mixer.q_proj"),
    "k": ("self_attn.k_proj", "self_attn.qkv_proj", "attn.c_attn", "attention.wk", "self_attention.query_key_value", "mixer.k_proj"),
    "v": ("self_attn.v_proj", "self_attn.qkv_proj", "attn.c_attn", "attention.wv", "self_attention.query_key_value", "mixer.v_proj"),
    "o": ("self_attn.o_proj", "attn.c_proj", "attention.wo", "self_attention.dense", "mixer.o_proj"),
    "q_a": ("self_attn.q_a_proj", "self_attn.fused_qkv_a_proj_with_mqa", "attn.wq_a"),
    "q_b": ("self_attn.q_b_proj", "attn.wq_b"),
    "kv_a": ("self_attn.kv_a_proj_with_mqa", "self_attn.fused_qkv_a_proj_with_mqa", "attn.wkv"),
    "kv_b": ("self_attn.kv_b_proj",),
    "o_a": ("attn.wo_a", "self_attn.o_a_proj"),
    "o_b": ("attn.wo_b", "self_attn.o_b_proj"),
    "mixer_in": ("linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkv", "mamba.in_proj", "mixer.in_proj", "conv.in_proj"),
    "mixer_out": ("linear_attn.out_proj", "mamba.out_proj", "mixer.out_proj", "conv.out_proj"),
    "gate": ("mlp.gate_proj", "mlp.gate_up_proj", "feed_forward.w1", "feed_forward.gate_proj"),
    "up": ("mlp.up_proj", "mlp.gate_up_proj", "feed_forward.w3", "feed_forward.up_proj", "mlp.c_fc", "mlp.fc1", "mixer.up_proj"),
    "down": ("mlp.down_proj", "feed_forward.w2", "feed_forward.down_proj", "mlp.c_proj", "mlp.fc2", "mixer.down_proj"),
    "router": ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router", "mlp.gate.wg", "mixer.gate", "moe.gate"),
    "shared_gate": ("mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj", "mlp.shared_experts.gate_up_proj"),
    "shared_up": ("mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj", "mlp.shared_experts.gate_up_proj",
                  "mixer.shared_experts.up_proj"),
    "shared_down": ("mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj", "mixer.shared_experts.down_proj"),
    "expert_gate": ("mlp.experts.0.gate_proj", "mlp.experts.gate_up_proj", "block_sparse_moe.experts.0.w1",
                    "feed_forward.experts.gate_up_proj"),
    "expert_up": (
        "mlp.experts.0.up_proj", "mlp.experts.gate_up_proj", "block_sparse_moe.experts.0.w3", "feed_forward.experts.gate_up_proj",
        "mixer.experts.0.up_proj",
    ),
    "expert_down": (
        "mlp.experts.0.down_proj", "mlp.experts.down_proj", "block_sparse_moe.experts.0.w2", "feed_forward.experts.down_proj",
        "mixer.experts.0.down_proj",
    ),
}  # fmt: skip
"""How families and engines spell a matrix within its layer, alone and fused with others."""
_MLP = {3: ("gate", "up", "down"), 2: ("up", "down"), 1: ("up",)}
Sized = Mapping[str, int]
"""Parameters by the short name of a matrix."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """One matrix (of the experts of a layer, all of that sort)."""

    kind: str
    """Its tensor class, or ``mtp``."""
    role: Role
    names: tuple[str, ...]
    parameters: int


@dataclass(frozen=True, kw_only=True)
class Held:
    """The matrices, and what every class holds with its norms, biases and other vectors."""

    modules: Sequence[Module]
    counts: Sized


def held(fields: Fields, arch: Architecture, shape: Shape, counted: Counted) -> Held:
    """Everything that a quantisation can name."""
    counts = {kind: getattr(counted.parameters, kind) for kind in TENSOR_CLASSES} | {"mtp": counted.mtp_parameters}
    tables = [("embedding", "embed_tokens"), ("head", "lm_head")]
    found = [
        Module(kind=kind, role=role, names=(name,), parameters=counts[kind])
        for kind, name in tables
        if counts[kind]
        for role in _table_role(kind)
    ]
    found += [*_layers(fields, arch, shape), *_mtp(fields, arch, shape, counted)]
    return Held(modules=tuple(found), counts={kind: count for kind, count in counts.items() if count})


def _table_role(kind: str) -> tuple[Role, ...]:
    return ("head",) if kind == "head" else ("embedding",)


def _layers(fields: Fields, arch: Architecture, shape: Shape) -> Iterator[Module]:
    hidden = fields.count(*HIDDEN)
    attention = attention_layers(fields, arch, shape.blocks)
    dense = dense_matrices(fields, arch, hidden, shape.blocks, shape.mixture)
    for index, block in enumerate(shape.blocks):
        layer = (f"layers.{index}.",)
        group = attention[index]
        if group is not None:
            yield from _named("attention", "linear", layer, attention_matrices(fields, arch, hidden, group))
        if "mixer" in block and shape.mixer is not None:
            yield from _named("attention", "linear", layer, _mixing(shape.mixer.parameters))
        if index in dense:
            yield from _named("mlp", "linear", layer, _shared_out(dense[index], arch, ""))
        if shape.mixture is not None and shape.mixture.holds[index]:
            yield from _mixture(layer, hidden, arch, shape, ("mlp", "experts"), ("linear", "expert", "router"))


def _mixture(
    layer: tuple[str, ...], hidden: int, arch: Architecture, shape: Shape, kinds: tuple[str, str], roles: tuple[Role, Role, Role]
) -> Iterator[Module]:
    mixture = shape.mixture
    if mixture is None:
        return
    yield from _named(kinds[0], roles[2], layer, {"router": router_matrix(hidden, mixture)})
    yield from _named(kinds[0], roles[0], layer, _shared_out(shared_matrices(arch, hidden, mixture), arch, "shared_"))
    yield from _named(kinds[1], roles[1], layer, _shared_out(routed_matrices(arch, hidden, mixture), arch, "expert_"))


def _mtp(fields: Fields, arch: Architecture, shape: Shape, counted: Counted) -> Iterator[Module]:
    """The MTP layers: named as layers beyond the last, or apart."""
    hidden, last = fields.count(*HIDDEN), len(shape.blocks)
    for index in range(counted.mtp_layers):
        layer = (f"layers.{last + index}.", f"mtp.layers.{index}.", f"mtp.{index}.")
        group = for_mtp(fields, shape.attention[-1])
        yield from _named("mtp", "mtp_linear", layer, attention_matrices(fields, arch, hidden, group))
        mixed = shape.mixture is not None and shape.mixture.beyond and not arch.mtp_dense
        if mixed:
            yield from _mixture(layer, hidden, arch, shape, ("mtp", "mtp"), ("mtp_linear", "mtp_expert", "mtp_join"))
        names = tuple(f"{start}{name}" for start in layer for name in ("eh_proj", "fc"))
        yield Module(kind="mtp", role="mtp_join", names=names, parameters=2 * hidden * hidden)


def _mixing(parameters: int) -> Sized:
    # Projections into a mixer are two to three times as large as the one out of it, and lists name them together.
    out = parameters // 4
    return {"mixer_in": parameters - out, "mixer_out": out}


def _shared_out(matrices: int, arch: Architecture, start: str) -> Sized:
    names = _MLP.get(arch.mlp_matrices, ("up",))
    return {f"{start}{name}": matrices // len(names) for name in names} if matrices else {}


def _named(kind: str, role: Role, layer: tuple[str, ...], sized: Sized) -> Iterator[Module]:
    for short, parameters in sized.items():
        if parameters:
            names = tuple(f"{start}{name}" for start in layer for name in _SPELLED[short])
            yield Module(kind=kind, role=role, names=names, parameters=parameters)
