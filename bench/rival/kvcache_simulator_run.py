"""kvcache-simulator over a trace of block hashes: LRU hit rates at its capacities by its compiled core, built before."""

from __future__ import annotations

from pathlib import Path

from job import Job, clock, drive
from kvcache_sim.cpp_backend import ensure_cpp_simulator
from kvcache_sim.simulator import run_sweep
from kvcache_sim.trace import parse_trace_file


def run(job: Job, _: Path) -> dict[str, object]:
    ensure_cpp_simulator()
    began = clock()
    trace = parse_trace_file(job["trace"], block_size=job["block_tokens"])
    read = clock()
    result = run_sweep(trace, model_id="llama-3.1-8b", policies=["lru"], budgets_gib=job["gib"])
    ended = clock()
    rates = {str(point["cacheBlocks"]): point["results"]["lru"]["hitRate"] for point in result["points"]}
    return {
        "read_s": read - began,
        "seconds": ended - read,
        "requests": trace.request_count,
        "blocks": len(trace.ids),
        "capacities": len(result["points"]),
        "hit_rates": rates,
        "ceiling": result["hitRateCeiling"],
    }


if __name__ == "__main__":
    drive(run)
