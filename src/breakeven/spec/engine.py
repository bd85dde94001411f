"""How the engine is set, by vLLM's names where vLLM has one."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from breakeven.errors import InputError, NotModelledError

DTYPES: Mapping[str, str] = {
    "auto": "auto",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
}
"""What ``dtype`` may be, by the spellings engines take."""
LOOKUPS = ("ngram",)
HEADS = ("eagle", "eagle3")
METHODS = (*LOOKUPS, *HEADS, "mtp", "draft_model")
"""The draft methods that are modelled: those that look tokens up, heads on the target's states, its own MTP layers, a model."""
METHOD_WORDS: Mapping[str, str] = {
    "[ngram]": "ngram",
    "n_gram": "ngram",
    "prompt_lookup": "ngram",
    "draft": "draft_model",
    "eagle_3": "eagle3",
    "nextn": "mtp",
}
NEWEST = re.compile(r"(main|master|nightly|latest|dev|head)(\W.*)?", re.IGNORECASE)
"""Versions without a number: newer than all that have one."""


def dtype_named(name: str) -> str:
    """``bfloat16``, ``float16`` or ``auto`` by any of its spellings; wider types are refused, not counted as 16 bit."""
    found = DTYPES.get(name.strip().lower())
    if found is None:
        raise NotModelledError("dtype_not_modelled", dtype=name)
    return found


def method_named(name: str) -> str:
    """A draft method by any of its spellings; engines name some of them by model (``deepseek_mtp``)."""
    plain = name.strip().lower().replace("-", "_")
    found = "mtp" if plain.endswith("_mtp") else METHOD_WORDS.get(plain, plain)
    if found not in METHODS:
        raise NotModelledError("speculation_not_modelled", method=name, known=", ".join(METHODS))
    return found


def same_version(one: str, other: str) -> bool:
    """Whether two versions may be one: a version tells as much as the shorter one, and a word (``main``) or nothing tells of none.

    What stands behind ``+`` or ``-`` is how it was built; builds are told by their number.

    >>> [same_version(*pair.split()) for pair in ("0.11 0.11.0", "0.11.0 0.11.1", "main 0.11", "0.1 0.11")]
    [True, False, True, False]
    >>> [same_version(*pair.split()) for pair in ("0.11.0+cu128 0.11.0", "b6000-1a2b3c b6000", "b6000 b6001")]
    [True, True, False]
    """
    a, b = _release(one), _release(other)
    if not a or not b:
        return True
    return all(x == y for x, y in zip(a, b, strict=False))


def _release(version: str) -> list[str]:
    """The parts of a release's number; none of a word."""
    found = re.match(r"[vb]?(\d[\w.]*)", version.strip(), re.IGNORECASE)
    return [part for part in found[1].split(".") if part] if found is not None else []


@lru_cache(maxsize=256)
def version_key(version: str) -> tuple[int, ...]:
    """A version as numbers that compare; a word for the newest build comes after all of them.

    >>> version_key("v0.8.5.post1"), version_key("0.11rc1"), version_key("b4567")
    ((0, 8, 5), (0, 11), (4567,))
    >>> version_key("nightly") > version_key("99.0")
    True
    """
    if NEWEST.fullmatch(version.strip()):
        return (sys.maxsize,)
    found = re.match(r"[vb]?(\d{1,9}(?:\.\d{1,9}){0,3})", version.strip(), re.IGNORECASE)
    if found is None:
        raise InputError("bad_version", path="engine.version", value=repr(version)[:80])
    return tuple(int(part) for part in found[1].split("."))


@dataclass(frozen=True, kw_only=True)
class Speculative:
    """Speculative decoding as configured. ``verify_tokens`` counts the rows a sequence verifies (k + 1 for a chain, nodes for a tree)."""

    method: str
    """One of ``METHODS``."""
    num_speculative_tokens: int
    model: str | None = None
    """The draft model or head, as named."""
    topk: int = 1
    verify_tokens: int | None = None

    @property
    def rows(self) -> int:
        """Rows of the forward pass per sequence and round."""
        return self.verify_tokens or self.num_speculative_tokens + 1


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine's settings, all resolved: nothing is left to a default unseen.

    The defaults written here are like vLLM's and know nothing of ``name``, ``version`` or the device: ``breakeven.load`` and
    :func:`breakeven.catalog.engine` resolve an engine's own.
    """

    name: str = "vllm"
    version: str = "0.11"
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    """Of a mixture: ranks with a batch and a cache of their own that share the experts. Of a dense model: replicas."""
    enable_expert_parallel: bool = False
    """Whole experts on each device, over all devices of a replica, instead of a part of every expert."""
    decode_context_parallel_size: int = 1
    """Devices of a tensor-parallel group among which the tokens of a cache head are dealt, instead of each keeping it whole."""
    prefill_context_parallel_size: int = 1
    """Devices (beside those of tensor parallelism) that a prompt is cut over, and its cache with it."""
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_model_len: int | None = None
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """What recurrent states are kept in; ``auto`` is the checkpoint's wish, else the engine's own ``state_dtype``."""
    block_size: int = 16
    gpu_memory_utilization: float = 0.9
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    enforce_eager: bool = False
    speculative: Speculative | None = None
    kv_reserve: Literal["grow", "whole"] = "grow"
    """Whether a sequence's cache grows with it, or prompt and output are reserved at once (TensorRT-LLM)."""
    mixes_prompts: bool = False
    """Whether whole prompts run in one step with decoding sequences even where they are not cut into chunks (in-flight batching)."""
    kv_unified: bool = True
    """Whether all sequences share one cache; else each slot has its own, and each stretch of busy slots takes a pass (llama.cpp)."""
    kv_cache_tokens: int | None = None
    """The most tokens the KV cache may hold (``-c``, ``--max-total-tokens``, a block override); None: all that the memory ledger leaves."""
    state_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """What the engine keeps recurrent states in where neither the checkpoint nor a setting says."""
    fills: Literal["device", "free"] = "device"
    """What ``gpu_memory_utilization`` is a share of: the device's memory, or what weights and reserve leave of it (TensorRT-LLM)."""
    checkpoint_kernels: Mapping[str, str] = field(default_factory=dict)
    """Kernel family that a stored format names to the family the engine runs it by where nothing is typed."""
    runtime_reserve_bytes: float = 2e9
    """What activations, graphs and the runtime take of a device beside weights and cache."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Flags that were given and that we do not read, kept as given."""


@dataclass(frozen=True, kw_only=True)
class EngineDefaults:
    """Defaults of one engine, at one version, on one device."""

    name: str
    title: str
    version: str
    """The version taken when none is stated."""
    settings: Mapping[str, object]
    """Field of ``Engine`` to its default."""
    kv_reserve: Literal["grow", "whole"]
    """Whether a sequence takes KV room as it grows, or for all its tokens at once."""
    mixes_prompts: bool
    """Whether prompts run beside decoding sequences even without chunks."""
    fills: Literal["device", "free"]
    """What the share of memory is a share of."""
    runtime_reserve_bytes: float
    """Memory a device gives to activations, graphs and the runtime."""
    state_dtype: Literal["float32", "bfloat16"]
    """What recurrent states are kept in unless the checkpoint or a setting says."""
    own_slots: bool = False
    """Whether slots, where their number is stated, have a cache of their own each unless a setting says otherwise."""
    sources: Mapping[str, str] = field(default_factory=dict)
