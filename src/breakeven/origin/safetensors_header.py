"""The header of a safetensors file: names, types, shapes and bytes of its tensors. No tensor is read.

Format: 8 bytes, the header's length (little-endian), then JSON, then the data
(github.com/huggingface/safetensors, README, "Format").
"""

from __future__ import annotations

import json
import math
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from breakeven.errors import InputError
from breakeven.origin.values import shown

LARGEST_HEADER_BYTES = 100_000_000
"""The format's own limit."""
LFS_POINTER = b"version "
BITS: Mapping[str, int] = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
"""Bits of an element by type."""


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """What a header says of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        """Elements as stored (of packed weights: of what they are packed in)."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes in the file."""
        return self.end - self.begin


def read_header(path: Path) -> Mapping[str, Tensor]:
    """The tensors of a file by name; a file that is cut, or whose header cannot be true, is refused in a line."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise InputError("safetensors_bad", where=str(path), reason="not an ordinary file")
        with path.open("rb") as file:
            head = file.read(8)
            length = _length(head, state.st_size, path)
            text = file.read(length)
    except FileNotFoundError:
        raise InputError("safetensors_missing", where=str(path)) from None
    except OSError as fault:
        raise InputError("config_unreadable", where=str(path), reason=fault.strerror or str(fault)) from None
    tensors = {name: _tensor(name, entry, path) for name, entry in _object(text, path).items() if name != "__metadata__"}
    _check_layout(tensors, state.st_size - 8 - length, path)
    return tensors


def _length(head: bytes, size: int, path: Path) -> int:
    if head == LFS_POINTER:
        raise InputError("safetensors_pointer", where=str(path))
    if len(head) < 8:
        raise InputError("safetensors_cut", where=str(path), size=size, needed=8)
    (length,) = struct.unpack("<Q", head)
    if length > LARGEST_HEADER_BYTES:
        raise InputError("safetensors_bad", where=str(path), reason=f"a header of {length} bytes, above {LARGEST_HEADER_BYTES}")
    if 8 + length > size:
        raise InputError("safetensors_cut", where=str(path), size=size, needed=8 + length)
    return int(length)


def _object(text: bytes, path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError("safetensors_bad", where=str(path), reason="the header is not JSON") from None
    if not isinstance(found, dict):
        raise InputError("safetensors_bad", where=str(path), reason="the header is not an object")
    return found


def _tensor(name: str, entry: object, path: Path) -> Tensor:
    if not isinstance(entry, dict):
        raise _bad(name, path, "no object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise _bad(name, path, f"dtype {shown(dtype)}")
    if not _whole(shape) or not _whole(offsets) or len(offsets) != 2:
        raise _bad(name, path, "shape or data_offsets")
    found = Tensor(dtype=dtype, shape=tuple(shape), begin=offsets[0], end=offsets[1])
    if found.bytes * 8 != found.elements * BITS[dtype]:
        raise _bad(name, path, f"{found.bytes} bytes for {found.elements} elements of {dtype}")
    return found


def _whole(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**63 for item in value)


def _bad(name: str, path: Path, reason: str) -> InputError:
    return InputError("safetensors_bad", where=str(path), reason=f"{shown(name)}: {reason}")


def _check_layout(tensors: Mapping[str, Tensor], data_bytes: int, path: Path) -> None:
    """Tensors follow each other, none over another, and end within the file."""
    at = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin < at:
            raise _bad(name, path, "overlaps the tensor before it")
        at = tensor.end
    if at > data_bytes:
        raise InputError("safetensors_cut", where=str(path), size=data_bytes, needed=at)
