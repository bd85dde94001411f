"""The machine that is measured on, as its system tells it: processor, memory, clock, and what else is running."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

CACHE_BYTES = 32 * 2**20
"""The last cache where the system does not tell it."""
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What stands beside figures that were measured."""

    processor: str
    vendor: str
    cores: int
    """That this process may run on."""
    memory_bytes: float
    free_bytes: float
    cache_bytes: float
    clock_hz: float | None
    """The mean over cores now; None where it cannot be read."""
    load: tuple[float, float, float] | None
    """Processes that wanted to run, over one, five and fifteen minutes, before anything was measured; None where it cannot be read."""


def machine(root: Path = Path("/")) -> Machine:
    """This machine, now; what its system does not tell is taken from what Python knows, or left open."""
    cpu = _text(root / "proc/cpuinfo")
    total, free = _memory(_text(root / "proc/meminfo"))
    limit = _text(root / "sys/fs/cgroup/memory.max").strip()
    if limit.isdecimal():
        used = _text(root / "sys/fs/cgroup/memory.current").strip()
        total = min(total, float(limit))
        free = min(free, max(float(limit) - (float(used) if used.isdecimal() else 0.0), 0.0))
    return Machine(
        processor=_first(cpu, "model name") or platform.processor() or platform.machine(),
        vendor={"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}.get(_first(cpu, "vendor_id"), "other"),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=total,
        free_bytes=free,
        cache_bytes=_cache(root),
        clock_hz=_clock(cpu),
        load=_load(),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first(text: str, key: str) -> str:
    found = re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _memory(text: str) -> tuple[float, float]:
    """Total and available bytes."""
    told = {name: float(kib) * 1024 for name, kib in re.findall(r"^(MemTotal|MemAvailable):\s*(\d+) kB", text, re.MULTILINE)}
    if "MemTotal" in told:
        return told["MemTotal"], told.get("MemAvailable", told["MemTotal"] / 2)
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names:
        return 0.0, 0.0
    total = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return total, total / 2


def _cache(root: Path) -> float:
    """Bytes of the largest cache of the first core."""
    sizes = [_text(path).strip() for path in sorted(root.glob("sys/devices/system/cpu/cpu0/cache/index*/size"))]
    told = [float(size[:-1]) * UNITS[size[-1]] for size in sizes if size[:-1].isdecimal() and size[-1] in UNITS]
    return max(told, default=float(CACHE_BYTES))


def _clock(text: str) -> float | None:
    found = [float(mhz) * 1e6 for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", text, re.MULTILINE)]
    return sum(found) / len(found) if found else None


def _load() -> tuple[float, float, float] | None:
    try:
        return os.getloadavg()
    except (OSError, AttributeError):
        return None
