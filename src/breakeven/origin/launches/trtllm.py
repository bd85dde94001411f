"""TensorRT-LLM: ``trtllm-serve``, with its YAML of options.

Flags and keys from tensorrt_llm/commands/serve.py and llmapi/llm_args.py (0.20 to 1.x).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.engine_fields import kv_cache_dtype, quantization
from breakeven.origin.launch import (
    Flag,
    LaunchSettings,
    Read,
    Spelling,
    flag_set,
    flags_of,
    keep,
    needed,
    on,
    read_fields,
    unread_warning,
    with_files,
)
from breakeven.origin.speculative import speculative_of
from breakeven.origin.values import count, shown, utilization
from breakeven.spec.engine import Speculative

IMAGE = re.compile(r"(?!-)(?:[\w.-]+(?::\d+)?/){0,8}(?:tensorrt[-_]llm|trt-?llm)[\w./-]*(?::([\w.-]+))?(?:@sha256:\w+)?")
KEPT = re.compile(r"CUDA_VISIBLE_DEVICES|TRTLLM_(?!API_KEY)\w+")
OTHER_SERVERS = ("disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve")
QUANTIZATION: Mapping[str, str] = {
    "fp8_block_scales": "fp8",
    "fp8_per_channel_per_token": "fp8",
    "w4a16_awq": "int4",
    "w4a16_gptq": "int4",
    "w8a8_sq_per_channel": "int8",
    "w8a8_sq_per_channel_per_token_plugin": "int8",
}
"""Its algorithms to words that are known."""
METHODS: Mapping[str, str] = {"mtp": "mtp", "eagle": "eagle", "eagle3": "eagle3", "ngram": "ngram", "drafttarget": "draft_model"}
LENGTHS = ("max_draft_len", "num_nextn_predict_layers", "max_total_draft_tokens")
DRAFTS = ("speculative_model_dir", "speculative_model", "draft_model", "pytorch_weights_path")
TABLES = ("kv-cache-config", "speculative-config", "quant-config", "cuda-graph-config", "moe-config")
SPELLING = Spelling(
    aliases={
        "tensor-parallel-size": "tp-size",
        "pipeline-parallel-size": "pp-size",
        "moe-expert-parallel-size": "ep-size",
        "kv-cache-free-gpu-memory-fraction": "free-gpu-memory-fraction",
        "kv-cache-free-gpu-mem-fraction": "free-gpu-memory-fraction",
        "extra-llm-api-options": "config",
        "enable-chunked-context": "enable-chunked-prefill",
        "use-cuda-graph": "cuda-graph",
    },
    fields={
        "tp-size": "tensor_parallel_size",
        "pp-size": "pipeline_parallel_size",
        "max-batch-size": "max_num_seqs",
        "max-num-tokens": "max_num_batched_tokens",
        "max-seq-len": "max_model_len",
        "enable-chunked-prefill": "enable_chunked_prefill",
        "dtype": "dtype",
    },
    own=flag_set("config ep-size free-gpu-memory-fraction kv-cache-dtype enable-attention-dp cuda-graph") | frozenset(TABLES),
    bare=flag_set("trust-remote-code enable-attention-dp fail-fast-on-attention-window-too-large"),
    harmless=flag_set(
        """
        host port api-key backend log-level tokenizer trust-remote-code reasoning-parser tool-parser num-postprocess-workers
        metadata-server-config-file server-role gpus-per-node cluster-size print-iter-log enable-iter-perf-stats
        enable-iter-req-stats return-perf-metrics guided-decoding-backend stream-interval max-input-len max-beam-width
        custom-tokenizer skip-tokenizer-init served-model-name chat-template revision media-io-kwargs moe-config cuda-graph-config
        enable-attention-dp-config batch-wait-timeout-ms
        """
    ),
)


def begins(words: Sequence[str], place: int) -> int:
    """The server, whatever starts it (``mpirun``, ``trtllm-llmapi-launch``)."""
    if words[place].split("/")[-1] != "trtllm-serve":
        return 0
    following = words[place + 1] if place + 1 < len(words) else ""
    if following in OTHER_SERVERS:
        raise NotModelledError("launch_engine", engine=f"TensorRT-LLM (trtllm-serve {following})")
    return 2 if following == "serve" else 1


def read(arguments: Sequence[str], environment: Mapping[str, str], version: str | None) -> LaunchSettings:
    """The settings of a command: those of its YAML of options, then its flags."""
    model, flags = flags_of(arguments, SPELLING)
    found = read_fields(with_files(flags, "config", SPELLING, nulls=("cuda_graph_config",)), SPELLING)
    own = {flag.name: flag for flag in found.rest}
    _fraction(own, _cache(own, found), found.settings)
    _weights(own, found)
    _graphs(own, found)
    _parallel(own, found.settings)
    kept = {name: value for name, value in environment.items() if KEPT.fullmatch(name)}
    return LaunchSettings(
        engine="trtllm",
        version=version,
        model=model,
        settings=found.settings,
        speculative=_speculative(own, found),
        unread=found.unread,
        environment=kept,
        warnings=unread_warning(found.unread, SPELLING),
    )


def _nested(own: Mapping[str, Flag], name: str) -> dict[str, Any]:
    """A table of the options; absent and null are empty."""
    flag = own.get(name)
    if flag is None or flag.value in (None, "null", ""):
        return {}
    try:
        table = json.loads(flag.value or "")
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict):
        raise InputError("not_a_table", path=shown(flag.written))
    return {key: value for key, value in table.items() if value is not None}


def _cache(own: Mapping[str, Flag], found: Read) -> dict[str, Any]:
    """The cache's own table; what it holds beside what is read is kept."""
    table = _nested(own, "kv-cache-config")
    path = own["kv-cache-config"].written if table else ""
    for key, name in (("tokens_per_block", "block_size"), ("max_tokens", "kv_cache_tokens")):
        if key in table:
            found.settings[name] = count(table.pop(key), f"{path}.{key}")
    if "enable_block_reuse" in table:
        found.settings["enable_prefix_caching"] = on(Flag("", f"{path}.enable_block_reuse", str(table.pop("enable_block_reuse"))))
    dtype = own.get("kv-cache-dtype") or (Flag("", f"{path}.dtype", str(table["dtype"])) if "dtype" in table else None)
    table.pop("dtype", None)
    if dtype is not None:
        found.settings["kv_cache_dtype"] = kv_cache_dtype(needed(dtype), dtype.written)
    found.unread |= {f"{path}.{key}": shown(value) for key, value in table.items() if key != "free_gpu_memory_fraction"}
    return table


