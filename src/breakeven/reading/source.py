"""The bytes of a trace's file as UTF-8, a piece at a time: unpacked, decoded, cut into lines with their numbers."""

from __future__ import annotations

import codecs
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from breakeven.errors import InputError
from breakeven.messages import Message

PIECE = 2**20
SLICE = 2**14
"""Bytes that are unpacked at a time: a copy of the state before it is kept, should they be damaged."""
HEAD_BYTES = 2**16
LONGEST_RECORD = 2**28
"""Bytes beyond which a line or an element is damaged: what has no end must not fill the memory."""
UNREADABLE = b"\x00"
"""Stands for a line that was cut or has no end; no format reads it."""
GZIP = b"\x1f\x8b"
PACKED = {b"\x28\xb5\x2f\xfd": "zstd -d", b"BZh": "bunzip2", b"\xfd7zXZ\x00": "unxz", b"PK\x03\x04": "unzip", b"7z\xbc\xaf": "7z x"}
"""First bytes of what is packed otherwise, and what unpacks it."""
UTF_8, PARQUET = b"\xef\xbb\xbf", b"PAR1"
MARKS = ((b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class Source:
    """A regular file that is read from its beginning as often as needed, never whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_after: int | None = None
        """Lines that came before a packed file broke off; None while nothing has."""
        self._broken = False
        _regular(path)
        self.head = self._head()

    def pieces(self) -> Iterator[bytes]:
        """The content as UTF-8 without its mark."""
        with _opened(self.path) as handle:
            stream = self._unpacked(handle)
            first = next(stream, b"")
            encoding = next((name for mark, name in MARKS if first.startswith(mark)), None)
            if encoding is None:
                yield first.removeprefix(UTF_8)
                yield from stream
            else:
                decoder = codecs.getincrementaldecoder(encoding)("replace")
                yield decoder.decode(first).encode()
                for piece in stream:
                    yield decoder.decode(piece).encode()

    def lines(self) -> Iterator[tuple[int, list[bytes]]]:
        """Lines in batches, with the number of the first; the last one of a file that broke off is not to be read."""
        number, kept, held = 1, [b""], 0
        for piece in self.pieces():
            if b"\n" not in piece:
                held += len(piece)
                kept = [UNREADABLE] if held > LONGEST_RECORD else [*kept, piece]
                continue
            lines = b"".join((*kept, piece)).split(b"\n")
            rest = lines.pop()
            kept, held = [rest], len(rest)
            yield number, lines
            number += len(lines)
        if self._broken:
            self.cut_after = number - 1
        last = b"".join(kept)
        if last or self._broken:
            yield number, [UNREADABLE if self._broken else last]

    def notes(self) -> tuple[Message, ...]:
        """What there is to say once it is read."""
        if not self._broken:
            return ()
        return (Message("trace.cut", {"path": self.path.name, "line": self.cut_after or 0}),)

    def _head(self) -> bytes:
        found = b""
        for piece in self.pieces():
            found += piece
            if len(found) >= HEAD_BYTES:
                break
        self._broken = False
        _readable(self.path, found)
        return found[:HEAD_BYTES]

    def _unpacked(self, handle: BinaryIO) -> Iterator[bytes]:
        first = handle.read(SLICE)
        for magic, command in PACKED.items():
            if first.startswith(magic):
                raise InputError("trace_packed", path=str(self.path), command=command)
        if not first.startswith(GZIP):
            yield first
            while piece := handle.read(PIECE):
                yield piece
        else:
            yield from _gathered(self._gunzipped(first, handle))

    def _gunzipped(self, piece: bytes, handle: BinaryIO) -> Iterator[bytes]:
        """What a gzip file holds, as far as it is sound; several members follow each other."""
        member = zlib.decompressobj(wbits=31)
        while piece:
            before = member.copy()
            try:
                out = member.decompress(piece, PIECE)
            except zlib.error:
                self._broken = True
                yield from _sound(before, piece)
                return
            if out:
                yield out
            piece = member.unconsumed_tail
            if member.eof:
                piece = member.unused_data.lstrip(b"\0") or handle.read(SLICE).lstrip(b"\0")
                if not piece:
                    return
                member = zlib.decompressobj(wbits=31)
            piece = piece or handle.read(SLICE)
        self._broken = True
        yield member.flush()


def _gathered(stream: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are worth the work on each."""
    held: list[bytes] = []
    size = 0
    for piece in stream:
        held.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _sound(member: Any, piece: bytes) -> Iterator[bytes]:
    """What comes out of a piece before the byte at which it is damaged."""
    for place in range(len(piece)):
        try:
            yield member.decompress(piece[place : place + 1])
        except zlib.error:
            return


def _regular(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputError("file_missing", path=str(path)) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError("file_unreadable", path=str(path), reason=getattr(error, "strerror", None) or str(error)) from None
    if not stat.S_ISREG(mode):
        raise InputError("file_is_a_folder" if stat.S_ISDIR(mode) else "file_not_regular", path=str(path))


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError("file_unreadable", path=str(path), reason=error.strerror or str(error)) from None


def _readable(path: Path, head: bytes) -> None:
    """Refuses what is empty, and text in an encoding that no mark tells."""
    if not head.strip():
        raise InputError("trace_no_content", path=str(path))
    if head.startswith(PARQUET) or not head[:1024].count(0) * 3 > len(head[:1024]):
        return
    if (set(head[1:64:2]) == {0}) != (set(head[0:64:2]) == {0}):
        raise InputError("trace_utf16", path=str(path), encoding="UTF-16LE" if head[1:2] == b"\0" else "UTF-16BE")
