"""Memory ledger: weights by tensor class, KV bytes per token, the pool and what fits in it. Per device.

Symbols: κ = KV bytes a token adds on one device; pool = capacity·utilisation − weights − reserve.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from breakeven.kernels import KvKernel, WeightKernel
from breakeven.pages import entry_bytes, index_bytes, state_page_bytes
from breakeven.spec.engine import Engine
from breakeven.spec.model import TENSOR_CLASSES, Attention, Model
from breakeven.stats import Array


def counts_by_class(model: Model) -> dict[str, int]:
    """Parameters by tensor class, as stored (a tied head is stored once, as the embedding)."""
    p = model.parameters
    return {name: getattr(p, name) for name in TENSOR_CLASSES}


def weight_bytes(model: Model, kernels: Mapping[str, WeightKernel], *, shards: int = 1, expert_shards: int | None = None) -> float:
    """Bytes of weights one device holds: (Σ classes parameters·bytes + towers) / shards (TP·PP; of routed experts TP·PCP·DP·PP).

    70 B parameters in 16 bit are 140 GB:

    >>> from breakeven.kernels import weight_kernel
    >>> from breakeven.spec.model import Parameters
    >>> p = Parameters(embedding=0, head=0, attention=0, mlp=70 * 10**9, experts=0, other=0)
    >>> m = Model(name="m", family="f", layers=1, hidden=1, vocabulary=1, attention=(), parameters=p)
    >>> weight_bytes(m, dict.fromkeys(counts_by_class(m), weight_kernel("bf16"))) / 1e9
    140.0
    """
    held = {name: count * kernels[name].bytes for name, count in counts_by_class(model).items()}
    total = sum(held.values()) + model.beside_bytes
    if expert_shards is None or expert_shards == shards:
        return total / shards
    return (total - held["experts"]) / shards + held["experts"] / expert_shards


def kv_bytes_per_layer(group: Attention, tensor_parallel: int, kv_bytes: float) -> float:
    """Cache bytes that a token adds in one layer, the indexer's key included; a layer that shares a cache adds none.

    A compressed layer adds one entry in ``compression`` tokens, its window being of constant size.
    """
    if group.shares_kv:
        return 0.0
    entry = entry_bytes(group, tensor_parallel, kv_bytes) + index_bytes(group, kv_bytes)
    if group.kind != "compressed":
        return entry
    return entry / group.compression if group.compression else 0.0


def kv_bytes_per_token(model: Model, kv: KvKernel, *, tensor_parallel: int = 1) -> float:
    """κ, the cache bytes a token adds over all layers, windows counted in full.

    A 70B model with 80 layers, 8 KV heads of 128 keeps 327,680 bytes a token in 16 bit: 10.7 GB at 32,768 tokens.

    >>> from breakeven.kernels import kv_kernel
    >>> from breakeven.spec.model import Parameters
    >>> group = Attention(kind="full", layers=80, q_heads=64, kv_heads=8, k_dim=128, v_dim=128)
    >>> p = Parameters(embedding=0, head=0, attention=0, mlp=0, experts=0, other=0)
    >>> m = Model(name="m", family="f", layers=80, hidden=8192, vocabulary=1, attention=(group,), parameters=p)
    >>> round(kv_bytes_per_token(m, kv_kernel("bf16")) * 32768 / 1e9, 1), round(kv_bytes_per_token(m, kv_kernel("fp8")) * 32768 / 1e9, 1)
    (10.7, 5.4)
    """
    return sum(g.layers * kv_bytes_per_layer(g, tensor_parallel, kv.bytes) for g in model.attention)


def tokens_seen(group: Attention, context_tokens: Array | float) -> Array | float:
    """Cached tokens a layer keeps: min(context, window)."""
    return context_tokens if group.window is None else np.minimum(context_tokens, group.window)


def entries(group: Attention, context_tokens: Array | float) -> Array | float:
    """Entries a layer keeps for a context of so many tokens: its tokens; compressed, the window and one in ``compression`` tokens.

    >>> group = Attention(kind="compressed", layers=1, q_heads=64, kv_heads=1, k_dim=512, v_dim=0, window=128, compression=4)
    >>> float(entries(group, 32768))
    8320.0
    """
    kept = tokens_seen(group, context_tokens)
    return kept + context_tokens / group.compression if group.compression else kept


def entries_attended(group: Attention, context_tokens: Array | float) -> Array | float:
    """Entries a query attends to and reads: all that the layer keeps, but no more than the indexer selects beside the window."""
    if group.selected is None:
        return entries(group, context_tokens)
    if group.kind == "compressed":
        return tokens_seen(group, context_tokens) + np.minimum(context_tokens / (group.compression or 1), group.selected)
    return np.minimum(context_tokens, group.selected)


def entries_indexed(group: Attention, context_tokens: Array | float) -> Array | float:
    """Keys of the indexer, each looked at in every step: one an entry that grows with the context."""
    return context_tokens / (group.compression or 1) if group.index_dim else 0.0 * context_tokens


def kv_bytes(model: Model, kv: KvKernel, context_tokens: Array | float, *, tensor_parallel: int = 1) -> Array | float:
    """K(c): cache bytes one sequence of c tokens keeps, window layers holding only their window."""
    return sum((_kept(g, context_tokens, tensor_parallel, kv.bytes) for g in model.attention if not g.shares_kv), 0.0 * context_tokens)


def kv_read_bytes(model: Model, kv: KvKernel, context_tokens: Array | float, *, tensor_parallel: int = 1) -> Array | float:
    """Cache bytes a step reads for one sequence of c tokens: shared caches once a layer that reads them, sparse ones as selected."""
    return sum((_read(g, context_tokens, tensor_parallel, kv.bytes) for g in model.attention), 0.0 * context_tokens)


def _kept(g: Attention, context_tokens: Array | float, tensor_parallel: int, kv_bytes: float) -> Array | float:
    own = entry_bytes(g, tensor_parallel, kv_bytes) * entries(g, context_tokens)
    return g.layers * (own + index_bytes(g, kv_bytes) * entries_indexed(g, context_tokens))


def _read(g: Attention, context_tokens: Array | float, tensor_parallel: int, kv_bytes: float) -> Array | float:
    own = entry_bytes(g, tensor_parallel, kv_bytes) * entries_attended(g, context_tokens)
    return g.layers * (own + index_bytes(g, kv_bytes) * entries_indexed(g, context_tokens))


def state_bytes(model: Model, element_bytes: float, *, tensor_parallel: int = 1, drafted: int = 0) -> float:
    """Bytes of constant state one sequence keeps on one device: Σ layers·a page of state, whose window is longer by what is drafted.

    Qwen3.5-27B keeps 37.7 M recurrent and 1.5 M convolution elements: 154 MB with states in 32 bits, 78 MB in 16.

    >>> from breakeven.spec.model import Parameters, States
    >>> p = Parameters(embedding=0, head=0, attention=0, mlp=0, experts=0, other=0)
    >>> s = States(kind="linear", mixer="gated_deltanet", layers=48, state_elements=786432, conv_elements=30720, heads=48)
    >>> m = Model(name="m", family="f", layers=64, hidden=1, vocabulary=1, attention=(), parameters=p, states=(s,))
    >>> state_bytes(m, 4.0), state_bytes(m, 2.0), state_bytes(m, 4.0, tensor_parallel=4)
    (153944064.0, 78446592.0, 38486016.0)
    """
    pages = (s.layers * state_page_bytes(s, element_bytes, shards=tensor_parallel, drafted=drafted) for s in model.states)
    return float(sum(pages))


def kv_pool_bytes(capacity_bytes: float, utilisation: float, weights: float, reserve_bytes: float, *, of_free: bool = False) -> float:
    """Bytes left for the cache: capacity·utilisation − weights − reserve; of what is free, (capacity − weights − reserve)·utilisation.

    Never below 0 (then nothing fits). An 80 GB card with 16 GB of weights and 3 GB kept, nine tenths of the whole and of the rest:

    >>> round(kv_pool_bytes(85.5e9, 0.9, 16e9, 3e9) / 1e9, 2), round(kv_pool_bytes(85.5e9, 0.9, 16e9, 3e9, of_free=True) / 1e9, 2)
    (57.95, 59.85)
    """
    if of_free:
        return max(0.0, (capacity_bytes - weights - reserve_bytes) * utilisation)
    return max(0.0, capacity_bytes * utilisation - weights - reserve_bytes)


def usable_bytes(capacity_bytes: float, engine: Engine) -> float:
    """What weights, reserve and cache may take together: the engine's share of the device; all of it where the share is of what is free."""
    return capacity_bytes if engine.fills == "free" else capacity_bytes * engine.gpu_memory_utilization


def kv_share_of_memory(in_use_bytes: Array | float, capacity_bytes: float) -> Array | float:
    """KV in use over the device's capacity: the share of memory, not of traffic, and not the use of the pool.

    >>> kv_share_of_memory(8e9, 80e9)
    0.1
    """
    return in_use_bytes / capacity_bytes


def sequences_that_fit(pool_bytes: Array | float, bytes_per_sequence: Array | float) -> Array | float:
    """Sequences the pool holds: pool / K(tokens), tokens = I + O where the engine reserves, I + O/2 where it grows."""
    return pool_bytes / np.maximum(bytes_per_sequence, 1.0)
