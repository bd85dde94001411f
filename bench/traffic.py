"""Speed and memory on traces: simulation, reuse, replay, reading. Each figure in a process of its own, held to one core; see README.md.

Loops are compiled before: a small run goes first, in another process, and fills the cache of compiled code. This process loads no numpy: a
child inherits the resident size of what starts it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from figure import DEVICE, MODEL, Figure, at_least, at_most, breakeven, cpu_s, processor_seconds_of, ran, told, work_folder

SIMULATE = ("simulate", "--model", MODEL, "--hardware", DEVICE, "--json")
ALL_LEVERS = ("--levers", "all", "--prefix-hit-rate", "0.3", "--max-num-seqs", "16")
"""A hit rate, since Azure's rows hold no prompts, and a cap that binds: with both all five levers can be turned, in 32 combinations."""
FEW = 200
ROUTER = "round_robin"
CONVERSATION_REPLICAS = 4
"""Replicas that the conversations load to about two thirds."""


def simulate_million(count: int) -> dict[str, float]:
    """So many requests like Azure's through the simulation, arrays to arrays: costs and outcome are in the time, drawing is not."""
    import work
    from breakeven.simulation.arrays import Load, Requests

    arrival_s, prompts, outputs = work.azure_like(count)
    return simulated(Requests(arrival_s=arrival_s, input_tokens=prompts, output_tokens=outputs), Load(), work.deployment())


def simulate_conversation(count: int) -> dict[str, float]:
    """The conversations with their prefix cache: chaining is in the time, reading is not."""
    import work

    return trace_simulated(work.conversation(None if count > FEW else count), CONVERSATION_REPLICAS)


def trace_simulated(trace: Any, replicas: int) -> dict[str, float]:
    """A trace through the simulation, with the prefix cache where it knows its blocks."""
    import work
    from breakeven.simulation.arrays import Load

    d = work.deployment(replicas)
    began = cpu_s()
    found = simulated(requests_of(trace, d.engine.block_size), Load(replicas=replicas, router=ROUTER), d)
    return {**found, "seconds": cpu_s() - began, "simulation_s": found["seconds"]}


def requests_of(trace: Any, block_tokens: int) -> Any:
    import numpy as np

    from breakeven import reuse
    from breakeven.simulation.arrays import Requests
    from breakeven.trace import arrivals, outputs

    requests = Requests(arrival_s=arrivals(trace), input_tokens=trace.input_tokens, output_tokens=outputs(trace))
    if trace.hash_ids is None:
        return requests
    chains = reuse.chains(trace, block_tokens)
    ids = np.asarray(chains.ids, dtype=np.int64)
    return replace(requests, chain_ids=ids, chain_offsets=chains.offsets, chain_tokens=chains.block_tokens)


def simulated(requests: Any, load: Any, d: Any) -> dict[str, float]:
    from breakeven.simulation.arrays import DONE
    from breakeven.simulation.costs import costs_of, engine_of
    from breakeven.simulation.kernel import simulate

    began = cpu_s()
    outcome = simulate(requests, engine_of(d), costs_of(d), load)
    return {
        "seconds": cpu_s() - began,
        "requests": float(len(outcome.state)),
        "done": float((outcome.state == DONE).sum()),
        "steps": float(outcome.steps),
        "end_s": outcome.end_s,
        "hit_share": outcome.hits / max(outcome.lookups, 1),
    }


def reuse_conversation(count: int) -> dict[str, float]:
    """Chaining and the hit rate at every capacity, of the conversations' blocks of 512."""
    import work
    from breakeven import reuse

    trace = work.conversation(None if count > FEW else count)
    curves: list[Any] = []

    def curve() -> None:
        curves.append(reuse.curve(reuse.chains(trace, 512)))

    seconds = min(processor_seconds_of(curve) for _ in range(3))
    return {"seconds": seconds, "blocks": curves[0].blocks, "capacities": len(curves[0].hits), "unbounded": curves[0].unbounded}


def reuse_blocks(count: int) -> dict[str, float]:
    """The hit rate at every capacity of so many made-up chained blocks; making them is not in the time."""
    import numpy as np

    import work
    from breakeven import reuse
    from breakeven.reuse.identity import Chains

    offsets, ids, unique = work.chains_made(count)
    lookups = np.diff(offsets)
    prompts = lookups * 16 + 1
    chained = Chains(
        ids=ids.astype(np.int32),
        offsets=offsets,
        lookups=lookups,
        unique=unique,
        input_tokens=prompts,
        block_tokens=16,
        engine_block_tokens=16,
        blocks=len(ids),
    )
    del ids
    return {"seconds": processor_seconds_of(lambda: reuse.curve(chained)), "blocks": len(chained.ids), "capacities": unique}


def read_rows(count: int) -> dict[str, float]:
    """Reading so many rows of Azure's columns."""
    import work
    from breakeven import traces

    path = work.azure_file(count)
    read: list[Any] = []
    return {"seconds": processor_seconds_of(lambda: read.append(traces.read(path))), "requests": read[0].requests}


