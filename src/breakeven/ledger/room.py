"""The memory ledger of one device as numbers: weights, drafts, the pool, and the sequences it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.ledger import draft, memory
from breakeven.ledger.shard import Shard
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class Room:
    """The memory ledger of one device, as numbers."""

    weight_bytes: float
    draft_bytes: float
    reserve_bytes: float
    pool_bytes: float
    kv_bytes_per_token: float
    pool_tokens: float
    sequence_bytes: Array | float
    fits_sequences: Array | float


def room(d: Deployment, s: Shard, held: Array | float) -> Room:
    """The memory ledger of one device; ``held`` are the cached tokens of a running sequence."""
    engine = d.engine
    stages = engine.pipeline_parallel_size
    weights = memory.weight_bytes(d.model, s.kernels, shards=engine.tensor_parallel_size * stages)
    drafts = draft.draft_weight_bytes(d)
    reserve = engine.runtime_reserve_bytes
    pool = memory.kv_pool_bytes(d.hardware.device.memory_bytes, engine.gpu_memory_utilization, weights + drafts, reserve)
    drafted = draft.draft_kv_bytes_per_token(d, s)
    per_token = (memory.kv_bytes_per_token(d.model, s.kv, tensor_parallel=s.tensor_parallel) + drafted) / stages
    blocks = float(np.floor(pool / (per_token * engine.block_size)))
    lookahead = engine.speculative.rows if engine.speculative is not None else 0
    tokens = held + lookahead + (engine.block_size - 1) / 2
    sequence = (memory.kv_bytes(d.model, s.kv, tokens, tensor_parallel=s.tensor_parallel) + drafted * tokens) / stages
    return Room(
        weight_bytes=weights,
        draft_bytes=drafts,
        reserve_bytes=reserve,
        pool_bytes=pool,
        kv_bytes_per_token=per_token,
        pool_tokens=blocks * engine.block_size,
        sequence_bytes=sequence,
        fits_sequences=memory.sequences_that_fit(blocks * engine.block_size * per_token, sequence),
    )
