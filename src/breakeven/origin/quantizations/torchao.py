"""torchao: the name of a scheme with its arguments, or a table of configurations by module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast

from breakeven.origin.hf_modules import Role
from breakeven.origin.hf_patterns import Patterns, patterns
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import Format, float4, float8, integer
from breakeven.origin.values import shown

_MAPS = ("ModuleFqnToConfig", "FqnToConfig")


def torchao(written: Written) -> Rules:
    """``quant_type`` as a word or a table; embedding and head are converted where they are included or named."""
    kind = written.config.get("quant_type")
    named = list(written.kept("modules_to_not_convert"))
    tables = cast(tuple[Role, ...], ("head", "embedding") if written.flag("include_input_output_embeddings") else ())
    if isinstance(kind, str):
        return Rules(by_role=linear(_format(written, kind, written.inner("quant_type_kwargs")), *tables), named=named)
    chosen = written.at(kind, "quant_type")
    if "default" not in chosen.config and "_type" not in chosen.config:
        raise written.refused("torchao")
    config = chosen if "_type" in chosen.config else chosen.inner("default")
    if config.config.get("_type") not in _MAPS:
        found = _typed(written, config)
        return Rules(by_role=linear(found, *tables) if found else {}, named=named)
    return _mapped(written, config, named)


def _mapped(written: Written, config: Written, named: list[tuple[Patterns, Format | None]]) -> Rules:
    data = config.inner("_data")
    entries = (data.inner("fqn_to_config") if data.config.get("fqn_to_config") else data.inner("module_fqn_to_config")).config
    for name in entries:
        if name != "_default":
            own = None if entries[name] is None else _typed(written, written.at(entries[name], f"module_fqn_to_config.{name}"))
            named.append((patterns([name], written.fields), own))
    usual = _typed(written, written.at(entries["_default"], "_default")) if entries.get("_default") is not None else None
    return Rules(by_role=linear(usual) if usual else {}, named=named)


def _typed(written: Written, config: Written) -> Format | None:
    """A serialised configuration; None where it holds nothing."""
    return _format(written, str(config.config.get("_type")), config.inner("_data")) if config.config else None


def _format(written: Written, kind: str, data: Written) -> Format:
    plain = re.sub(r"config$", "", kind.lower().replace("_", ""))
    found = _SCHEMES[plain](data) if plain in _SCHEMES else None
    if found is None:
        group = data.config.get("group_size")
        raise written.refused(f"torchao {shown(kind)}" + (f", group_size={shown(group)}" if group is not None else ""))
    return found


def _int4(usual: int, *, activations: bool = False) -> Callable[[Written], Format | None]:
    # A 16-bit scale and a 16-bit offset for each group.
    def read(data: Written) -> Format | None:
        group = data.number("group_size", "groupsize")
        return integer(4, usual if group is None else group, shared_bits=32, activations=activations)

    return read


def _intx(data: Written) -> Format | None:
    """Any width by its torch type, in groups or by column."""
    dtype = data.config.get("weight_dtype")
    width = str(data.inner("weight_dtype").config.get("_data") if isinstance(dtype, dict) else dtype).removeprefix("torch.")
    granularity = data.inner("granularity")
    group = granularity.inner("_data").number("group_size") if granularity.config.get("_type") == "PerGroup" else -1
    return integer({"int4": 4, "int8": 8}.get(width), group, shared_bits=32)


_SCHEMES: Mapping[str, Callable[[Written], Format | None]] = {
    "int4weightonly": _int4(128),
    "int8weightonly": lambda data: integer(8, -1, shared_bits=0),
    "int8dynamicactivationint8weight": lambda data: integer(8, -1, shared_bits=0, activations=True),
    "int8dynamicactivationint4weight": _int4(32, activations=True),
    "float8dynamicactivationint4weight": _int4(128, activations=True),
    "intxweightonly": _intx,
    "float8weightonly": lambda data: float8(activations=False),
    "float8dynamicactivationfloat8weight": lambda data: float8(),
    "float8staticactivationfloat8weight": lambda data: float8(),
    "nvfp4inference": lambda data: float4(16),
    "nvfp4dynamicactivationnvfp4weight": lambda data: float4(16),
}
"""By torchao's names in lower case without underscores, with the group sizes its classes have by default (recalled)."""
