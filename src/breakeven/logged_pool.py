"""The pool as an engine tells it: the cache that a start-up log or a running engine reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.ledger.room import Room, room
from breakeven.ledger.shard import Shard, shard
from breakeven.ledger.unified_pages import unified_bytes_per_token
from breakeven.messages import Message
from breakeven.origin.startup_log import StartupLog
from breakeven.spec.deployment import Deployment

AGREE = 0.05
"""Within this the tokens and the bytes of one log tell the same pool."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A cache that was told."""

    tokens: int
    """What the cache of one replica holds."""
    bytes: float | None = None
    """What the cache of one device takes."""
    pages_unified: bool = False
    """Whether the tokens are counted in pages that all groups of layers share the size of (vLLM)."""
    local: bool = False
    """Whether the tokens are those of one device, which context parallelism multiplies."""
    impossible: str = "log_pool_impossible"
    larger: str = "warning.log_pool_larger"
    """What is said of one that no device has room for, and of one that this model leaves no room for."""


def pool_of(log: StartupLog | None) -> Pool | None:
    """The cache that a start-up log reports; None where it reports none."""
    if log is None or log.kv_tokens is None:
        return None
    return Pool(tokens=log.kv_tokens, bytes=log.kv_bytes, pages_unified=log.pages_unified)


def with_measured_pool(d: Deployment, pool: Pool | None) -> tuple[Deployment, tuple[Message, ...]]:
    """The deployment with its reserve such that the pool is the one told at the settings in force: levers still move it.

    reserve = capacity·utilisation − weights − tokens·κ, over the share where the share is of what is free. Where that is below 0 the
    ledger cannot hold what is told, and that is said.
    """
    if pool is None:
        return d, ()
    pool, told = _of_the_replica(d, pool)
    bare = _with_reserve(d, 0.0, unlimited=True)
    s = shard(bare, Draws(0, 0))
    empty = room(bare, s, 0.0)
    if not empty.kv_bytes_per_token:
        return d, told
    wanted = _pool_bytes(bare, s, empty, pool)
    device = d.hardware.device
    if wanted > device.capacity_bytes:
        raise InputError(pool.impossible, log=wanted, capacity=device.capacity_bytes, device=device.title)
    if _told(d, pool) and room(d, s, 0.0).pool_tokens >= pool.tokens:
        return d, told
    # Half a token is left so that rounding down to whole blocks keeps the last one.
    share = bare.engine.gpu_memory_utilization if bare.engine.fills == "free" else 1.0
    reserve = (empty.pool_bytes - wanted - empty.kv_bytes_per_token / 2) / share
    found = _with_reserve(d, max(0.0, reserve))
    provenance = dict(sorted({**d.provenance, "engine.runtime_reserve_bytes": "measured"}.items()))
    warnings = () if reserve >= 0.0 else (_too_large(wanted, empty, pool),)
    return replace(found, provenance=provenance), (*told, *warnings)


def _of_the_replica(d: Deployment, pool: Pool) -> tuple[Pool, tuple[Message, ...]]:
    """Tokens of the whole replica: vLLM's label counts the blocks of one device of a context-parallel group (pull request 40895)."""
    sizes = d.engine.decode_context_parallel_size * d.engine.prefill_context_parallel_size
    if not pool.local or sizes == 1:
        return pool, ()
    tokens = pool.tokens * sizes
    return replace(pool, tokens=tokens), (Message("warning.pool_local", {"told": pool.tokens, "sizes": sizes, "tokens": tokens}),)


def _with_reserve(d: Deployment, reserve_bytes: float, *, unlimited: bool = False) -> Deployment:
    cap = None if unlimited else d.engine.kv_cache_tokens
    return replace(d, engine=replace(d.engine, runtime_reserve_bytes=reserve_bytes, kv_cache_tokens=cap))


def _told(d: Deployment, pool: Pool) -> bool:
    """Whether the pool is as large as the engine was told to make it, rather than as memory allows."""
    told = d.engine.kv_cache_tokens
    return told is not None and abs(told - pool.tokens) <= d.engine.block_size


def _pool_bytes(d: Deployment, s: Shard, empty: Room, pool: Pool) -> float:
    """Bytes of the pool on one device: the log's tokens in its own pages, or its bytes where a mixture of layers counts otherwise."""
    counted = pool.tokens
    stages = d.engine.pipeline_parallel_size
    mixed = len(d.model.attention) + len(d.model.states) > 1
    if not mixed:
        return counted * empty.kv_bytes_per_token
    own = unified_bytes_per_token(d.model, s.kv, tensor_parallel=s.tensor_parallel) / (stages * s.layout.cache_shards)
    pages = counted * max(own, empty.kv_bytes_per_token) if pool.pages_unified else counted * empty.kv_bytes_per_token
    if pool.bytes is not None and abs(pages / pool.bytes - 1.0) > AGREE:
        return pool.bytes
    return pages


def _too_large(wanted: float, empty: Room, pool: Pool) -> Message:
    return Message(
        pool.larger,
        {"log": wanted, "ledger": empty.pool_bytes, "more": wanted - empty.pool_bytes},
    )
