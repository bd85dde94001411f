"""Layers that keep a state of constant size: what one of them keeps for a sequence, and how many parameters its mixer has.

Every formula is checked against the reference table's counts; conv windows are kernel − 1 wide, as engines keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from breakeven.errors import InputError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import HEAD_DIM, HEADS, HIDDEN, Fields, inner
from breakeven.origin.hf_layers import Block
from breakeven.origin.values import shown
from breakeven.spec.model import StateKind, States

_HEADS = ("mamba_num_heads", "mamba_n_heads", "num_heads")
_HEAD_DIM = ("mamba_head_dim", "mamba_d_head", "head_dim")
_GROUPS = ("mamba_n_groups", "n_groups")
_STATE = ("mamba_d_state", "ssm_state_size", "state_size")
_KERNEL = ("mamba_d_conv", "conv_kernel")
_EXPAND = ("mamba_expand", "expand")
_STATE_DTYPES = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype")


@dataclass(frozen=True, kw_only=True)
class Mixer:
    """One layer's mixer: elements a sequence keeps, heads they can be split over, parameters."""

    kind: StateKind
    state: int
    conv: int
    heads: int
    parameters: int


def mixer(fields: Fields, arch: Architecture, found: Sequence[Block]) -> Mixer | None:
    """The mixer of the layers that have one, None where none has."""
    if arch.mixer is None or not any("mixer" in block for block in found):
        return None
    return _MIXERS[arch.mixer](fields, fields.count(*HIDDEN))


def states(arch: Architecture, one: Mixer | None, found: Sequence[Block]) -> tuple[States, ...]:
    """The layers that keep a state."""
    if one is None:
        return ()
    layers = sum("mixer" in block for block in found)
    name = arch.mixer or ""
    return (States(kind=one.kind, mixer=name, layers=layers, state_elements=one.state, conv_elements=one.conv, heads=one.heads),)


def state_dtype(fields: Fields) -> str | None:
    """The type that the configuration asks recurrent states to be kept in."""
    written = fields.raw(*_STATE_DTYPES)
    if written in (None, "auto"):
        return None
    if written not in ("float32", "bfloat16", "float16"):
        raise InputError("config_bad_dtype", where=fields.where, value=shown(written))
    return str(written)


def _flag(fields: Fields, default: bool, *names: str) -> bool:
    return next((fields.flag(name) for name in names if fields.raw(name) is not None), default)


def _gated_deltanet(fields: Fields, hidden: int) -> Mixer:
    """Projections to q, k, v, gate z and two numbers a head; a convolution over q, k, v."""
    key_heads, value_heads = fields.count("linear_num_key_heads"), fields.count("linear_num_value_heads")
    key_dim, value_dim = fields.count("linear_key_head_dim"), fields.count("linear_value_head_dim")
    kernel = fields.count("linear_conv_kernel_dim")
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    projections = hidden * (2 * keys + 2 * values + 2 * value_heads) + values * hidden
    return Mixer(
        kind="linear",
        state=value_heads * key_dim * value_dim,
        conv=channels * (kernel - 1),
        heads=gcd(key_heads, value_heads),
        parameters=projections + channels * kernel + 2 * value_heads + value_dim,
    )


def _kda(fields: Fields, hidden: int) -> Mixer:
    """Kimi delta attention: q, k, v each with a convolution, a decay for every channel, a gate of low or of full rank."""
    written = inner(fields, "linear_attn_config")
    heads = written.optional_count("num_heads") or fields.count("linear_num_heads")
    width = written.optional_count("head_dim") or fields.count("linear_head_dim")
    kernel = written.optional_count("short_conv_kernel_size") or fields.count("linear_conv_kernel_dim")
    channels = heads * width
    low_rank = hidden * width + width * channels
    gate = hidden * channels if written.flag("use_full_rank_gate") else low_rank
    vectors = heads + channels + width  # decay, its bias, the norm of the output
    return Mixer(
        kind="linear",
        state=heads * width * width,
        conv=3 * channels * (kernel - 1),
        heads=heads,
        parameters=4 * hidden * channels + 3 * channels * kernel + low_rank + gate + hidden * heads + vectors,
    )


def _lightning(fields: Fields, hidden: int) -> Mixer:
    """Lightning attention: q, k, v, an output gate and its norm; no convolution."""
    heads = fields.count(*HEADS)
    width = fields.optional_count(*HEAD_DIM) or hidden // heads
    inner = heads * width
    return Mixer(kind="linear", state=heads * width * width, conv=0, heads=heads, parameters=5 * hidden * inner + inner)