def _fraction(own: Mapping[str, Flag], cache: Mapping[str, Any], settings: dict[str, object]) -> None:
    """The cache's share, which with this engine is of what weights leave free."""
    given, path = cache.get("free_gpu_memory_fraction"), "kv_cache_config.free_gpu_memory_fraction"
    if "free-gpu-memory-fraction" in own:
        flag = own["free-gpu-memory-fraction"]
        given, path = needed(flag), flag.written
    if given is not None:
        settings["gpu_memory_utilization"] = utilization(given, path)


def _weights(own: Mapping[str, Flag], found: Read) -> None:
    table = _nested(own, "quant-config")
    if "quant_algo" in table:
        given = str(table.pop("quant_algo")).strip().lower()
        found.settings["quantization"] = quantization(QUANTIZATION.get(given, given), "quant_config.quant_algo")
    if "kv_cache_quant_algo" in table:
        found.settings.setdefault("kv_cache_dtype", kv_cache_dtype(table.pop("kv_cache_quant_algo"), "quant_config.kv_cache_quant_algo"))
    found.unread |= {f"quant_config.{key}": shown(value) for key, value in table.items()}


def _graphs(own: Mapping[str, Flag], found: Read) -> None:
    """CUDA graphs are on unless their table is null."""
    if "cuda-graph-config" in own:
        keep(found.unread, own["cuda-graph-config"])
        found.settings["enforce_eager"] = own["cuda-graph-config"].value == "null"
    if "cuda-graph" in own:
        found.settings["enforce_eager"] = not on(own["cuda-graph"])
    if "moe-config" in own:
        keep(found.unread, own["moe-config"])


def _parallel(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    """Data-parallel attention runs a rank of it on each of the ``--tp_size`` devices."""
    if "ep-size" in own and count(needed(own["ep-size"]), own["ep-size"].written) > 1:
        settings["enable_expert_parallel"] = True
    if "enable-attention-dp" in own and on(own["enable-attention-dp"]):
        ranks = count(settings.get("tensor_parallel_size", 1), "--tp_size")
        settings |= {"tensor_parallel_size": 1, "data_parallel_size": ranks}


def _speculative(own: Mapping[str, Flag], found: Read) -> Speculative | None:
    table = _nested(own, "speculative-config")
    if not table:
        return None
    path = own["speculative-config"].written
    given = str(table.pop("decoding_type", "")).strip()
    if not given:
        raise InputError("missing_key", path=f"{path}.decoding_type")
    plain = re.sub(r"[_\s-]", "", given.lower())
    read: dict[str, Any] = {"method": METHODS.get(plain, given)}
    lengths = [table.pop(key) for key in LENGTHS if key in table]
    read |= {"num_speculative_tokens": lengths[0]} if lengths else {}
    drafts = [table.pop(key) for key in DRAFTS if key in table]
    read |= {"model": str(drafts[0])} if drafts and read["method"] not in ("mtp", "ngram") else {}
    speculative, _ = speculative_of(read, path)
    found.unread |= {f"{path}.{key}": shown(value) for key, value in table.items()}
    return speculative
