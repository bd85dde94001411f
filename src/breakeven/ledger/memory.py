"""Memory ledger: weights by tensor class, KV bytes per token, the pool and what fits in it. Per device.

Symbols: κ = KV bytes a token adds on one device; pool = capacity·utilisation − weights − reserve.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from breakeven.kernels import KvKernel, WeightKernel
from breakeven.spec.model import Attention, Model
from breakeven.stats import Array


def counts_by_class(model: Model) -> dict[str, int]:
    """Parameters by tensor class, as stored (a tied head is stored once, as the embedding)."""
    p = model.parameters
    return {"embedding": p.embedding, "head": p.head, "attention": p.attention, "mlp": p.mlp, "experts": p.experts, "other": p.other}


def weight_bytes(model: Model, kernels: Mapping[str, WeightKernel], *, shards: int = 1) -> float:
    """Bytes of weights one device holds: Σ classes parameters·bytes / shards (shards = TP·PP).

    70 B parameters in 16 bit are 140 GB:

    >>> from breakeven.kernels import weight_kernel
    >>> from breakeven.spec.model import Parameters
    >>> p = Parameters(embedding=0, head=0, attention=0, mlp=70 * 10**9, experts=0, other=0)
    >>> m = Model(name="m", family="f", layers=1, hidden=1, vocabulary=1, attention=(), parameters=p)
    >>> weight_bytes(m, dict.fromkeys(counts_by_class(m), weight_kernel("bf16"))) / 1e9
    140.0
    """
    return sum(count * kernels[name].bytes for name, count in counts_by_class(model).items()) / shards


def kv_heads_per_device(group: Attention, tensor_parallel: int) -> float:
    """KV heads one device holds: max(1, heads/TP); a latent cache (MLA) is replicated.

    >>> kv_heads_per_device(Attention(kind="full", layers=1, q_heads=64, kv_heads=8, k_dim=128, v_dim=128), 16)
    1.0
    """
    return 1.0 if group.kind == "mla" else max(1.0, group.kv_heads / tensor_parallel)


def kv_bytes_per_layer(group: Attention, tensor_parallel: int, kv_bytes: float) -> float:
    """Cache bytes of one token in one layer: heads·(key + value width)·bytes an element."""
    return kv_heads_per_device(group, tensor_parallel) * (group.k_dim + group.v_dim) * kv_bytes


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
    """Cached tokens a layer keeps and reads: min(context, window)."""
    return context_tokens if group.window is None else np.minimum(context_tokens, group.window)


def kv_bytes(model: Model, kv: KvKernel, context_tokens: Array | float, *, tensor_parallel: int = 1) -> Array | float:
    """K(c): cache bytes of one sequence of c tokens, window layers holding only their window."""
    return sum((g.layers * kv_bytes_per_layer(g, tensor_parallel, kv.bytes) * tokens_seen(g, context_tokens) for g in model.attention), 0.0)


def kv_pool_bytes(capacity_bytes: float, utilisation: float, weights: float, reserve_bytes: float) -> float:
    """Bytes left for the cache: capacity·utilisation − weights − reserve; never below 0 (then nothing fits)."""
    return max(0.0, capacity_bytes * utilisation - weights - reserve_bytes)


def kv_share_of_memory(in_use_bytes: Array | float, capacity_bytes: float) -> Array | float:
    """KV in use over the device's capacity: the share of memory, not of traffic, and not the use of the pool.

    >>> kv_share_of_memory(8e9, 80e9)
    0.1
    """
    return in_use_bytes / capacity_bytes


def sequences_that_fit(pool_bytes: Array | float, bytes_per_sequence: Array | float) -> Array | float:
    """Sequences the pool holds: pool / K(tokens), tokens = I + O where the engine reserves, I + O/2 where it grows."""
    return pool_bytes / np.maximum(bytes_per_sequence, 1.0)