def _mamba1(fields: Fields, hidden: int) -> Mixer:
    """Mamba: a state for each channel, steps from a low rank. Jamba norms the step and both projections of the state."""
    inner = fields.optional_count("intermediate_size") if fields.model_type in _PURE else None
    inner = inner or (fields.optional_count(*_EXPAND) or 2) * hidden
    size, kernel = fields.count(*_STATE), fields.count(*_KERNEL)
    rank = _rank(fields, hidden)
    norms = 0 if fields.model_type in _PURE else rank + 2 * size
    bias = inner if _flag(fields, True, "mamba_conv_bias", "use_conv_bias") else 0
    bias += 2 * inner + hidden if _flag(fields, False, "mamba_proj_bias", "use_bias") else 0
    matrices = 3 * hidden * inner + inner * (rank + 2 * size) + rank * inner + inner
    return Mixer(
        kind="ssm",
        state=inner * size,
        conv=inner * (kernel - 1),
        heads=inner,
        parameters=matrices + inner * kernel + bias + inner * size + inner + norms,
    )


_PURE = ("mamba", "falcon_mamba")


def _rank(fields: Fields, hidden: int) -> int:
    written = fields.raw("mamba_dt_rank", "time_step_rank")
    if written in (None, "auto"):
        return -(-hidden // 16)
    return fields.count("mamba_dt_rank", "time_step_rank")


def _mamba2(fields: Fields, hidden: int) -> Mixer:
    """Mamba-2: heads times their width, not expand times hidden; one decay a head; a convolution over x, B and C."""
    heads = fields.count(*_HEADS)
    written = fields.optional_count("mamba_d_ssm")
    inner = written if written is not None else heads * _mamba2_width(fields, hidden, heads)
    groups, size, kernel = fields.count(*_GROUPS), fields.count(*_STATE), fields.count(*_KERNEL)
    channels = inner + 2 * groups * size
    bias = channels if _flag(fields, True, "use_conv_bias", "mamba_conv_bias") else 0
    bias += inner + channels + heads + hidden if _flag(fields, False, "mamba_proj_bias", "use_bias") else 0
    norm = inner if fields.flag("mamba_rms_norm", True) else 0
    return Mixer(
        kind="ssm",
        state=inner * size,
        conv=channels * (kernel - 1),
        heads=heads,
        parameters=hidden * (inner + channels + heads) + channels * kernel + bias + 3 * heads + norm + inner * hidden,
    )


def _mamba2_width(fields: Fields, hidden: int, heads: int) -> int:
    if fields.raw("mamba_d_head") == "auto":
        return (fields.optional_count(*_EXPAND) or 2) * hidden // heads
    return fields.count(*_HEAD_DIM)


def _shortconv(fields: Fields, hidden: int) -> Mixer:
    """A gated short convolution: three projections, the convolution, the way back."""
    kernel = fields.count("conv_L_cache")
    bias = 5 * hidden if fields.flag("conv_bias") else 0
    return Mixer(kind="conv", state=0, conv=hidden * (kernel - 1), heads=hidden, parameters=4 * hidden * hidden + hidden * kernel + bias)


def _rwkv6(fields: Fields, hidden: int) -> Mixer:
    """RWKV-6: five projections, decays and token shifts of low rank; the two shifts keep one vector each.

    Source: the published training code of RWKV-6 (World): ranks 32 and 64, doubled at a width of 4096.
    """
    inner, width = fields.optional_count("attention_hidden_size") or hidden, fields.count("head_size", "head_dim")
    doubled = 2 if hidden == 4096 else 1
    shift_rank, decay_rank = 32 * doubled, 64 * doubled
    low_rank = 2 * 5 * hidden * shift_rank + 2 * decay_rank * hidden
    vectors = 6 * hidden + 2 * inner + 2 * inner + 2 * hidden  # shifts, decay and bonus, norm of the heads, shifts of the MLP
    return Mixer(
        kind="recurrent",
        state=inner * width,
        conv=2 * hidden,
        heads=inner // width or 1,
        parameters=5 * hidden * inner + low_rank + vectors + hidden * hidden,
    )


_MIXERS: Mapping[str, Callable[[Fields, int], Mixer]] = {
    "gated_deltanet": _gated_deltanet,
    "kda": _kda,
    "lightning": _lightning,
    "mamba1": _mamba1,
    "mamba2": _mamba2,
    "shortconv": _shortconv,
    "rwkv6": _rwkv6,
}
