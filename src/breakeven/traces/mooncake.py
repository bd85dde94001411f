"""Mooncake traces: JSON lines with a time stamp in ms, lengths, and ids of 512-token prompt blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from breakeven.trace import LONGEST_REQUEST, Trace, first_lines, make_trace

BLOCK_TOKENS = 512
LATEST_MS = 1e15


class _Line(msgspec.Struct):
    timestamp: Annotated[float, msgspec.Meta(ge=0, le=LATEST_MS)]
    input_length: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_REQUEST)]
    output_length: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_REQUEST)]
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0, le=2**62)]] = []


def sniff(head: bytes) -> bool:
    """Whether a file begins as these traces do."""
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    return first.lstrip().startswith(b"{") and all(name in first for name in (b'"timestamp"', b'"input_length"', b'"output_length"'))


def read(path: Path) -> Trace:
    """The requests of a file; lines that cannot be read are counted."""
    lines, damaged = _lines(path)
    sizes = np.fromiter((len(line.hash_ids) for line in lines), dtype=np.int64, count=len(lines))
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    has_ids = bool(offsets[-1])
    return make_trace(
        Trace(
            name=path.name,
            form="mooncake",
            arrival_s=np.array([line.timestamp for line in lines], dtype=np.float64) / 1e3,
            input_tokens=np.array([line.input_length for line in lines], dtype=np.int64),
            output_tokens=np.array([line.output_length for line in lines], dtype=np.int64),
            hash_ids=np.array([name for line in lines for name in line.hash_ids], dtype=np.int64) if has_ids else None,
            hash_offsets=offsets if has_ids else None,
            block_tokens=BLOCK_TOKENS if has_ids else None,
            damaged=len(damaged),
            damaged_lines=first_lines(damaged),
        )
    )


def _lines(path: Path) -> tuple[list[_Line], list[int]]:
    decode = msgspec.json.Decoder(_Line).decode
    lines: list[_Line] = []
    damaged: list[int] = []
    with path.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                lines.append(decode(line.removeprefix(b"\xef\xbb\xbf")))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                damaged.append(number)
    return lines, damaged
