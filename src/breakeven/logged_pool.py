"""The pool as an engine tells it: the cache that a start-up log reports."""

from __future__ import annotations

from dataclasses import replace

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


def with_measured_pool(d: Deployment, log: StartupLog | None) -> tuple[Deployment, tuple[Message, ...]]:
    """The deployment with its reserve such that the pool is the log's at the settings in force: levers still move it.

    reserve = capacity·utilisation − weights − tokens·κ, over the share where the share is of what is free. Where that is below 0 the
    ledger cannot hold what the log says, and that is told.
    """
    if log is None or log.kv_tokens is None:
        return d, ()
    bare = _with_reserve(d, 0.0, unlimited=True)
    s = shard(bare, Draws(0, 0))
    empty = room(bare, s, 0.0)
    if not empty.kv_bytes_per_token:
        return d, ()
    wanted = _pool_bytes(bare, s, empty, log)
    device = d.hardware.device
    if wanted > device.capacity_bytes:
        raise InputError("log_pool_impossible", log=wanted, capacity=device.capacity_bytes, device=device.title)
    if _told(d, log) and room(d, s, 0.0).pool_tokens >= log.kv_tokens:
        return d, ()
    # Half a token is left so that rounding down to whole blocks keeps the last one.
    share = bare.engine.gpu_memory_utilization if bare.engine.fills == "free" else 1.0
    reserve = (empty.pool_bytes - wanted - empty.kv_bytes_per_token / 2) / share
    found = _with_reserve(d, max(0.0, reserve))
    provenance = dict(sorted({**d.provenance, "engine.runtime_reserve_bytes": "measured"}.items()))
    warnings = () if reserve >= 0.0 else (_too_large(wanted, empty),)
    return replace(found, provenance=provenance), warnings


def _with_reserve(d: Deployment, reserve_bytes: float, *, unlimited: bool = False) -> Deployment:
    cap = None if unlimited else d.engine.kv_cache_tokens
    return replace(d, engine=replace(d.engine, runtime_reserve_bytes=reserve_bytes, kv_cache_tokens=cap))


def _told(d: Deployment, log: StartupLog) -> bool:
    """Whether the pool is as large as the engine was told to make it, rather than as memory allows."""
    told = d.engine.kv_cache_tokens
    return told is not None and log.kv_tokens is not None and abs(told - log.kv_tokens) <= d.engine.block_size


def _pool_bytes(d: Deployment, s: Shard, empty: Room, log: StartupLog) -> float:
    """Bytes of the pool on one device: the log's tokens in its own pages, or its bytes where a mixture of layers counts otherwise."""
    counted = log.kv_tokens or 0
    stages = d.engine.pipeline_parallel_size
    mixed = len(d.model.attention) + len(d.model.states) > 1
    if not mixed:
        return counted * empty.kv_bytes_per_token
    own = unified_bytes_per_token(d.model, s.kv, tensor_parallel=s.tensor_parallel) / (stages * s.layout.cache_shards)
    pages = counted * max(own, empty.kv_bytes_per_token) if log.pages_unified else counted * empty.kv_bytes_per_token
    if log.kv_bytes is not None and abs(pages / log.kv_bytes - 1.0) > AGREE:
        return log.kv_bytes
    return pages


def _too_large(wanted: float, empty: Room) -> Message:
    return Message(
        "warning.log_pool_larger",
        {"log": wanted, "ledger": empty.pool_bytes, "more": wanted - empty.pool_bytes},
    )
