"""The devices of this machine as its own tools list them, or as DCGM's exporter names them in labels: names and how many."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from breakeven.spec.evidence import Said

TIMEOUT_S = 5.0
LONGEST = 200
NVIDIA = ("nvidia-smi", "--query-gpu=name,memory.total,memory.used", "--format=csv,noheader,nounits")
AMD = ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json")
NAMES = ("Card Series", "Card series", "Card Model", "Device Name", "Card model")
AMD_MEMORY = ("VRAM Total Used Memory (B)", "VRAM Total Memory (B)")
MOST_LINES = 4096


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
    memory: tuple[tuple[float, float], ...] = ()
    """Bytes in use and bytes in all of each device whose tool says both."""
    trouble: Said | None = None
    """Why nothing is taken of what was read."""

    def called(self, device: str) -> Found:
        """These devices, known in the catalogue."""
        return replace(self, device=device)

    def unknown(self) -> Found:
        """These devices, of which the catalogue knows nothing."""
        trouble = Said(key="observe.told_device_unknown", values={"name": self.name[:LONGEST]})
        return Found(name=self.name, seen=self.seen, source=self.source, trouble=trouble)


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
    memory = [[_number(word) * 2**20 for word in (row[2], row[1])] for row in rows if len(row) >= 3]
    return replace(_counted([row[0].strip() for row in rows], "nvidia-smi"), memory=_known(memory))


def of_amd(written: str) -> Found:
    """One JSON object with a ``card0`` … each; the name stands under one of several keys, by version."""
    try:
        cards = json.loads(written)
    except (ValueError, RecursionError):
        return Found()
    if not isinstance(cards, dict):
        return Found()
    told = [card for name, card in cards.items() if re.fullmatch(r"card\d+", name) and isinstance(card, dict)]
    memory = [[_number(card.get(key)) for key in AMD_MEMORY] for card in told]
    return replace(_counted([name for card in told if (name := _amd_name(card))], "rocm-smi"), memory=_known(memory))


def _number(word: object) -> float:
    """A number as a tool writes it; NaN for ``[N/A]``, which devices without a memory of their own have."""
    try:
        return float(str(word))
    except ValueError:
        return float("nan")


def _known(memory: list[list[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((used, whole) for used, whole in memory if 0.0 <= used <= whole < float("inf"))


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
