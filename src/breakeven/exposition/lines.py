"""The lines of a page that some adapter reads: all others are dropped before anything is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from breakeven.exposition.places import families

STARTED = "process_start_time_seconds"
SUFFIXES = ("_total", "_sum", "_count", "_bucket", "_info")
MOST_LINE_BYTES = 16_384
"""The longest line that is read: what vLLM says of its cache in labels is 1.2 kB."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What is left of a page."""

    metadata: tuple[bytes, ...]
    """With the samples where the format needs them (OpenMetrics); in order."""
    samples: tuple[bytes, ...]
    dropped: int
    """Samples of families that no adapter reads."""
    too_long: int


@cache
def _wanted() -> frozenset[bytes]:
    return frozenset(name.encode() for name in (*families(), STARTED))


@cache
def _described() -> frozenset[bytes]:
    """Families whose TYPE, HELP and UNIT lines go with a sample that is read."""
    bare = {name.removesuffix(suffix) for name in families() for suffix in SUFFIXES}
    return frozenset(name.encode() for name in bare) | _wanted()


def kept(body: bytes, *, described: bool = False) -> Kept:
    """The lines of interest, by the name they begin with; with their metadata, each in its place, where asked for."""
    wanted, lines, dropped, too_long = _wanted(), [], 0, 0
    for line in body.split(b"\n"):
        name = line.partition(b"{")[0].strip()
        if name not in wanted:
            name = name.partition(b" ")[0] if b" " in name else _name(line)
            if name not in wanted:
                if name[:1] == b"#":
                    if described and _describes(line):
                        lines.append(line)
                else:
                    dropped += 1 if name else 0
                continue
        if len(line) > MOST_LINE_BYTES:
            too_long += 1
        else:
            lines.append(line)
    return Kept(
        metadata=tuple(lines) if described else (),
        samples=tuple(line for line in lines if line[:1] != b"#") if described else tuple(lines),
        dropped=dropped,
        too_long=too_long,
    )


def _name(line: bytes) -> bytes:
    """The name of a sample written in an unusual way: blanks or a tab about it, or in quotes among the labels."""
    bare = line.strip()
    if bare[:2] == b'{"':
        return bare[2:].partition(b'"')[0]
    return bare.partition(b"{")[0].split(None, 1)[0] if bare.partition(b"{")[0].strip() else bare[:1]


def _describes(line: bytes) -> bool:
    words = line.split(None, 3)
    return len(words) > 2 and words[1] in (b"TYPE", b"HELP", b"UNIT") and words[2] in _described()
