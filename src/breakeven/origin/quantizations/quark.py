"""Quark (AMD): a configuration for all layers, others for layers by name, and what is excluded."""

from __future__ import annotations

from breakeven.origin.hf_patterns import patterns
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import Format, float4, float8, integer
from breakeven.origin.values import shown


def quark(written: Written) -> Rules:
    """``exclude`` first, then ``layer_quant_config`` by wildcards, then ``global_quant_config``."""
    if not written.config.get("global_quant_config"):
        raise written.refused("quark")
    if written.config.get("layer_type_quant_config"):
        raise written.refused("quark layer_type_quant_config")
    layers = written.inner("layer_quant_config").config
    named = [
        (patterns([name], written.fields), _format(written, written.at(layers[name], f"layer_quant_config.{name}"))) for name in layers
    ]
    every = _format(written, written.inner("global_quant_config"))
    return Rules(by_role=linear(every) if every else {}, named=[*written.kept("exclude"), *named])


def _format(whole: Written, written: Written) -> Format | None:
    """None where the weights are left as they are."""
    if written.config.get("weight") is None:
        return None
    weight = written.inner("weight")
    dtype, scheme = str(weight.config.get("dtype")).lower(), str(weight.config.get("qscheme") or "per_tensor").lower()
    group = weight.number("group_size") if "group" in scheme else -1
    activations = written.config.get("input_tensors") is not None
    found: Format | None = None
    if dtype in ("int4", "uint4", "int8", "uint8"):
        bits = int(dtype[-1])
        zeros = bits if dtype.startswith("u") or weight.config.get("symmetric") is False else 0
        found = integer(bits, group, shared_bits=16 + zeros, activations=activations)
    elif dtype.startswith("fp8"):
        found = float8(activations=activations)
    elif dtype in ("fp4", "mxfp4"):
        found = float4(group if group and group > 0 else 0, activations=activations)
    if found is None:
        raise whole.refused(f"quark dtype={shown(dtype)}, qscheme={shown(scheme)}, group_size={shown(group)}")
    return found
