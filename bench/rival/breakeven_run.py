"""Breakeven on the job that a rival was given: the best of three, after one that loads the compiled loops and is not counted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from job import Job, drive

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def trace_of(job: Job) -> Any:
    import numpy as np

    from breakeven.trace import Trace, make_trace

    hashes = job.get("hash_ids")
    counts = [0, *map(len, hashes)] if hashes else []
    return make_trace(
        Trace(
            name="job",
            form="mooncake",
            arrival_s=np.array(job["arrival_s"]),
            input_tokens=np.array(job["input_tokens"]),
            output_tokens=np.array(job["output_tokens"]),
            hash_ids=np.array([block for each in hashes for block in each], dtype=np.int64) if hashes else None,
            hash_offsets=np.cumsum(counts) if hashes else None,
            block_tokens=job["block_tokens"] if hashes else None,
        )
    )


def run(job: Job, _: Path) -> dict[str, object]:
    import traffic

    if "trace" in job:
        return reuse(job)
    trace = trace_of(job)
    traffic.trace_simulated(trace, job["replicas"])
    return dict(min((traffic.trace_simulated(trace, job["replicas"]) for _ in range(3)), key=lambda found: found["seconds"]))


def reuse(job: Job) -> dict[str, object]:
    from breakeven import reuse, traces
    from figure import processor_seconds_of

    found: dict[str, Any] = {}

    def curve() -> None:
        found["curve"] = reuse.curve(reuse.chains(found["trace"], job["block_tokens"]))

    def read() -> None:
        found["trace"] = traces.read(Path(job["trace"]))

    read()
    curve()
    read_s = min(processor_seconds_of(read) for _ in range(3))
    seconds = min(processor_seconds_of(curve) for _ in range(5))
    curved = found["curve"]
    return {"read_s": read_s, "seconds": seconds, "requests": curved.requests, "capacities": len(curved.hits), "ceiling": curved.unbounded}


if __name__ == "__main__":
    drive(run)
