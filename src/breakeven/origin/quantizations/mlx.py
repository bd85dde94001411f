"""MLX: everything with a matrix, embedding and head too, with a 16-bit scale and a 16-bit offset for each group."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.origin.hf_patterns import Patterns, patterns
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import Format, float4, integer
from breakeven.origin.values import shown

OWN = ("bits", "group_size", "mode", "quant_method")
"""What is said of all modules; the other names are modules."""


def mlx(written: Written) -> Rules:
    """``{group_size, bits}``, and by a module's name what holds for it: a table of its own, or false for 16 bits."""
    found = _format(written)
    named: list[tuple[Patterns, Format | None]] = []
    for name, own in written.config.items():
        if name in OWN or own is None:
            continue
        if own is False:
            named.append((patterns([name], written.fields), None))
        elif isinstance(own, Mapping):
            whole = {**{key: written.config[key] for key in OWN if key in written.config}, **own}
            named.append((patterns([name], written.fields), _format(written.at(whole, name))))
        elif own is not True:
            raise written.refused(f"mlx {shown(name)}={shown(own)}")
    return Rules(by_role=linear(found, "router", "head", "embedding"), named=named)


def _format(written: Written) -> Format:
    mode, group = written.config.get("mode") or "affine", written.number("group_size")
    found = integer(written.number("bits"), group, shared_bits=32) if mode == "affine" else None
    if mode in ("mxfp4", "nvfp4"):
        found = float4(16 if mode == "nvfp4" else 32, activations=False)
    if found is None:
        raise written.refused(f"mlx {shown(mode)}" if mode != "affine" else "mlx")
    return found
