"""Bytes of one entry and of one state, of one layer on one device: what pages of the cache are made of, and how long a hybrid's are."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from breakeven.kernels import kv_format, kv_kernel
from breakeven.spec.engine import Engine
from breakeven.spec.model import Attention, Model, States

CONV_WINDOW = 3
"""Entries a convolution's window is taken to keep when what is drafted makes it longer: kernel 4 less one, as nearly all have (vLLM)."""
STATE_BYTES: Mapping[str, float] = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
WIDE_STATES = ("kda", "rwkv6")
"""Mixers whose states engines keep in 32 bits unless told otherwise."""


def kv_heads_per_device(group: Attention, tensor_parallel: int) -> float:
    """KV heads one device holds: max(1, heads/TP); a latent cache (MLA) is replicated.

    >>> kv_heads_per_device(Attention(kind="full", layers=1, q_heads=64, kv_heads=8, k_dim=128, v_dim=128), 16)
    1.0
    """
    return 1.0 if group.kind == "mla" else max(1.0, group.kv_heads / tensor_parallel)


def entry_bytes(group: Attention, tensor_parallel: int, kv_bytes: float) -> float:
    """Cache bytes of one entry of one layer: heads·(key + value width)·bytes an element."""
    return kv_heads_per_device(group, tensor_parallel) * (group.k_dim + group.v_dim) * kv_bytes


INDEX_BYTES = 1.0 + 4.0 / 128
"""Bytes of an element of an indexer's key: 8 bits and a scale of 32 for each 128 (vLLM vllm/v1/attention, DeepseekV32IndexerCache: 132
bytes a key of 128), whatever the format of the cache beside it."""


def index_bytes(group: Attention, kv_bytes: float) -> float:
    """Bytes of an indexer's key of one entry of one layer: quantised by itself beside a latent cache, in the cache's format beside heads.

    >>> dsa = Attention(kind="mla", layers=1, q_heads=128, kv_heads=1, k_dim=576, v_dim=0, index_dim=128)
    >>> index_bytes(dsa, 2.0), index_bytes(dsa, 1.0)
    (132.0, 132.0)
    """
    return group.index_dim * (INDEX_BYTES if group.kind in ("mla", "compressed") else kv_bytes)


def state_element_bytes(model: Model, engine: Engine) -> float:
    """Bytes an element of recurrent state: as the engine is set, else as the configuration asks, else the engine's own."""
    asked = engine.mamba_ssm_cache_dtype if engine.mamba_ssm_cache_dtype != "auto" else model.state_dtype
    if asked is not None:
        return STATE_BYTES[asked]
    return 4.0 if any(s.mixer in WIDE_STATES for s in model.states) else STATE_BYTES[engine.state_dtype]


def state_page_bytes(states: States, element_bytes: float, *, shards: int = 1, drafted: int = 0) -> float:
    """Bytes of one layer's state of one sequence: recurrent state at its width, convolution window in 16 bits, longer by what is drafted.

    >>> s = States(kind="linear", mixer="gated_deltanet", layers=48, state_elements=786432, conv_elements=30720, heads=48)
    >>> state_page_bytes(s, 4.0), state_page_bytes(s, 4.0, drafted=3)
    (3207168.0, 3268608.0)
    """
    window = states.conv_elements * (CONV_WINDOW + drafted) / CONV_WINDOW
    return (states.state_elements * element_bytes + window * 2.0) / min(shards, states.heads)


def hybrid_block(model: Model, engine: Engine, multiple: int = 16) -> int:
    """Tokens of a hybrid's block: the least multiple whose attention page is no smaller than a page of state.

    tokens = m·ceil(state page/(m·bytes a token and layer)); vLLM's HybridAttentionMambaModelConfig (0.11), per device.
    """
    groups = [group for group in model.attention if not group.shares_kv]
    if not groups or not model.states:
        return multiple
    shards, drafted = engine.tensor_parallel_size, engine.speculative.num_speculative_tokens if engine.speculative is not None else 0
    element = kv_kernel(kv_format(model, engine)).bytes
    token = max(entry_bytes(group, shards, element) for group in groups)
    width = state_element_bytes(model, engine)
    page = max(state_page_bytes(states, width, shards=shards, drafted=drafted) for states in model.states)
    return multiple * ceil(page / (multiple * token))
