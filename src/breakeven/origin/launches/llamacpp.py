"""llama.cpp: ``llama-server``, ``llama-cli``, the Python server, or its image.

Flags and LLAMA_ARG_ variables from common/arg.cpp (b4000 and after).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from breakeven.errors import InputError, NotModelledError
from breakeven.kernels import quantization_words
from breakeven.origin.engine_fields import kv_cache_dtype
from breakeven.origin.launch import (
    Flag,
    LaunchSettings,
    Read,
    Spelling,
    alias_set,
    environment_flags,
    flag_set,
    flags_of,
    keep,
    model_named,
    needed,
    on,
    read_fields,
    refuse_offload,
    unread_warning,
)
from breakeven.origin.speculative import speculative_of
from breakeven.origin.values import count, number, one_of, shown
from breakeven.spec.bounds import not_negative
from breakeven.spec.engine import Speculative

IMAGE = re.compile(r"(?!-)(?:[\w.-]+(?::\d+)?/){0,8}llama[.-]?cpp[\w./-]*(?::([\w.-]+))?(?:@sha256:\w+)?")
PROGRAMS = ("llama-server", "llama-cli", "llama-completion", "llama-batched-bench")
OLD_PROGRAMS = re.compile(r"(?:\./|.*(?:llama|build)\S*/)(?:server|main)")
KEPT = re.compile(r"CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|GGML_CUDA_ENABLE_UNIFIED_MEMORY")
ALL_LAYERS = 999
DRAFTED = 16
"""Tokens drafted where none are stated: common/common.h, n_max."""
HF_QUANT = "q4_k_m"
"""The file taken of a repository where none is named: ``-hf`` in common/arg.cpp."""
GGML_TYPES = {"0": "f32", "1": "f16", "2": "q4_0", "8": "q8_0", "30": "bf16"}
"""The Python server's numbers for types."""
SPLITS = {"0": "none", "1": "layer", "2": "row"}
LOOKUP = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache", "ngram")
SPEC_TYPES = {
    "draft-simple": "draft_model",
    "draft": "draft_model",
    "draft-eagle3": "eagle3",
    "draft-mtp": "mtp",
    **dict.fromkeys(LOOKUP, "ngram"),
}
HOST = ("override-tensor", "cpu-moe", "n-cpu-moe", "no-kv-offload", "override-tensor-draft", "cpu-moe-draft", "n-cpu-moe-draft")
"""Flags that keep a part of the model or its cache in host memory."""
VARIABLES = {
    "LLAMA_ARG_MODEL": "model",
    "LLAMA_ARG_HF_REPO": "hf-repo",
    "LLAMA_ARG_CTX_SIZE": "ctx-size",
    "LLAMA_ARG_N_PARALLEL": "parallel",
    "LLAMA_ARG_BATCH": "batch-size",
    "LLAMA_ARG_UBATCH": "ubatch-size",
    "LLAMA_ARG_N_GPU_LAYERS": "n-gpu-layers",
    "LLAMA_ARG_CACHE_TYPE_K": "cache-type-k",
    "LLAMA_ARG_CACHE_TYPE_V": "cache-type-v",
    "LLAMA_ARG_FLASH_ATTN": "flash-attn",
    "LLAMA_ARG_KV_UNIFIED": "kv-unified",
    "LLAMA_ARG_SPLIT_MODE": "split-mode",
    "LLAMA_ARG_TENSOR_SPLIT": "tensor-split",
    "LLAMA_ARG_DEVICE": "device",
    "LLAMA_ARG_MODEL_DRAFT": "model-draft",
    "LLAMA_ARG_DRAFT_MAX": "draft-max",
    "LLAMA_ARG_SPEC_TYPE": "spec-type",
    "LLAMA_ARG_OVERRIDE_TENSOR": "override-tensor",
    "LLAMA_ARG_CPU_MOE": "cpu-moe",
    "LLAMA_ARG_N_CPU_MOE": "n-cpu-moe",
    "LLAMA_ARG_NO_KV_OFFLOAD": "no-kv-offload",
    "LLAMA_ARG_SWA_FULL": "swa-full",
}
SPELLING = Spelling(
    aliases=alias_set(
        """
        m=model hf=hf-repo hfr=hf-repo hff=hf-file hf-model-repo-id=hf-repo mu=model-url c=ctx-size n-ctx=ctx-size np=parallel
        b=batch-size n-batch=batch-size ub=ubatch-size n-ubatch=ubatch-size ngl=n-gpu-layers gpu-layers=n-gpu-layers
        ctk=cache-type-k type-k=cache-type-k ctv=cache-type-v type-v=cache-type-v fa=flash-attn kvu=kv-unified sm=split-mode
        ts=tensor-split dev=device md=model-draft draft-model=model-draft hfd=hf-repo-draft hfrd=hf-repo-draft draft=draft-max
        draft-n=draft-max spec-draft-n-max=draft-max draft-model-num-pred-tokens=draft-max draft-n-min=draft-min
        spec-draft-n-min=draft-min spec-draft-p-min=draft-p-min spec-draft-model=model-draft
        spec-ngram-simple-size-m=spec-ngram-size-m ot=override-tensor cmoe=cpu-moe ncmoe=n-cpu-moe nkvo=no-kv-offload
        nocb=no-cont-batching cb=cont-batching lcs=lookup-cache-static lcd=lookup-cache-dynamic t=threads tb=threads-batch
        n-threads=threads a=alias mg=main-gpu n=predict cram=cache-ram mm=mmproj v=verbose p=prompt s=seed ngld=n-gpu-layers-draft
        devd=device-draft ctkd=cache-type-k-draft ctvd=cache-type-v-draft cd=ctx-size-draft model-alias=alias to=timeout
        sps=slot-prompt-similarity kvo=kv-offload fitt=fit-target fitc=fit-ctx cnv=conversation
        """
    ),
    fields={"batch-size": "max_num_batched_tokens"},
    own=flag_set(
        """
        model hf-repo ctx-size parallel n-gpu-layers cache-type-k cache-type-v kv-unified no-kv-unified split-mode tensor-split
        device model-draft hf-repo-draft draft-max spec-type spec-ngram-size-m kv-offload
        """
    )
    | frozenset(HOST),
    bare=flag_set(
        """
        kv-unified kv-offload cpu-moe cpu-moe-draft cont-batching swa-full mlock mmap metrics slots props jinja embedding
        embeddings reranking rerank context-shift warmup verbose log-disable offline webui server verbose-prompt log-prefix
        log-timestamps check-tensors conversation cache-prompt op-offload repack spm-infill escape mmproj-offload direct-io
        single-turn interactive
        """
    ),
    harmless=flag_set(
        """
        host port alias api-key api-key-file threads threads-batch threads-http mlock mmap no-mmap metrics slots no-slots props
        jinja no-jinja chat-template chat-template-file chat-template-kwargs reasoning-format reasoning-budget verbose log-disable
        log-file log-prefix log-timestamps log-verbosity log-colors seed temp top-k top-p min-p repeat-penalty presence-penalty
        frequency-penalty samplers timeout ssl-key-file ssl-cert-file path webui no-webui warmup no-warmup predict n-predict
        prompt flash-attn main-gpu numa prio prio-batch poll cpu-mask cpu-range cpu-strict offline hf-file hf-token model-url
        server cont-batching cache-prompt cache-reuse cache-ram slot-save-path slot-prompt-similarity draft-min draft-p-min mmproj
        mmproj-url no-mmproj no-context-shift context-shift conversation no-conversation escape kv-offload n-gpu-layers-draft
        device-draft tools fit fit-target fit-ctx check-tensors chat-format cache interrupt-requests direct-io
        """
    ),
)


