"""The engine's settings: by each field's name, how a raw value is read. Launch commands and files share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from breakeven.errors import InputError
from breakeven.kernels import kv_named, quantization_named
from breakeven.origin.values import Parser, count, optional_tokens, shown, switch, tokens, utilization, word
from breakeven.spec.engine import dtype_named, version_key

WITHOUT_EFFECT: Final = ("max_num_batched_tokens", "max_model_len")
"""Settings that are read and change no figure: the budget of a step is spent sooner or
later, and the longest request only limits what may be asked."""


def quantization(raw: object, path: str) -> str | None:
    """A method of weight quantisation, as engines or kernel families are named; or none."""
    if raw is None or str(raw).strip().lower() in ("none", "null", ""):
        return None
    given = word(raw, path).lower()
    quantization_named(shown(given))
    return given


def kv_cache_dtype(raw: object, path: str) -> str:
    """A format of the KV cache, as engines or kernel families are named; or ``auto``."""
    given = word(raw, path).lower()
    if given != "auto":
        kv_named(shown(given))
    return given


def dtype(raw: object, path: str) -> str:
    """A 16-bit type, or ``auto``."""
    return dtype_named(shown(word(raw, path)))


def state_dtype(raw: object, path: str) -> str:
    """What recurrent states are kept in, or ``auto``."""
    given = word(raw, path).lower()
    found = "float32" if given in ("float32", "fp32", "float") else dtype_named(shown(given))
    return found


def version(raw: object, path: str) -> str:
    """A version; a number that may have lost its last zero (0.10 reads as 0.1) must be written in quotes."""
    if isinstance(raw, float) and raw in (0.1, 0.2, 0.3):
        raise InputError("version_in_quotes", path=path, value=shown(raw), longer=f"{raw:.2f}")
    given = word(raw, path)
    version_key(given)
    return given


FIELDS: Final[Mapping[str, Parser]] = {
    "name": word,
    "version": version,
    "tensor_parallel_size": count,
    "pipeline_parallel_size": count,
    "data_parallel_size": count,
    "enable_expert_parallel": switch,
    "decode_context_parallel_size": count,
    "prefill_context_parallel_size": count,
    "max_num_seqs": count,
    "max_num_batched_tokens": tokens,
    "max_model_len": optional_tokens,
    "dtype": dtype,
    "quantization": quantization,
    "kv_cache_dtype": kv_cache_dtype,
    "mamba_ssm_cache_dtype": state_dtype,
    "block_size": count,
    "kv_unified": switch,
    "kv_cache_tokens": optional_tokens,
    "gpu_memory_utilization": utilization,
    "enable_prefix_caching": switch,
    "enable_chunked_prefill": switch,
    "enforce_eager": switch,
}
SWITCHES = frozenset(name for name, parser in FIELDS.items() if parser is switch)
