"""Pages of the cache where an engine makes all groups of layers take pages of one size (vLLM's hybrid cache)."""

from __future__ import annotations

from collections.abc import Sequence

from breakeven.kernels import KvKernel
from breakeven.ledger.memory import kv_bytes_per_layer
from breakeven.spec.model import Model

NEAR = 1.5
"""Below this ratio of their layers groups are filled up to the larger one: vllm/v1/core/kv_cache_utils.py."""


def padded_layers(layers: Sequence[int]) -> int:
    """Layers paid for when kinds of layers are cut into groups of one size: the rarest kind's, or the most common one's where near.

    gpt-oss-120b has 18 full and 18 window layers; Gemma 3 27B 10 and 52, which take 7 groups of 10:

    >>> padded_layers([18, 18]), padded_layers([10, 52]), padded_layers([12, 13]), padded_layers([32])
    (36, 70, 26, 32)
    """
    size = max(layers) if max(layers) < NEAR * min(layers) else min(layers)
    return sum(-(-count // size) for count in layers) * size


def unified_bytes_per_token(model: Model, kv: KvKernel, *, tensor_parallel: int = 1) -> float:
    """Bytes that a token counted in unified pages stands for: padded layers times the widest layer's entry.

    Source: vllm/v1/core/kv_cache_utils.py, which logs blocks over groups times the block size as the tokens of the cache.
    """
    attention = [group for group in model.attention if not group.shares_kv]
    if not attention:
        return 0.0
    kinds = [*(group.layers for group in attention), *(states.layers for states in model.states)]
    return padded_layers(kinds) * max(kv_bytes_per_layer(group, tensor_parallel, kv.bytes) for group in attention)
