"""``config_groups`` as compressed-tensors writes them, and ModelOpt after it: which modules are stored how."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.origin.hf_modules import Role
from breakeven.origin.hf_patterns import Patterns, patterns
from breakeven.origin.hf_rules import Rules, Written
from breakeven.origin.hf_weight_formats import Format, float4, float8, integer
from breakeven.origin.values import shown

_CLASSES: Mapping[str, tuple[Role, ...]] = {"linear": ("linear", "expert", "router"), "embedding": ("embedding",)}
"""Layer classes that stand for all modules of that class. The head stays as it is unless it is named."""


def grouped(written: Written) -> Rules:
    """Several groups: what is ignored first, then targets by name, then those by class."""
    named: list[tuple[Patterns, Format | None]] = list(written.kept("ignore", "exclude_modules", "modules_to_not_convert"))
    by_role: dict[Role, Format] = {}
    groups = written.inner("config_groups").config
    for key in groups:
        group = written.at(groups[key], f"config_groups.{key}")
        found = group_format(group, written)
        targets = group.words("targets") or ("Linear",)
        modules = [target for target in targets if not _is_class(target)]
        if modules:
            named.append((patterns(modules, written.fields), found))
        for target in targets:
            for role in _CLASSES.get(target.lower(), _CLASSES["linear"]) if _is_class(target) else ():
                by_role.setdefault(role, found)
    return Rules(by_role=by_role, named=named)


def _is_class(target: str) -> bool:
    """``Linear``, ``FusedMoE``: a class's name begins with a capital and has no dots."""
    return target[:1].isupper() and "." not in target and not target.startswith("re:")


def group_format(group: Written, whole: Written) -> Format:
    """The format of one group, from its ``weights`` and ``input_activations``."""
    weights, activations = group.inner("weights"), group.config.get("input_activations") is not None
    bits, size, kind = weights.number("num_bits"), weights.number("group_size"), weights.config.get("type", "int")
    found = _float(weights, bits, size, activations) if kind == "float" else None
    if kind == "int":
        symmetric = weights.flag("symmetric", True)
        size = -1 if size is None and weights.config.get("strategy") not in ("group", "tensor_group", "block") else size
        scale = 16 + (0 if symmetric else bits or 0)
        packed = str(group.config.get("format") or whole.config.get("format")) == "pack-quantized"
        found = integer(bits, size, shared_bits=scale, activations=activations and not (packed and bits == 8))
    if found is None:
        told = {"num_bits": bits, "type": kind, "group_size": size, "strategy": weights.config.get("strategy")}
        what = ", ".join(f"{name}={shown(value)}" for name, value in told.items() if value is not None)
        raise whole.refused(f"{shown(whole.config.get('quant_method', 'config_groups'))} {what}".strip())
    return found


def _float(weights: Written, bits: int | None, size: int | None, activations: bool) -> Format | None:
    if bits == 4:
        return float4(size or 0, activations=activations)
    block = weights.config.get("block_structure")
    sides = tuple(block) if isinstance(block, list) and len(block) == 2 and all(type(side) is int and side > 0 for side in block) else None
    return float8(sides, activations=activations) if bits == 8 else None
