"""The memory ledger of one device as numbers: weights, drafts, the pool, and the sequences it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.ledger import draft, memory
from breakeven.ledger.shard import Shard
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
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
    """Tokens of the sequences of one rank, over all the devices that their cache is dealt to."""
    state_bytes: float
    """Constant state of one sequence (linear and state-space layers)."""
    sequence_bytes: Array | float
    fits_sequences: Array | float
    """On all ranks of a replica."""


def room(d: Deployment, s: Shard, held: Array | float) -> Room:
    """The memory ledger of one device; ``held`` are the cached tokens of a running sequence."""
    engine = d.engine
    stages = engine.pipeline_parallel_size
    split, block = s.layout, engine.block_size * s.layout.cache_shards
    weights = memory.weight_bytes(
        d.model, s.kernels, shards=engine.tensor_parallel_size * stages, expert_shards=split.expert_shards * stages
    )
    drafts = draft.draft_weight_bytes(d)
    reserve = engine.runtime_reserve_bytes
    capacity, share = d.hardware.device.capacity_bytes, engine.gpu_memory_utilization
    pool = memory.kv_pool_bytes(capacity, share, weights + drafts, reserve, of_free=engine.fills == "free")
    drafted = draft.draft_kv_bytes_per_token(d, s)
    dealt = stages * split.cache_shards
    per_token = (memory.kv_bytes_per_token(d.model, s.kv, tensor_parallel=s.tensor_parallel) + drafted) / dealt
    pool_tokens = _pool_tokens(pool, per_token, engine, block)
    lookahead = engine.speculative.rows if engine.speculative is not None else 0
    tokens = held + lookahead + (block - 1) / 2
    state = s.state_bytes / stages
    sequence = (memory.kv_bytes(d.model, s.kv, tokens, tensor_parallel=s.tensor_parallel) + drafted * tokens) / dealt + state
    return Room(
        weight_bytes=weights,
        draft_bytes=drafts,
        reserve_bytes=reserve,
        pool_bytes=pool,
        kv_bytes_per_token=per_token,
        pool_tokens=pool_tokens,
        state_bytes=state,
        sequence_bytes=sequence,
        fits_sequences=split.ranks * memory.sequences_that_fit(pool_tokens * per_token if per_token else pool, sequence),
    )


def _pool_tokens(pool_bytes: float, per_token: float, engine: Engine, block: int) -> float:
    """Tokens of the pool: the bytes left over in whole blocks, and no more than the engine was told; 0 where tokens take none."""
    fits = float(np.floor(pool_bytes / (per_token * block))) * block if per_token else 0.0
    return fits if engine.kv_cache_tokens is None else min(fits, float(engine.kv_cache_tokens))


def prompt_room_tokens(space: Room, batch: Array | float, running_prompt_tokens: Array | float) -> Array:
    """Tokens of a rank's pool for prompts, those of its running sequences included: pool − b·(sequence bytes/κ − prompt).

    A prefix cache finds the prompts that run as well as those that have ended, once for all that share them; what a sequence holds
    beside its prompt is lost to it. A model whose tokens take no room has no prefixes to keep.
    """
    pool = space.pool_tokens if space.kv_bytes_per_token else 0.0
    each = np.maximum(space.sequence_bytes / (space.kv_bytes_per_token or np.inf) - running_prompt_tokens, 0.0)
    return np.asarray(np.maximum(pool - batch * each, 0.0))
