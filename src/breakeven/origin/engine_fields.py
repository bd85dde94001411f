"""The engine's settings: by each field's name, how a raw value is read. Launch commands and files share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from breakeven.errors import InputError
from breakeven.origin.values import Parser, count, one_of, optional_tokens, shown, switch, tokens, utilization, word

DTYPES = ("auto", "bfloat16", "float16", "float32")
DTYPE_ALIASES = {"half": "float16", "fp16": "float16", "bf16": "bfloat16", "float": "float32", "fp32": "float32"}
QUANTIZATIONS = (
    "fp8",
    "awq",
    "awq_marlin",
    "gptq",
    "gptq_marlin",
    "compressed-tensors",
    "bitsandbytes",
    "modelopt",
    "modelopt_fp4",
    "mxfp4",
    "gguf",
    "int8",
    "w8a8",
    "fbgemm_fp8",
)
KV_DTYPES = (
    "auto",
    "bfloat16",
    "float16",
    "fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "fp8_inc",
    "fp8_ds_mla",
    "int8",
    "int4",
    "nvfp4",
    "q8_0",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
)
KV_ALIASES = {"fp16": "float16", "f16": "float16", "half": "float16", "bf16": "bfloat16", "fp8_e4m3fn": "fp8_e4m3"}


def quantization(raw: object, path: str) -> str | None:
    """A method of weight quantisation, or none."""
    if raw is None or str(raw).strip().lower() in ("none", "null", ""):
        return None
    aliases = {"compressed_tensors": "compressed-tensors", "bnb": "bitsandbytes", "nvfp4": "modelopt_fp4", "w8a8_int8": "w8a8"}
    return str(one_of(QUANTIZATIONS, aliases)(raw, path))


def version(raw: object, path: str) -> str:
    """A version; a number that may have lost its last zero (0.10 reads as 0.1) must be written in quotes."""
    if isinstance(raw, float) and raw in (0.1, 0.2, 0.3):
        raise InputError("version_in_quotes", path=path, value=shown(raw), longer=f"{raw:.2f}")
    return word(raw, path)


FIELDS: Final[Mapping[str, Parser]] = {
    "name": word,
    "version": version,
    "tensor_parallel_size": count,
    "pipeline_parallel_size": count,
    "data_parallel_size": count,
    "enable_expert_parallel": switch,
    "max_num_seqs": count,
    "max_num_batched_tokens": tokens,
    "max_model_len": optional_tokens,
    "dtype": one_of(DTYPES, DTYPE_ALIASES),
    "quantization": quantization,
    "kv_cache_dtype": one_of(KV_DTYPES, KV_ALIASES),
    "block_size": count,
    "gpu_memory_utilization": utilization,
    "enable_prefix_caching": switch,
    "enable_chunked_prefill": switch,
    "enforce_eager": switch,
}
SWITCHES = frozenset(name for name, parser in FIELDS.items() if parser is switch)