def replay_tokens(count: int) -> dict[str, float]:
    """Prompt lookup replayed on so many made-up logged tokens, for every k from 1 to 8."""
    import work
    from breakeven.replay.ngram import Ngram
    from breakeven.replay.run import replay

    trace, drafter = work.logged_tokens(count), Ngram(prompt_lookup_min=2, prompt_lookup_max=5)
    return {"seconds": processor_seconds_of(lambda: replay(trace, drafter)), "tokens": len(trace.output_ids)}


def make_file(rows: int) -> dict[str, Any]:
    import work

    return {"path": str(work.azure_file(rows))}


RUNS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "million": (simulate_million, 1_000_000),
    "conversation": (simulate_conversation, 12_031),
    "reuse": (reuse_conversation, 12_031),
    "blocks": (reuse_blocks, 50_000_000),
    "rows": (read_rows, 1_000_000),
    "ngram": (replay_tokens, 1_000_000),
    "file": (make_file, 1_000_000),
}


def child(name: str, rounds: int = 1) -> tuple[dict[str, float], float]:
    """The quickest of some processes and the largest resident bytes of any, after one of a small size that is not counted."""
    command = [sys.executable, str(Path(__file__)), name]
    ran([*command, str(FEW)], cores=1)
    runs = [ran([*command, str(RUNS[name][1])], cores=1) for _ in range(rounds)]
    figures = [json.loads(run.out) for run in runs]
    return min(figures, key=lambda found: found["seconds"]), max(run.resident_bytes for run in runs)


def measure_million() -> list[Figure]:
    found, resident = child("million", rounds=3)
    return [at_most("million", found["seconds"], "s", 5.0), at_most("million-memory", resident / 1e6, "MB", 1000.0)]


def measure_million_verb() -> list[Figure]:
    """The verb on the same requests in a file: with start, reading, percentiles and the report."""
    path = rows_file(RUNS["million"][1])
    breakeven(*SIMULATE, "--trace", rows_file(FEW), cores=1)
    run = breakeven(*SIMULATE, "--trace", path, cores=1)
    return [told("million-verb", run.processor_s, "s"), told("million-verb-memory", run.resident_bytes / 1e6, "MB")]


def rows_file(rows: int) -> str:
    """A file of so many rows in Azure's columns, made by another process."""
    return str(json.loads(ran([sys.executable, str(Path(__file__)), "file", str(rows)]).out)["path"])


def measure_conversation() -> list[Figure]:
    found, _ = child("conversation", rounds=3)
    return [at_most("conversation", found["seconds"], "s", 1.0)]


def measure_reuse() -> list[Figure]:
    return [at_most("reuse", child("reuse")[0]["seconds"], "s", 1.0)]


def measure_blocks() -> list[Figure]:
    found, resident = child("blocks")
    return [at_most("blocks", found["seconds"] * 5e7 / found["blocks"], "s", 60.0), told("blocks-memory", resident / 1e6, "MB")]


def measure_lattice() -> list[Figure]:
    """Every combination of all five levers on the same 20,000 requests, on two cores, by the verb."""
    few, path = rows_file(FEW), rows_file(20_000)
    breakeven(*SIMULATE, *ALL_LEVERS, "--trace", few, cores=2)
    run = breakeven(*SIMULATE, *ALL_LEVERS, "--trace", path, cores=2)
    combinations = len(json.loads(run.out)["lattice"]["combinations"])
    return [at_most("lattice", run.wall_s, "s", 10.0), at_least("lattice-size", combinations, "combinations", 32)]


def measure_rows() -> list[Figure]:
    found, resident = child("rows", rounds=3)
    return [at_least("rows", found["requests"] / found["seconds"], "rows/s", 5e5), told("rows-memory", resident / 1e6, "MB")]


def measure_ngram() -> list[Figure]:
    found, _ = child("ngram", rounds=3)
    return [at_least("ngram", found["tokens"] / found["seconds"], "tokens/s", 1e6)]


def measure_compile() -> list[Figure]:
    """What the first simulation on a machine takes once: its loops compiled, into an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        run = ran(["env", f"NUMBA_CACHE_DIR={folder}", sys.executable, str(Path(__file__)), "million", str(FEW)], cores=1)
    return [told("compile", run.processor_s, "s")]


BENCHES: dict[str, Callable[[], list[Figure]]] = {
    "million": measure_million,
    "million-verb": measure_million_verb,
    "conversation": measure_conversation,
    "reuse": measure_reuse,
    "lattice": measure_lattice,
    "rows": measure_rows,
    "ngram": measure_ngram,
}
LONG: dict[str, Callable[[], list[Figure]]] = {"blocks": measure_blocks, "compile": measure_compile}
"""What takes memory or time that a check has not: only in a run of everything, or by name."""


def main() -> None:
    """``traffic.py NAME SIZE``: one run in this process, its figures as JSON."""
    name, size = sys.argv[1], int(sys.argv[2])
    work_folder()
    print(json.dumps(RUNS[name][0](size)))


if __name__ == "__main__":
    main()
