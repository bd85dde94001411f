"""The head of a GGUF file, walked within bounds: metadata and tensor infos; tensor data is never touched, nor long lists kept."""

from __future__ import annotations

import mmap
import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from breakeven.errors import InputError
from breakeven.origin.values import shown

MAGIC = b"GGUF"
LFS = b"version https://git-lfs"
VERSIONS = (2, 3)
# Ten times what any published model has, and more: above it a count is damage, not a model.
MOST_TENSORS, MOST_KEYS, MOST_ENTRIES, MOST_DIMS = 1_000_000, 100_000, 10_000_000, 4
LONGEST_NAME, LONGEST_TEXT, LONGEST_KEPT = 1024, 2**26, 65_536
MOST_ELEMENTS = 10**15
# GGUF value types: the struct code of each scalar; 8 is text, 9 an array (specification of GGUF, version 3).
SCALARS: Mapping[int, str] = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
TEXT, ARRAY = 8, 9


@dataclass(frozen=True)
class Listed:
    """An array that was counted and not kept: texts, or more numbers than a model has layers."""

    entries: int


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """What the head says of a tensor. ``dims`` are as GGUF orders them: the row's width first."""

    name: str
    dims: tuple[int, ...]
    kind: str
    """The ggml type by its name, for example ``Q4_K``."""
    elements: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Head:
    """The metadata and the tensors of one file."""

    where: str
    values: Mapping[str, object]
    tensors: tuple[Tensor, ...]


@dataclass
class _Walk:
    """A place in the file; every step is checked against its end."""

    data: mmap.mmap
    where: str
    size: int
    at: int = 4
    seen: set[str] = field(default_factory=set)

    def damaged(self) -> InputError:
        return InputError("gguf_damaged", where=self.where, offset=self.at)

    def skip(self, count: int) -> int:
        start = self.at
        if count < 0 or start + count > self.size:
            raise InputError("gguf_truncated", where=self.where, size=self.size, needs=min(start + count, 2**63))
        self.at = start + count
        return start

    def number(self, code: str) -> int | float | bool:
        value: int | float | bool = struct.unpack_from(f"<{code}", self.data, self.skip(struct.calcsize(f"<{code}")))[0]
        return value

    def count(self, code: str, most: int) -> int:
        value = int(self.number(code))
        if value > most:
            raise self.damaged()
        return value

    def text(self, longest: int) -> str:
        length = self.count("Q", longest)
        start = self.skip(length)
        try:
            return self.data[start : start + length].decode()
        except UnicodeDecodeError:
            raise self.damaged() from None

    def once(self, name: str) -> str:
        if not name or name in self.seen:
            raise self.damaged()
        self.seen.add(name)
        return name


def read_head(path: Path) -> Head:
    """The head of one file; whatever is no sound GGUF is one clear line."""
    where = shown(str(path))
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise InputError("gguf_not_a_file", where=where)
        with path.open("rb") as file:
            _check_start(file.read(64), where, state.st_size)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _walk(_Walk(data, where, len(data)))
    except FileNotFoundError as fault:
        raise InputError("gguf_missing", where=where) from fault
    except (OSError, ValueError) as fault:  # a loop of links, no permission, a NUL in the name, a file that cannot be mapped
        reason = (fault.strerror if isinstance(fault, OSError) else None) or str(fault)
        raise InputError("gguf_unreadable", where=where, reason=reason) from fault


def _check_start(start: bytes, where: str, size: int) -> None:
    if start.startswith(LFS):
        raise InputError("gguf_lfs", where=where)
    if start[:4] != MAGIC:
        raise InputError("gguf_magic", where=where)
    if len(start) < 24:
        raise InputError("gguf_truncated", where=where, size=size, needs=24)
    version = int.from_bytes(start[4:8], "little")
    if version & 0xFFFF == 0 and int.from_bytes(start[4:8], "big") in (1, *VERSIONS):
        raise InputError("gguf_big_endian", where=where)
    if version not in VERSIONS:
        raise InputError("gguf_version", where=where, version=version, known=", ".join(map(str, VERSIONS)))


def _walk(walk: _Walk) -> Head:
    walk.skip(4)
    tensors, keys = walk.count("Q", MOST_TENSORS), walk.count("Q", MOST_KEYS)
    values: dict[str, object] = {}
    for _ in range(keys):
        name = walk.once(walk.text(LONGEST_NAME))
        values[name] = _value(walk, walk.count("I", 64))
    walk.seen.clear()
    infos = [_info(walk) for _ in range(tensors)]
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
        raise InputError("gguf_bad_key", where=walk.where, field="general.alignment", value=shown(alignment))
    start = -(-walk.at // alignment) * alignment
    for tensor, offset in infos:
        if start + offset + tensor.bytes > walk.size:
            raise InputError("gguf_truncated", where=walk.where, size=walk.size, needs=start + offset + tensor.bytes)
    return Head(where=walk.where, values=values, tensors=tuple(tensor for tensor, _ in infos))


def _value(walk: _Walk, kind: int) -> object:
    if kind in SCALARS:
        return walk.number(SCALARS[kind])
    if kind == TEXT:
        return walk.text(LONGEST_TEXT)
    if kind != ARRAY:
        raise walk.damaged()
    inner, entries = walk.count("I", 64), walk.count("Q", MOST_ENTRIES)
    if inner == TEXT:
        for _ in range(entries):
            walk.skip(walk.count("Q", LONGEST_TEXT))
        return Listed(entries)
    if inner not in SCALARS:
        raise walk.damaged()
    code = f"<{entries}{SCALARS[inner]}"
    start = walk.skip(struct.calcsize(code))
    return list(struct.unpack_from(code, walk.data, start)) if entries <= LONGEST_KEPT else Listed(entries)


def _info(walk: _Walk) -> tuple[Tensor, int]:
    """A tensor, and where its data begins, counted from the first."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    name = walk.once(walk.text(LONGEST_NAME))
    dims = tuple(walk.count("Q", MOST_ELEMENTS) for _ in range(walk.count("I", MOST_DIMS)))
    number, offset = walk.count("I", 2**32), walk.count("Q", 2**63)
    elements = prod(dims)
    if not dims or not 0 < elements <= MOST_ELEMENTS:
        raise walk.damaged()
    try:
        kind = GGMLQuantizationType(number)
    except ValueError:
        raise InputError("gguf_type_unknown", where=walk.where, tensor=shown(name), type=number) from None
    block, size = GGML_QUANT_SIZES[kind]
    if dims[0] % block:
        raise walk.damaged()
    return Tensor(name=name, dims=dims, kind=kind.name, elements=elements, bytes=elements // block * size), offset
