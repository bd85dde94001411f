"""The devices of this machine as its own tools list them, or as DCGM's exporter names them in labels: names and how many."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from breakeven.spec.evidence import Said

TIMEOUT_S = 5.0
LONGEST = 200
NVIDIA = ("nvidia-smi", "--query-gpu=name,memory.total,memory.used", "--format=csv,noheader,nounits")
AMD = ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json")
NAMES = ("Card Series", "Card series", "Card Model", "Device Name", "Card model")
MOST_LINES = 4096
LEAST_USED = 0.1
"""Share of its memory that a device which serves a model has in use: what a desktop takes is less."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """Devices that were read. ``name`` is the tool's word for them, ``device`` the catalogue's."""

    name: str = ""
    device: str = ""
    count: int | None = None
    """How many there are of this server: known only where there is one, or where the engine says so."""
    seen: int | None = None
    """How many there are in the machine."""
    source: str = ""
    used_share: float | None = None
    """Of the memory of the one that has most in use, where the tool tells it."""
    trouble: Said | None = None
    """Why nothing is taken of what was read."""

    def called(self, device: str) -> Found:
        """These devices, known in the catalogue."""
        return replace(self, device=device)

    def unknown(self) -> Found:
        """These devices, of which the catalogue knows nothing."""
        trouble = Said(key="observe.told_device_unknown", values={"name": self.name[:LONGEST]})
        return Found(name=self.name, seen=self.seen, source=self.source, trouble=trouble)

    def in_use(self) -> Found:
        """These devices, where one of them holds something; else the server behind a local address is elsewhere, or on the processor."""
        if self.used_share is None or self.used_share >= LEAST_USED:
            return self
        trouble = Said(key="observe.told_device_idle", values={"name": self.name[:LONGEST]})
        return Found(seen=self.seen, source=self.source, trouble=trouble)


def read_devices() -> Found:
    """What nvidia-smi lists, else rocm-smi; a machine without either has no devices that can be read."""
    for command, reader in ((NVIDIA, of_nvidia), (AMD, of_amd)):
        written = _ran(command)
        if written is not None and (found := reader(written)).name:
            return found
    return Found()


def _ran(command: tuple[str, ...]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", errors="replace")[: 2**20]


def of_nvidia(written: str) -> Found:
    """Lines ``NVIDIA H100 80GB HBM3, 81559, 0``.

    >>> of_nvidia("NVIDIA L4, 23034, 21020\\n").name
    'NVIDIA L4'
    """
    rows = [row for row in csv.reader(io.StringIO(written)) if len(row) >= 2 and row[0].strip()][:MOST_LINES]
    found = _counted([row[0].strip() for row in rows], "nvidia-smi")
    shares = [share for row in rows if (share := _used(row)) is not None]
    return replace(found, used_share=max(shares, default=None))


def _used(row: Sequence[str]) -> float | None:
    """Memory in use over all of it, MiB each."""
    total, used = (each.strip() for each in (*row[1:3], "", "")[:2])
    return int(used) / int(total) if used.isdecimal() and total.isdecimal() and int(total) else None


def of_amd(written: str) -> Found:
    """One JSON object with a ``card0`` … each; the name stands under one of several keys, by version."""
    try:
        cards = json.loads(written)
    except (ValueError, RecursionError):
        return Found()
    if not isinstance(cards, dict):
        return Found()
    told = [card for name, card in cards.items() if re.fullmatch(r"card\d+", name) and isinstance(card, dict)]
    return _counted([name for card in told if (name := _amd_name(card))], "rocm-smi")


def _amd_name(card: Mapping[str, object]) -> str:
    return next((value.strip() for key in NAMES if isinstance(value := card.get(key), str) and not value.startswith("0x")), "")


def of_labels(labels: Iterable[Mapping[str, str]]) -> Found:
    """The devices that series of DCGM's exporter name, told apart by their UUID or their place."""
    found = {(one.get("Hostname"), one.get("UUID") or one.get("gpu")): one["modelName"] for one in labels if one.get("modelName")}
    return _counted([*found.values()], "DCGM")


def _counted(names: list[str], source: str) -> Found:
    """One kind of devices; a machine with several kinds does not say which of them serves."""
    kinds = Counter(name[:LONGEST] for name in names)
    if not kinds:
        return Found()
    if len(kinds) > 1:
        trouble = Said(key="observe.told_device_kinds", values={"names": ", ".join(sorted(kinds))[:LONGEST]})
        return Found(seen=len(names), source=source, trouble=trouble)
    return Found(name=next(iter(kinds)), count=1 if len(names) == 1 else None, seen=len(names), source=source)
