"""ModelOpt: one algorithm for all modules, or a map from modules to algorithms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from breakeven.origin.hf_config_groups import grouped
from breakeven.origin.hf_patterns import patterns
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import Format, float4, float8, integer
from breakeven.origin.values import shown

_KEPT = ("ignore", "exclude_modules", "modules_to_not_convert")


def modelopt(written: Written) -> Rules:
    """By ``quant_algo``; ``MIXED_PRECISION`` by its map, and what the map leaves out stays at 16 bits."""
    algorithm = _algorithm(written)
    if algorithm is None and written.config.get("config_groups"):
        return grouped(written)
    if algorithm != "MIXED_PRECISION":
        return Rules(by_role=linear(_format(written, algorithm)), named=written.kept(*_KEPT))
    if written.config.get("quantized_layers"):
        return _mapped(written)
    if written.config.get("config_groups"):
        return grouped(written)
    raise written.refused("modelopt")


def _mapped(written: Written) -> Rules:
    by_format: dict[Format, list[str]] = {}
    layers = written.inner("quantized_layers").config
    for name in layers:
        own = written.at(layers[name], f"quantized_layers.{name}")
        by_format.setdefault(_format(own, _algorithm(own)), []).append(name)
    named = [(patterns(names, written.fields), found) for found, names in by_format.items()]
    return Rules(named=[*written.kept(*_KEPT), *named])


def _algorithm(written: Written) -> str | None:
    algorithm = written.config.get("quant_algo")
    return None if algorithm is None else str(algorithm).upper()


def _format(written: Written, algorithm: str | None) -> Format:
    found = _ALGORITHMS[algorithm](written) if algorithm in _ALGORITHMS else None
    if found is None:
        raise written.refused("modelopt" if algorithm is None or "quant_algo" in written.config else f"modelopt {shown(algorithm)}")
    return found


def _awq(written: Written, *, activations: bool) -> Format | None:
    group = written.number("group_size")
    return integer(4, 128 if group is None else group, shared_bits=16, activations=activations)


_ALGORITHMS: Mapping[str | None, Callable[[Written], Format | None]] = {
    "FP8": lambda written: float8(),
    "FP8_PER_CHANNEL_PER_TOKEN": lambda written: float8(),
    "FP8_PB_WO": lambda written: float8((128, 128), activations=False),
    "FP8_BLOCK_SCALES": lambda written: float8((128, 128)),
    "NVFP4": lambda written: float4(16),
    "NVFP4_AWQ": lambda written: float4(16),
    "W4A16_NVFP4": lambda written: float4(16, activations=False),
    "MXFP4": lambda written: float4(32),
    "W4A16_AWQ": lambda written: _awq(written, activations=False),
    "INT4_AWQ": lambda written: _awq(written, activations=False),
    "W4A8_AWQ": lambda written: _awq(written, activations=True),
    "W8A16": lambda written: integer(8, -1, shared_bits=0),
    "W8A8_SQ_PER_CHANNEL": lambda written: integer(8, -1, shared_bits=0, activations=True),
}
"""By the names of ModelOpt's export; the groups of W4A16_AWQ and W4A8_AWQ are of 128 where they are not written."""
