"""Which files make up one GGUF model: a single one, a set of parts, or a folder that holds exactly one set."""

from __future__ import annotations

import os
import re
from pathlib import Path

from breakeven.errors import InputError
from breakeven.origin.gguf_head import Head, read_head
from breakeven.origin.values import shown

PART = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})", re.IGNORECASE)
"""How llama.cpp's gguf-split names its parts."""
PROJECTOR = re.compile(r"(^|[-_.])mmproj([-_.]|$)", re.IGNORECASE)


def heads_of(path: Path) -> tuple[Head, ...]:
    """The heads of all parts, in order. The first holds the metadata."""
    _refuse_projector(path)
    named = PART.fullmatch(path.stem)
    if named is None:
        heads: tuple[Head, ...] = (read_head(path),)
        _refuse_lone_part(heads[0])
        return heads
    if not os.path.exists(path):
        raise InputError("gguf_missing", where=shown(str(path)))
    return tuple(read_head(part) for part in _parts(path, named))


def model_name(path: Path) -> str:
    """The name of the file without the number of its part."""
    named = PART.fullmatch(path.stem)
    return shown(named["stem"] if named else path.stem)


def in_folder(folder: Path) -> Path | None:
    """The GGUF file of a folder, or the first part of its set; None where it holds none. Projectors do not count."""
    files = sorted(file for file in folder.glob("*.[gG][gG][uU][fF]") if not PROJECTOR.search(file.stem))
    sets = {model_name(file): file for file in reversed(files)}
    if len(sets) > 1:
        raise InputError("gguf_folder_several", where=shown(str(folder)), names=", ".join(sorted(file.name for file in sets.values())[:4]))
    return next(iter(sets.values()), None)


def _parts(path: Path, named: re.Match[str]) -> list[Path]:
    count = int(named["parts"])
    if not 1 <= int(named["part"]) <= count:
        raise InputError("gguf_part_number", where=shown(str(path)), part=int(named["part"]), parts=count)
    parts = [path.with_name(f"{named['stem']}-{part:05}-of-{count:05}{path.suffix}") for part in range(1, count + 1)]
    missing = next((part for part in parts if not os.path.exists(part)), None)
    if missing is not None:
        raise InputError("gguf_part_missing", where=shown(str(path)), part=missing.name, parts=count)
    return parts


def _refuse_projector(path: Path) -> None:
    if PROJECTOR.search(path.stem):
        raise InputError("gguf_projector", where=shown(str(path)))


def _refuse_lone_part(head: Head) -> None:
    """A part that was renamed: its set cannot be found by name."""
    count = head.values.get("split.count", 0)
    if isinstance(count, int) and count > 1:
        raise InputError("gguf_part_renamed", where=head.where, parts=count)
