"""What a quantised matrix is stored as: the name of its format, and its bytes for each weight, scales included."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.kernels import weight_kernel

SIXTEEN_BIT_BYTES = 2.0
GROUPS = (32, 64, 128)
"""Group sizes that the int4 kernels take, beside one scale for a whole column (-1)."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format as one of ``model_entry.FORMATS`` names it."""

    name: str
    bytes: float
    """For each weight, with its share of scales and zero points."""
    narrower: bool = False
    """Whether activations are meant to be narrower than the kernel family of the format computes in (W4A8)."""


def integer(bits: int | None, group: int | None, *, shared_bits: float, activations: bool = False) -> Format | None:
    """Integers with a scale for each group; ``shared_bits`` are what a group adds, ``activations`` says that those are 8-bit too.

    A group of -1 is a whole column.

    >>> integer(4, 128, shared_bits=20)
    Format(name='int4_g128', bytes=0.51953125, narrower=False)
    """
    columns = group in (-1, 0) or (group is None and bits == 8)
    size = bits / 8 + (0.0 if columns else shared_bits / (8 * (group or 1))) if bits else 0.0
    if bits == 8 and (columns or (group or 0) > 0):
        return Format(name="int8" if activations else "int8_weight_only", bytes=size)
    if bits == 4 and (columns or group in GROUPS):
        return Format(name="int4" if columns else f"int4_g{group}", bytes=size, narrower=activations)
    return None


def float8(block: tuple[int, int] | None = None, *, activations: bool = True) -> Format:
    """fp8: one 32-bit scale for a block, or for a tensor or a row, where it adds nothing to speak of.

    >>> float8((128, 128)).bytes
    1.000244140625
    """
    scale = 4 / (block[0] * block[1]) if block else 0.0
    return Format(name="fp8" if activations else "fp8_weight_only", bytes=1.0 + scale)


def float4(group: int, *, activations: bool = True) -> Format | None:
    """4-bit floats: nvfp4 in groups of 16 with 8-bit scales, mxfp4 in groups of 32 with 8-bit exponents."""
    if group == 16:
        return Format(name="nvfp4" if activations else "nvfp4_weight_only", bytes=weight_kernel("nvfp4").bytes)
    return Format(name="mxfp4", bytes=weight_kernel("mxfp4").bytes) if group == 32 else None
