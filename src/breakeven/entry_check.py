"""A user's entries checked before they are used: every fault with its key and what to do, and what looks like a slip."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from breakeven import catalog
from breakeven.catalog_document import CheckedFile, Finding
from breakeven.catalog_files import HERE, USERS, Kind, kind_of, read_table, user_files
from breakeven.compose import Language
from breakeven.errors import InputError
from breakeven.messages import Message, text
from breakeven.origin.device_entry import SPARSE_FACTOR

MOST_FAULTS = 50
GIBIBYTE = 2**30
SIZES_SOLD = (8, 12, 16, 24, 32, 40, 48, 64, 80, 94, 96, 128, 192, 256)
"""Sizes of memory as cards are sold: in GB on the box, in GiB on the card."""
FASTEST_BYTES_PER_S = 30e12
SLOWEST_BYTES_PER_S = 10e9
WHOLE = ("entry_layers", "entry_total", "config_heads_not_divisible", "config_top_k")
"""Faults between keys, which say nothing once a key has been replaced."""


def check_entries(path: Path, language: Language = "en") -> list[CheckedFile]:
    """Every file of a folder, or the one file, checked."""
    unusable: list[Path] = []
    if path.is_dir():
        files = list(user_files((path,)))
        folders = (path, *(path / kind for kind in USERS))
        unusable = sorted(file for folder in folders for file in folder.glob("*.toml") if not file.is_file())
    elif path.is_file():
        inside = next((kind for kind in USERS if kind == path.resolve().parent.name), None)
        files = [(path, inside or kind_of(path))]
    else:
        raise InputError("not_a_file" if path.is_symlink() or path.exists() else "file_missing", path=str(path))
    if not files and not unusable:
        raise InputError("no_entries", path=str(path))
    return [*(_checked(file, kind, language) for file, kind in files), *(_unusable(file, language) for file in unusable)]


def _unusable(path: Path, language: Language) -> CheckedFile:
    """What is called an entry and is none that could be read: a folder, a device, a link that leads nowhere."""
    says = text(Message("error.not_a_file", {"path": str(path)}), language)
    return CheckedFile(path=str(path), kind=None, ok=False, faults=[Finding(key="", says=says)], hints=[])


def _checked(path: Path, kind: Kind | None, language: Language) -> CheckedFile:
    faults, hints = [], []
    try:
        table = dict(read_table(path))
        faults = list(_faults(table, kind, path.stem))
        hints = list(_hints(table, path.stem)) if kind == "hardware" else []
        hints += [] if table.get("sources") else [Message("check.no_source", {"name": path.stem})]
    except InputError as error:
        faults = [error.message]
    return CheckedFile(
        path=str(path),
        kind=kind,
        ok=not faults,
        faults=[Finding(key=_path(fault), says=text(fault, language)) for fault in faults],
        hints=[Finding(key=str(hint.values.get("name", "")), says=text(hint, language)) for hint in hints],
    )


def _faults(table: dict[str, Any], kind: Kind | None, name: str) -> Iterator[Message]:
    """One fault after the other: what is at fault is replaced by what the template has, or dropped, until the rest reads."""
    if kind is None or kind == "engines":
        raise InputError("entry_of_no_kind", path=name)
    sound, table, replaced = tomllib.loads(template(kind)), dict(table), False
    for _ in range(MOST_FAULTS):
        try:
            catalog.parse(kind, table, name)
            return
        except InputError as error:
            if not (replaced and error.message.key.removeprefix("error.") in WHOLE):
                yield error.message
            key = _top_key(error.message, name)
            if key is None or (replaced and key in table and table[key] == sound.get(key)):
                return
            replaced = True
            table.pop(key, None)
            if key in sound:
                table[key] = sound[key]


def _top_key(fault: Message, name: str) -> str | None:
    """The key of the entry that a fault's path lies under."""
    path = _path(fault)
    inner = path.removeprefix(f"{name}.")
    return inner.replace(":", ".").partition(".")[0].partition("[")[0] if inner != path else None


def _path(fault: Message) -> str:
    """The dotted path that a fault names, with the name of its field where that is told apart."""
    path, field = fault.values.get("path") or fault.values.get("where") or "", fault.values.get("field")
    return f"{path}.{field}" if field else str(path)


def _hints(table: Mapping[str, Any], name: str) -> Iterator[Message]:
    """What reads, and looks like one of the slips that catalogues of devices are full of."""
    memory, bandwidth, rates = table.get("memory_bytes"), table.get("bandwidth_bytes_per_s"), table.get("matmul_flops")
    if isinstance(memory, (int, float)) and memory in {size * 1e9 for size in SIZES_SOLD}:
        sold = memory / 1e9
        yield Message("check.gb_for_gib", {"name": f"{name}.memory_bytes", "size": f"{sold:.0f}", "bytes": f"{sold * GIBIBYTE:.0f}"})
    if isinstance(bandwidth, (int, float)) and 0 < bandwidth < float("inf") and not SLOWEST_BYTES_PER_S <= bandwidth <= FASTEST_BYTES_PER_S:
        key = "check.bits_for_bytes" if bandwidth > FASTEST_BYTES_PER_S else "check.slow_memory"
        yield Message(key, {"name": f"{name}.bandwidth_bytes_per_s", "rate": float(bandwidth)})
    if isinstance(rates, Mapping):
        fp8, base = rates.get("fp8"), rates.get("bf16", rates.get("fp16"))
        if isinstance(fp8, (int, float)) and isinstance(base, (int, float)) and fp8 > SPARSE_FACTOR * base and table.get("notes"):
            yield Message("check.sparse", {"name": f"{name}.matmul_flops.fp8", "factor": fp8 / base})


def template(kind: str) -> str:
    """A sound entry of a kind to be written over, with what each line means."""
    return (HERE / "templates" / f"{kind}.toml").read_text(encoding="utf-8")