def begins(words: Sequence[str], place: int) -> int:
    """One of its programs, the older names only with a folder before them, or the Python server's module."""
    part = words[place].removesuffix(".exe")
    return int(part.split("/")[-1] in PROGRAMS or part == "llama_cpp.server" or OLD_PROGRAMS.fullmatch(part) is not None)


def read(arguments: Sequence[str], environment: Mapping[str, str], version: str | None) -> LaunchSettings:
    """The settings of a command; its flags win over the variables."""
    stray, flags = flags_of(arguments, SPELLING)
    if stray is not None:
        raise InputError("launch_stray", value=shown(stray))
    found = read_fields([*environment_flags(environment, VARIABLES), *flags], SPELLING)
    own = {flag.name: flag for flag in found.rest}
    _refuse_host_memory(own, found)
    _context(own, found)
    _cache_types(own, found.settings)
    kept = {name: value for name, value in environment.items() if KEPT.fullmatch(name)}
    spread = _split(own, kept, found)
    return LaunchSettings(
        engine="llamacpp",
        version=version,
        model=_model(own, found),
        settings=found.settings,
        speculative=_speculative(own, found),
        spread=spread,
        device_layers=_device_layers(own),
        unread=found.unread,
        environment=kept,
        warnings=unread_warning(found.unread, SPELLING),
    )


def _refuse_host_memory(own: Mapping[str, Flag], found: Read) -> None:
    for name in HOST:
        if name not in own:
            continue
        plain = name.startswith(("cpu-moe", "no-kv")) and own[name].value is not None and not on(own[name])
        if plain or (own[name].value or "").strip() == "0" or name.endswith("-draft"):
            keep(found.unread, own[name])
        else:
            refuse_offload(own[name])


