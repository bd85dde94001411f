"""Breakeven beside other simulators on the same work: each in its own environment, one after another, on one core. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import work
from figure import ROOT, ran, work_folder
from traffic import CONVERSATION_REPLICAS

HERE = Path(__file__).parent
ENVIRONMENTS = ROOT / "build/rivals"
RIVALS = ("vidur", "sched-sim", "vllm-sr-sim", "kvcache-simulator")
GIB = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
"""kvcache-simulator's own budgets."""
LONGEST = 16_384
"""Tokens of the longest Azure request are fewer."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A rival and Breakeven on one job. ``ratio`` is of requests a second, ours over theirs."""

    rival: str
    version: str
    work: str
    requests: int
    rival_s: float
    our_s: float
    ratio: float
    rival_says: dict[str, Any]
    we_say: dict[str, Any]


def pinned(rival: str) -> str:
    """The version of a rival that its list of pins names."""
    pins = dict(line.split("==") for line in (HERE / f"rival/{rival}.txt").read_text().split())
    return next(version for name, version in pins.items() if name.lower().replace("_", "-") == rival)


def set_up(rival: str) -> str | None:
    """An environment of its own with all that is pinned; the reason where that cannot be."""
    home, pins = ENVIRONMENTS / rival, HERE / f"rival/{rival}.txt"
    ready = home / "pins"
    if ready.exists() and ready.read_text() == pins.read_text():
        return None
    for command in ([sys.executable, "-m", "venv", str(home)], [str(home / "bin/python"), "-m", "pip", "install", "-q", "-r", str(pins)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return next((line for line in reversed(done.stderr.splitlines()) if "ERROR" in line), f"{command[2]} exits {done.returncode}")
    ready.write_text(pins.read_text())
    return None


def requests_job(arrays: tuple[Any, Any, Any], longest: int, replicas: int = 1, **more: Any) -> dict[str, Any]:
    """Requests, the engine's shape and the ledger's step costs in milliseconds a layer, for who has none of its own."""
    from breakeven.simulation.costs import costs_of, engine_of

    d = work.deployment(replicas)
    costs, engine, layers = costs_of(d), engine_of(d), 32
    far = costs.contexts[-1]
    return {
        "arrival_s": arrays[0].tolist(),
        "input_tokens": arrays[1].tolist(),
        "output_tokens": arrays[2].tolist(),
        "replicas": replicas,
        "cap": engine.cap,
        "token_budget": engine.token_budget,
        "blocks": engine.blocks,
        "longest": longest,
        "mean_context": int(arrays[1].mean() + arrays[2].mean() / 2),
        "token_ms": costs.alone_token_s / layers * 1e3,
        "read_ms": costs.alone_read_s / layers * 1e3,
        "fixed_ms": costs.alone_fixed_s / layers * 1e3,
        "kv_token_ms": (costs.decode_s[1, -1] - costs.decode_s[1, 0]) / far / layers * 1e3,
        "attention_ms": costs.attention_s[-1] / far / layers * 1e3,
        "native": True,
    } | more


def azure_job(count: int) -> dict[str, Any]:
    arrays = work.azure_like(1_000_000)
    return requests_job(tuple(array[:count] for array in arrays), LONGEST)  # type: ignore[arg-type]


def conversation_job(count: int, replicas: int, *, hashes: bool) -> dict[str, Any]:
    trace = work.conversation(count)
    longest = int((trace.input_tokens + trace.output_tokens).max()) // 256 * 256 + 512
    more: dict[str, Any] = {}
    if hashes:
        ids, offsets = trace.hash_ids.tolist(), trace.hash_offsets.tolist()
        more = {"hash_ids": [ids[a:b] for a, b in pairwise(offsets)], "block_tokens": trace.block_tokens}
    return requests_job((trace.arrival_s, trace.input_tokens, trace.output_tokens), longest, replicas, **more)


def reuse_job() -> dict[str, Any]:
    return {"trace": str(work.CONVERSATION), "block_tokens": 512, "gib": GIB}


def jobs(rival: str) -> Iterator[tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """What a rival can do too, as much of it as it does in seconds: its job, and ours by name."""
    if rival == "kvcache-simulator":
        if work.CONVERSATION.exists():
            yield reuse_job(), {"reuse of the conversations": reuse_job()}
        return
    azure = azure_job({"vidur": 5000, "sched-sim": 5000, "vllm-sr-sim": 100_000}[rival])
    yield azure, {"Azure-like requests": azure}
    if rival == "sched-sim":
        cached = conversation_job(60, 1, hashes=True)
        yield cached, {"conversations, prefix caches": cached}
        return
    job, cached = (conversation_job(12_031, CONVERSATION_REPLICAS, hashes=hashes) for hashes in (False, True))
    yield job, {"conversations": job, "conversations, our prefix cache on": cached}


def figures_of(python: Path, driver: str, folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "job.json").write_text(json.dumps(job))
    ran([str(python), str(HERE / f"rival/{driver}_run.py"), str(folder)], cores=1)
    found: dict[str, Any] = json.loads((folder / "figures.json").read_text())
    return found


def compared(rival: str, job: dict[str, Any], ours: dict[str, dict[str, Any]]) -> Iterator[Row]:
    folder = work_folder() / rival
    theirs = figures_of(ENVIRONMENTS / rival / "bin/python", rival.replace("-", "_"), folder, job)
    for name, our_job in ours.items():
        we_say = figures_of(Path(sys.executable), "breakeven", folder, our_job)
        yield Row(
            rival=rival,
            version=pinned(rival),
            work=name,
            requests=int(we_say["requests"]),
            rival_s=theirs["seconds"],
            our_s=we_say["seconds"],
            ratio=theirs["seconds"] / we_say["seconds"],
            rival_says=theirs,
            we_say=we_say,
        )


def table(rows: list[Row]) -> str:
    head = ("rival", "work", "requests", "theirs, s", "ours, s", "theirs, req/s", "ours, req/s", "ratio")
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        rates = (row.requests / row.rival_s, row.requests / row.our_s)
        cells = (f"{row.rival} {row.version}", row.work, f"{row.requests:,}", f"{row.rival_s:.3f}", f"{row.our_s:.4f}")
        lines.append("| " + " | ".join((*cells, *(f"{rate:,.0f}" for rate in rates), f"{row.ratio:,.0f}")) + " |")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }


def processor() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(RIVALS)}")
    parser.add_argument("--setup", action="store_true", help="make the environments and stop")
    wanted = parser.parse_args()
    about, rows, left_out = machine(), [], {}
    for rival in wanted.names or RIVALS:
        if rival not in RIVALS:
            parser.error(f"no such rival: {rival}")
        reason = set_up(rival)
        if reason is not None:
            left_out[rival] = reason
            print(f"{rival}: left out: {reason}", file=sys.stderr)
        elif not wanted.setup:
            rows += [row for theirs, ours in jobs(rival) for row in compared(rival, theirs, ours)]
    if wanted.setup:
        return
    found = {"about": about, "rows": [asdict(row) for row in rows], "left_out": left_out}
    (work_folder() / "rivals.json").write_text(json.dumps(found, indent=2) + "\n")
    (work_folder() / "rivals.md").write_text(table(rows) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
