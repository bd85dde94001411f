"""vLLM: ``vllm serve``, the API server's module, or its image. Flags of V0 (0.6) to V1 (0.11 and after), from vllm/engine/arg_utils.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from breakeven.messages import Message
from breakeven.origin.engine_fields import FIELDS
from breakeven.origin.launch import (
    Flag,
    LaunchSettings,
    Read,
    Spelling,
    flag_set,
    flags_of,
    keep,
    model_named,
    needed,
    read_fields,
    refuse_offload,
    unread_warning,
    with_files,
)
from breakeven.origin.speculative import speculative_of, table_of
from breakeven.origin.values import count, number
from breakeven.spec.engine import version_key

IMAGE = re.compile(r"(?!-)(?:[\w.-]+(?::\d+)?/){0,8}vllm[\w./-]*(?::([\w.-]+))?(?:@sha256:\w+)?")
KEPT = re.compile(r"VLLM_(?!API_KEY)\w+|CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES")
V0_ERA, V0_GONE = "0.7", "0.11"
"""VLLM_USE_V1=0 asks for the engine of the versions before 0.8, with their defaults and costs; from 0.11 on there is none."""
WITHOUT_GRAPHS = ("0", "none")
SPECULATIVE = {
    "speculative-model": "model",
    "num-speculative-tokens": "num_speculative_tokens",
    "speculative-method": "method",
    "ngram-prompt-lookup-max": "prompt_lookup_max",
    "ngram-prompt-lookup-min": "prompt_lookup_min",
    "speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size",
    "speculative-disable-by-batch-size": "disable_by_batch_size",
    "speculative-model-quantization": "quantization",
    "spec-decoding-acceptance-method": "acceptance_method",
}
"""Flags of V0 to the key of today's configuration."""
OWN_NAMES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "prefill_context_parallel_size",
    "enable_expert_parallel",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "mamba_ssm_cache_dtype",
    "block_size",
    "gpu_memory_utilization",
    "enable_prefix_caching",
    "enable_chunked_prefill",
    "enforce_eager",
)
"""Fields of ``Engine`` that are vLLM's flags by the same name, where ``Engine`` has them."""
SPELLING = Spelling(
    aliases={
        "tp": "tensor-parallel-size",
        "pp": "pipeline-parallel-size",
        "dp": "data-parallel-size",
        "dpl": "data-parallel-size-local",
        "dcp": "decode-context-parallel-size",
        "pcp": "prefill-context-parallel-size",
        "ep": "enable-expert-parallel",
        "q": "quantization",
        "sc": "speculative-config",
        "cc": "compilation-config",
        "O": "optimization-level",
        "model-path": "model",
    },
    fields={name.replace("_", "-"): name for name in OWN_NAMES if name in FIELDS},
    own=flag_set(
        """
        model config speculative-config compilation-config optimization-level num-gpu-blocks-override cpu-offload-gb O0
        """
    )
    | frozenset(SPECULATIVE),
    bare=flag_set(
        """
        trust-remote-code enable-auto-tool-choice disable-log-requests disable-log-stats enable-log-requests enable-lora
        disable-custom-all-reduce enable-reasoning enable-prompt-tokens-details enable-server-load-tracking async-scheduling
        disable-sliding-window disable-cascade-attn calculate-kv-scales enable-mfu-metrics headless skip-tokenizer-init
        disable-frontend-multiprocessing enable-sleep-mode enable-eplb allow-credentials return-tokens-as-token-ids
        disable-uvicorn-access-log enable-force-include-usage use-v2-block-manager disable-hybrid-kv-cache-manager
        enable-log-outputs enable-dbo data-parallel-hybrid-lb data-parallel-external-lb O1 O2 O3 O0
        """
    ),
    harmless=flag_set(
        """
        host port uds served-model-name api-key trust-remote-code chat-template tokenizer tokenizer-mode tokenizer-revision
        skip-tokenizer-init download-dir seed disable-log-requests enable-log-requests enable-log-outputs disable-log-stats
        uvicorn-log-level tool-call-parser tool-parser-plugin reasoning-parser enable-auto-tool-choice enable-reasoning revision
        code-revision hf-config-path hf-token load-format config-format root-path ssl-keyfile ssl-certfile ssl-ca-certs
        allowed-origins allowed-methods allowed-headers allow-credentials middleware chat-template-content-format
        generation-config override-generation-config enable-prompt-tokens-details disable-uvicorn-access-log api-server-count
        enable-server-load-tracking response-role max-log-len max-logprobs enable-mfu-metrics return-tokens-as-token-ids
        disable-frontend-multiprocessing enable-force-include-usage use-v2-block-manager max-seq-len-to-capture
        distributed-executor-backend disable-custom-all-reduce worker-cls nnodes node-rank master-addr master-port headless
        data-parallel-address data-parallel-rpc-port data-parallel-backend enable-sleep-mode otlp-traces-endpoint
        collect-detailed-traces prefix-caching-hash-algo guided-decoding-backend structured-outputs-config task runner convert
        limit-mm-per-prompt device omni mm-processor-kwargs allowed-local-media-path cpu-offload-gb optimization-level O1 O2 O3
        speculative-config.prompt_lookup_max speculative-config.prompt_lookup_min
        """
    ),
)


