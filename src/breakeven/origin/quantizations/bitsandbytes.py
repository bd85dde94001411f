"""bitsandbytes: 4-bit tables with a scale for each 64 weights, and 8-bit integers."""

from __future__ import annotations

from breakeven.kernels import weight_kernel
from breakeven.origin.hf_rules import Rules, Written, linear
from breakeven.origin.hf_weight_formats import Format
from breakeven.origin.values import shown

_BLOCK, _NESTED_BLOCK = 64, 256


def bitsandbytes(written: Written) -> Rules:
    """All linear layers but the head and what the list of exceptions names."""
    named = written.kept("llm_int8_skip_modules", "modules_to_not_convert")
    if written.flag("load_in_8bit") or written.flag("_load_in_8bit"):
        return Rules(by_role=linear(Format(name="int8", bytes=weight_kernel("int8").bytes)), named=named)
    if not (written.flag("load_in_4bit") or written.flag("_load_in_4bit")):
        raise written.refused("bitsandbytes")
    table = written.config.get("bnb_4bit_quant_type") or "fp4"
    if table not in ("nf4", "fp4"):  # two tables of sixteen values, read by the same kernels
        raise written.refused(f"bitsandbytes {shown(table)}")
    # Scales of 32 bits, or with double quantisation of 8 and a 32-bit one for each 256 of them.
    scale = 8 + 32 / _NESTED_BLOCK if written.flag("bnb_4bit_use_double_quant") else 32
    return Rules(by_role=linear(Format(name="nf4", bytes=(4 + scale / _BLOCK) / 8)), named=named)
