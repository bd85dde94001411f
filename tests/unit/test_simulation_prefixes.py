"""Whose prefix cache a request finds: that of its own rank, and of the identities in its trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from breakeven import api, traces
from breakeven.simulation.arrays import Requests
from breakeven.simulation.prefixes import of_ranks, shared_beginning

CHAT = {"model": "deepseek-v3", "hardware": "h200:8", "input": 2048, "output": 8, "rate": 4, "prefix_hit_rate": 0.5}
SPLIT = {"tensor_parallel_size": 1, "data_parallel_size": 8, "enable_expert_parallel": True}
ROW = '{"timestamp": %d, "input_length": 1024, "output_length": 4, "hash_ids": [1, 2]}\n'


def requests(count: int) -> Requests:
    every = np.full(count, 64, dtype=np.int64)
    return shared_beginning(Requests(arrival_s=np.arange(count) * 1.0, input_tokens=every, output_tokens=every), 0.5, 16)


def test_ranks_share_no_id_and_requests_of_one_rank_share_theirs() -> None:
    found = of_ranks(requests(12), ranks=3, replicas=2)
    assert found.chain_ids is not None
    rows = [frozenset(row.tolist()) for row in found.chain_ids.reshape(12, -1)]
    # Requests 0 and 1 go to the first rank of replicas 0 and 1, 2 and 3 to the second, and so on.
    assert rows[0] == rows[1] == rows[6] == rows[7] and len(set(rows)) == 3
    assert not rows[0] & rows[2] and not rows[0] & rows[4] and found.chain_ids.max() == 5
    assert of_ranks(requests(12), ranks=1, replicas=2).chain_ids is not None


def test_each_rank_computes_the_shared_beginning_once() -> None:
    def computed(**engine: Any) -> float:
        one = api.simulate(api.load(flags={**CHAT, **engine})[0], requests=400).summary
        return one.lookup_tokens / 2 - one.hit_tokens

    assert computed(tensor_parallel_size=8) == 1024
    assert computed(**SPLIT) == 8 * 1024


def test_a_hit_rate_that_gives_way_to_identities_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(ROW % (1000 * i) for i in range(5)))
    trace = traces.read(path)
    flags = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "trace": trace}

    def said(**more: Any) -> list[str]:
        return [note.key for note in api.simulate(api.load(flags={**flags, **more})[0], trace).notes]

    assert "simulate.note_prefixes_unused" in said(prefix_hit_rate=0.9)
    assert "simulate.note_prefixes_unused" not in said()