def _model(own: Mapping[str, Flag], found: Read) -> str | None:
    """A file, else a repository, whose quantisation stands after the colon."""
    if "model" in own:
        return model_named(own["model"])
    if "hf-repo" not in own:
        return None
    repository, colon, quant = needed(own["hf-repo"]).strip().partition(":")
    known = quant.lower() if colon else HF_QUANT
    if known in quantization_words():
        found.settings["quantization"] = known
    elif known not in ("f16", "bf16"):
        keep(found.unread, own["hf-repo"])
    return repository


def _context(own: Mapping[str, Flag], found: Read) -> None:
    """The whole context is shared among the slots; each has its part unless the cache is unified. 0 is the model's own."""
    slots = _whole(own, "parallel")
    if slots:
        found.settings["max_num_seqs"] = slots
    said = [name for name in own if name in ("kv-unified", "no-kv-unified")]  # in the order of the command
    unified = bool(said) and said[-1] == "kv-unified" and on(own["kv-unified"])
    if said:
        found.settings["kv_unified"] = unified
    tokens = _whole(own, "ctx-size")
    if not tokens:
        return
    found.settings["kv_cache_tokens"] = tokens
    if slots and not unified:
        found.settings["max_model_len"] = max(1, tokens // slots)


def _cache_types(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    """One type for keys and values, 16 bit where none is named."""
    given = {name: needed(own[name]).strip().lower() for name in ("cache-type-k", "cache-type-v") if name in own}
    if not given:
        return
    keys, values = (GGML_TYPES.get(given.get(name, "f16"), given.get(name, "f16")) for name in ("cache-type-k", "cache-type-v"))
    if keys != values:
        raise NotModelledError("launch_cache_types", keys=shown(keys), values=shown(values))
    settings["kv_cache_dtype"] = kv_cache_dtype(keys, "-ctk")


def _device_layers(own: Mapping[str, Flag]) -> int | None:
    if "n-gpu-layers" not in own:
        return None
    given = needed(own["n-gpu-layers"]).strip().lower()
    if given in ("all", "auto") or given.startswith("-"):
        return ALL_LAYERS
    return int(number(given, own["n-gpu-layers"].written, not_negative))


def _split(own: Mapping[str, Flag], environment: Mapping[str, str], found: Read) -> Any:
    """Layers are split like a pipeline, rows like tensors; over how many devices is told by their list, or not at all."""
    given = needed(own["split-mode"]).strip().lower() if "split-mode" in own else "layer"
    mode = one_of(("none", "layer", "row", "tensor"), SPLITS)(given, "--split-mode")
    devices = _devices(own, environment)
    if mode == "none" or devices == 1:
        found.settings |= {"tensor_parallel_size": 1, "pipeline_parallel_size": 1}
        return None
    for name in ("tensor-split", "device"):
        if name in own:
            keep(found.unread, own[name])
    if devices is None:
        return "pipeline" if mode == "layer" else "tensor"
    found.settings |= {
        "tensor_parallel_size": 1 if mode == "layer" else devices,
        "pipeline_parallel_size": devices if mode == "layer" else 1,
    }
    return None


def _devices(own: Mapping[str, Flag], environment: Mapping[str, str]) -> int | None:
    for name in ("tensor-split", "device"):
        if name in own:
            parts = [part.strip() for part in re.split(r"[,/]", needed(own[name]))]
            return max(1, sum(bool(part) and part not in ("0", "0.0") for part in parts))
    visible = environment.get("CUDA_VISIBLE_DEVICES", "")
    return len(visible.split(",")) if visible.strip() else None


def _speculative(own: Mapping[str, Flag], found: Read) -> Speculative | None:
    """A draft model where one is named, else the kind that ``--spec-type`` names."""
    draft = own.get("model-draft") or own.get("hf-repo-draft")
    kind = needed(own["spec-type"]).strip().lower() if "spec-type" in own else None
    k = _whole(own, "draft-max") or DRAFTED
    if draft is not None and needed(draft).strip() == "prompt-lookup-decoding":
        draft, kind = None, "ngram"
    if kind in (None, "none") and draft is None:
        if "draft-max" in own:
            keep(found.unread, own["draft-max"])
        return None
    method = SPEC_TYPES.get(kind, kind) if kind not in (None, "none") else "draft_model"
    if method == "ngram":
        k = min(k, _whole(own, "spec-ngram-size-m") or k)
    table: dict[str, Any] = {"method": method, "num_speculative_tokens": k}
    if draft is not None and method != "ngram":
        table["model"] = needed(draft).strip().partition(":")[0]
    return speculative_of(table, "--spec-type")[0]


def _whole(own: Mapping[str, Flag], name: str) -> int | None:
    """A count; 0 and negative numbers leave it to the engine."""
    if name not in own:
        return None
    given = needed(own[name]).strip()
    return None if given == "0" or re.fullmatch(r"-\d+", given) else count(given, own[name].written)
