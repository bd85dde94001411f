"""A measurement against its limit, and how processes and calls are measured."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BREAKEVEN_SHARED", ROOT.parent / "shared")) / "data"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measurement against its limit. ``ratio`` above 1 keeps the limit; what has no limit is only told."""

    name: str
    value: float
    unit: str
    limit: float | None
    ratio: float | None


def at_most(name: str, value: float, unit: str, limit: float) -> Figure:
    return Figure(name=name, value=value, unit=unit, limit=limit, ratio=limit / value)


def at_least(name: str, value: float, unit: str, limit: float) -> Figure:
    return Figure(name=name, value=value, unit=unit, limit=limit, ratio=value / limit)


def told(name: str, value: float, unit: str) -> Figure:
    return Figure(name=name, value=value, unit=unit, limit=None, ratio=None)


def ran(command: list[str], cores: int | None = None) -> tuple[float, float]:
    """Wall seconds and largest resident bytes of a command in a fresh process, held to so many cores."""
    held = sorted(os.sched_getaffinity(0))[-cores:] if cores and hasattr(os, "sched_getaffinity") else None
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        preexec_fn=None if held is None else lambda: os.sched_setaffinity(0, held),
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} exits {process.returncode}")
    return wall_s, usage.ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def best_of(call: Callable[[], object], rounds: int = 5) -> float:
    """Seconds of the quickest of some calls, after one that is not counted."""
    call()
    return min(seconds_of(call) for _ in range(rounds))


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def table(figures: list[Figure]) -> str:
    return "\n".join(f"{f.name:<13} {f.value:>16,.3f} {f.unit:<12} {_against(f)}" for f in figures)


def _against(figure: Figure) -> str:
    if figure.limit is None or figure.ratio is None:
        return "no limit"
    return f"limit {figure.limit:>12,.1f}   ratio {figure.ratio:8.2f}"


def work_folder() -> Path:
    """Where files that benchmarks make are kept: git ignores it, ``make clean`` empties it."""
    folder = ROOT / "build/bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