def begins(words: Sequence[str], place: int) -> int:
    """``vllm serve`` or the API server's module."""
    part = words[place]
    if part.split("/")[-1] == "vllm" and words[place + 1 : place + 2] == ["serve"]:
        return 2
    return int(part in ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server") or part.endswith("openai/api_server.py"))


def read(arguments: Sequence[str], environment: Mapping[str, str], version: str | None) -> LaunchSettings:
    """The settings of a command: those of its ``--config`` file, then its flags."""
    model, flags = flags_of(arguments, SPELLING)
    flags = with_files(flags, "config", SPELLING)
    found = read_fields(flags, SPELLING)
    speculation: dict[str, object] = {}
    for flag in found.rest:
        if flag.name == "model":
            model = model_named(flag)
        elif flag.name.startswith("speculative-config"):
            speculation |= _table(flag)
        elif flag.name in SPECULATIVE:
            speculation[SPECULATIVE[flag.name]] = needed(flag)
        else:
            _own(flag, found)
    speculative, not_read = speculative_of(speculation, "--speculative-config") if speculation else (None, {})
    kept = {name: value for name, value in environment.items() if KEPT.fullmatch(name)}
    era = _era(environment, version)
    read_elsewhere = ("VLLM_USE_V1",) if era != version else ()
    found.unread |= not_read | {name: value for name, value in kept.items() if name.startswith("VLLM_") and name not in read_elsewhere}
    return LaunchSettings(
        engine="vllm",
        version=era,
        model=model,
        settings=found.settings,
        speculative=speculative,
        unread=found.unread,
        environment=kept,
        warnings=(*unread_warning(found.unread, SPELLING), *_era_warning(era, version)),
    )


def _own(flag: Flag, found: Read) -> None:
    """Flags that say a field of ``Engine`` in another way."""
    if flag.name == "num-gpu-blocks-override":
        # Blocks of the size in force, 16 tokens on GPU builds: vllm/config CacheConfig.
        size = count(found.settings.get("block_size", 16), "--block-size")
        found.settings["kv_cache_tokens"] = size * count(needed(flag), flag.written)
    elif flag.name == "cpu-offload-gb":
        if number(needed(flag), flag.written) > 0:
            refuse_offload(flag)
        keep(found.unread, flag)
    else:
        _compilation(flag, found)


def _compilation(flag: Flag, found: Read) -> None:
    """Level or mode 0, and a graph mode of NONE, are without CUDA graphs; other levels are as by default."""
    keep(found.unread, flag)
    if flag.name == "O0":
        found.settings["enforce_eager"] = True
        return
    table: Mapping[str, Any] = {flag.name: flag.value} if flag.name == "optimization-level" else _table(flag) if flag.value else {}
    for key, value in table.items():
        if key in ("level", "mode", "cudagraph_mode", "optimization-level") and str(value).lower() in WITHOUT_GRAPHS:
            found.settings["enforce_eager"] = True


def _table(flag: Flag) -> Mapping[str, object]:
    """One key of the dotted form, or the whole JSON object; a bare number is the level of compilation."""
    given = needed(flag)
    name, dot, key = flag.name.partition(".")
    if dot:
        return {key: given}
    if name == "compilation-config" and given.strip().isdecimal():
        return {"level": given}
    return table_of(given, flag.written)


def _era(environment: Mapping[str, str], version: str | None) -> str | None:
    """The version whose engine runs: the V0 engine is that of the versions before 0.8, whatever release carries it."""
    wanted = environment.get("VLLM_USE_V1", "").strip() == "0"
    has_it = version is None or version_key(V0_ERA) < version_key(version) < version_key(V0_GONE)
    return V0_ERA if wanted and has_it else version


def _era_warning(era: str | None, version: str | None) -> tuple[Message, ...]:
    return () if era == version else (Message("warning.launch_v0_era", {"version": era}),)
