"""Parameters of MLPs and mixtures of experts: how wide each layer is, and what a width amounts to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakeven.errors import InputError
from breakeven.origin.architecture import Architecture
from breakeven.origin.config_fields import LARGEST, MLP_WIDTH, Fields, whole_number
from breakeven.origin.hf_attention_parameters import biased
from breakeven.origin.hf_layers import Block, searched
from breakeven.origin.hf_mixture import Mixture
from breakeven.origin.values import shown


@dataclass(frozen=True, kw_only=True)
class Mlps:
    """Parameters of all layers together."""

    mlp: int
    experts: int


def mlp_parameters(fields: Fields, arch: Architecture, hidden: int, blocks: Sequence[Block], mixture: Mixture | None) -> Mlps:
    """Dense MLPs of the layers without a mixture, and of those where both run; the mixtures of the others."""
    dense = _dense(arch, blocks, mixture)
    widths = _widths(fields, arch, hidden, len(blocks)) if dense else []
    total = sum(_parameters(fields, arch, hidden, widths[index]) for index in dense)
    if mixture is None:
        return Mlps(mlp=total, experts=0)
    mixed = mixture.experts.layers
    return Mlps(mlp=total + mixed * beside_experts(arch, hidden, mixture), experts=mixed * expert_parameters(arch, hidden, mixture))


def dense_matrices(fields: Fields, arch: Architecture, hidden: int, blocks: Sequence[Block], mixture: Mixture | None) -> Mapping[int, int]:
    """Parameters of the dense MLP's matrices, by layer."""
    dense = _dense(arch, blocks, mixture)
    widths = _widths(fields, arch, hidden, len(blocks)) if dense else []
    return {index: hidden * (hidden if widths[index] == _LINEAR else arch.mlp_matrices * widths[index]) for index in dense}


def _dense(arch: Architecture, blocks: Sequence[Block], mixture: Mixture | None) -> list[int]:
    """Layers with a dense MLP: those without a mixture, and those where both run."""
    held = mixture.holds if mixture else (False,) * len(blocks)
    beside = arch.mixture_switch is not None or arch.mixture_beside
    return [index for index, block in enumerate(blocks) if "mlp" in block and (beside or not held[index])]


def last_mlp(fields: Fields, arch: Architecture, hidden: int, layers: int) -> int:
    """Parameters of the MLP of the last layer."""
    return _parameters(fields, arch, hidden, _widths(fields, arch, hidden, layers)[-1])


def _parameters(fields: Fields, arch: Architecture, hidden: int, width: int) -> int:
    if width == _LINEAR:
        return hidden * hidden
    biases = (arch.mlp_matrices - 1) * width + hidden if width and biased(fields, arch, "mlp") else 0
    return arch.mlp_matrices * hidden * width + biases


_LINEAR = -1
"""In place of a width: one square matrix instead of an MLP."""


def _widths(fields: Fields, arch: Architecture, hidden: int, layers: int) -> list[int]:
    if arch.mlp_width == "searched":
        return [_searched_width(attention, mlp, hidden) for attention, mlp in searched(fields, layers)]
    if arch.mlp_width == "adjusted":
        return [_adjusted_width(fields)] * layers
    written = fields.raw(*MLP_WIDTH)
    if isinstance(written, list):
        return _listed_widths(written, fields, layers)
    width = _width(fields, arch, hidden)
    if not fields.flag("use_double_wide_mlp"):
        return [width] * layers
    shared = fields.optional_count("num_kv_shared_layers", low=0) or 0
    return [width * (2 if index >= layers - shared else 1) for index in range(layers)]


def _width(fields: Fields, arch: Architecture, hidden: int) -> int:
    if arch.dense_width is not None:
        return fields.count(arch.dense_width)
    ratio = (fields.optional_count("expansion_ratio") or arch.mlp_ratio) if arch.mlp_ratio else 0
    return (fields.optional_count(*MLP_WIDTH) or ratio * hidden) if ratio else fields.count(*MLP_WIDTH)


def _listed_widths(written: Sequence[object], fields: Fields, layers: int) -> list[int]:
    name = fields.named(*MLP_WIDTH)
    if len(written) < layers:
        raise InputError("config_layer_list", where=fields.where, field=name, entries=len(written), layers=layers)
    return [whole_number(item, name, fields.where, low=1, high=LARGEST) for item in written[:layers]]


def _adjusted_width(fields: Fields) -> int:
    """LFM2 writes what a plain MLP would have: two thirds of it, times a factor, up to the next multiple."""
    width = fields.count("block_ff_dim", "intermediate_size")
    if not fields.flag("block_auto_adjust_ff_dim"):
        return width
    multiple = fields.optional_count("block_multiple_of") or 256
    return _up(int(_factor(fields, "block_ffn_dim_multiplier", 1.0) * int(2 * width / 3)), multiple)


def _searched_width(attention: Fields, mlp: Fields, hidden: int) -> int:
    """A block's width: two thirds of a multiple of twice the hidden size, up to the next 256; none, or one matrix, where it says so."""
    linear = attention.flag("replace_with_linear")
    if mlp.flag("replace_with_linear") or (linear and mlp.flag("no_op")):
        return _LINEAR
    if mlp.flag("no_op"):
        return 0
    written = mlp.optional_count("intermediate_size")
    return written or _up(int(2 * _factor(mlp, "ffn_mult", None) * hidden / 3), 256)


def _factor(fields: Fields, name: str, usual: float | None) -> float:
    value = fields.raw(name)
    if value is None and usual is not None:
        return usual
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1000:
        raise InputError("config_bad_factor", where=fields.where, field=name, value=shown(value))
    return float(value)


def _up(width: int, multiple: int) -> int:
    return -(-width // multiple) * multiple


def beside_experts(arch: Architecture, hidden: int, mixture: Mixture) -> int:
    """Of one layer with a mixture: the router, the shared experts, the way to the experts' own width and back."""
    router = router_matrix(hidden, mixture) + (mixture.experts.count + mixture.idle if arch.router_bias else 0)
    latent = 2 * hidden * mixture.latent + (mixture.latent if mixture.latent_norm else 0) if mixture.latent else 0
    return router + latent + shared_matrices(arch, hidden, mixture) + (hidden if arch.shared_gate else 0)


def expert_parameters(arch: Architecture, hidden: int, mixture: Mixture) -> int:
    """Of one layer with a mixture: the routed experts."""
    inner = mixture.latent or hidden
    biases = (arch.mlp_matrices - 1) * mixture.width + inner if arch.expert_bias else 0
    return routed_matrices(arch, hidden, mixture) + mixture.experts.count * biases


def router_matrix(hidden: int, mixture: Mixture) -> int:
    """Of one layer: the router without its bias."""
    return (mixture.experts.count + mixture.idle) * hidden


def shared_matrices(arch: Architecture, hidden: int, mixture: Mixture) -> int:
    """Of one layer: the matrices of the shared experts."""
    return arch.mlp_matrices * hidden * mixture.shared_width


def routed_matrices(arch: Architecture, hidden: int, mixture: Mixture) -> int:
    """Of one layer: the matrices of the routed experts, without biases."""
    return mixture.experts.count * arch.mlp_matrices * (mixture.latent or hidden) * mixture.width
