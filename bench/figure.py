"""A measurement against its limit, and how processes and calls are measured."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BREAKEVEN_SHARED", ROOT.parent / "shared")) / "data"
MODEL, DEVICE = "meta-llama/Llama-3.1-8B-Instruct", "h100-sxm"
"""What traces are simulated on."""
START = "import sys; from breakeven.cli import main; sys.argv[0] = 'breakeven'; main()"


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


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One command in a fresh process."""

    wall_s: float
    processor_s: float
    resident_bytes: float
    """The largest it became."""
    out: str


@contextmanager
def held_to(cores: int | None) -> Iterator[None]:
    """Processes started in here may use so many of the cores that we may."""
    if cores is None or not hasattr(os, "sched_getaffinity"):
        yield
        return
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(ours)[-cores:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, ours)


def ran(command: list[str], cores: int | None = None) -> Ran:
    """Run a command, held to so many cores; its exit status has to be 0."""
    began = time.perf_counter()
    with held_to(cores):
        process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    out = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} exits {process.returncode}")
    resident = usage.ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)
    return Ran(wall_s=wall_s, processor_s=usage.ru_utime + usage.ru_stime, resident_bytes=resident, out=out)


def breakeven(*arguments: str, cores: int | None = None) -> Ran:
    """The program as a user starts it."""
    return ran([sys.executable, "-c", START, *arguments], cores)


def cpu_s() -> float:
    """Processor seconds of this process and its children: what other programs on the machine take is not in it."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def processor_seconds_of(call: Callable[[], object]) -> float:
    began = cpu_s()
    call()
    return cpu_s() - began


def best_of(call: Callable[[], object], rounds: int = 5) -> float:
    """Seconds of the quickest of some calls, after one that is not counted."""
    call()
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def table(figures: list[Figure]) -> str:
    return "\n".join(f"{f.name:<19} {f.value:>16,.3f} {f.unit:<11} {_against(f)}" for f in figures)


def _against(figure: Figure) -> str:
    if figure.limit is None or figure.ratio is None:
        return "no limit"
    return f"limit {figure.limit:>12,.1f}   ratio {figure.ratio:6.2f}"


def work_folder() -> Path:
    """Where files that benchmarks make are kept: git ignores it, ``make clean`` empties it."""
    folder = ROOT / "build/bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
