"""SGLang: ``python -m sglang.launch_server``, ``sglang serve``, or its image. Flags from sglang/srt/server_args.py (0.4 to 0.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from breakeven.origin.engine_fields import kv_cache_dtype, quantization
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
    on,
    read_fields,
    refuse_offload,
    unread_warning,
    with_files,
)
from breakeven.origin.sglang_words import FIELDS, QUANTIZATION, ranks_of, speculation_of
from breakeven.origin.values import count, number
from breakeven.spec.engine import Speculative

IMAGE = re.compile(r"(?!-)(?:[\w.-]+(?::\d+)?/){0,8}sglang[\w./-]*(?::([\w.-]+))?(?:@sha256:\w+)?")
KEPT = re.compile(r"SGLANG_(?!API_KEY)\w+|CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES")
SPECULATIVE = (
    "speculative-algorithm",
    "speculative-draft-model-path",
    "speculative-num-steps",
    "speculative-eagle-topk",
    "speculative-num-draft-tokens",
)
SPELLING = Spelling(
    aliases={
        "model": "model-path",
        "tp": "tp-size",
        "tensor-parallel-size": "tp-size",
        "dp": "dp-size",
        "data-parallel-size": "dp-size",
        "ep": "ep-size",
        "expert-parallel-size": "ep-size",
        "pp": "pp-size",
        "pipeline-parallel-size": "pp-size",
        "speculative-algo": "speculative-algorithm",
        "speculative-draft-model": "speculative-draft-model-path",
        "speculative-draft": "speculative-draft-model-path",
    },
    fields={**{name.replace("_", "-"): field for name, field in FIELDS.items()}, "max-running-requests": "max_num_seqs"},
    own=flag_set(
        """
        model-path config dp-size ep-size chunked-prefill-size max-prefill-tokens kv-cache-dtype quantization cpu-offload-gb
        disable-radix-cache disable-cuda-graph enable-dp-attention
        """
    )
    | frozenset(SPECULATIVE),
    bare=flag_set(
        """
        trust-remote-code enable-metrics disable-radix-cache disable-cuda-graph enable-dp-attention skip-tokenizer-init
        enable-mixed-chunk enable-torch-compile disable-overlap-schedule log-requests enable-cache-report enable-dp-lm-head
        enable-deepep-moe enable-ep-moe enable-eplb enable-hierarchical-cache enable-flashinfer-mla disable-chunked-prefix-cache
        enable-two-batch-overlap enable-multimodal enable-lora disable-custom-all-reduce enable-memory-saver skip-server-warmup
        allow-auto-truncate disable-cuda-graph-padding enable-nccl-nvls enable-symm-mem enable-p2p-check is-embedding
        show-time-cost disable-shared-experts-fusion disable-outlines-disk-cache sleep-on-idle enable-tokenizer-batch-encode
        """
    ),
    harmless=flag_set(
        """
        host port served-model-name api-key admin-api-key trust-remote-code chat-template completion-template tokenizer-path
        tokenizer-mode tokenizer-worker-num skip-tokenizer-init load-format model-loader-extra-config revision download-dir
        random-seed log-level log-level-http log-requests log-requests-level show-time-cost enable-metrics enable-cache-report
        tool-call-parser reasoning-parser watchdog-timeout dist-init-addr dist-timeout nnodes node-rank nccl-init-addr base-gpu-id
        gpu-id-step device grammar-backend sampling-backend stream-interval stream-output decode-log-interval skip-server-warmup
        warmups file-storage-path preferred-sampling-params enable-memory-saver enable-multimodal allow-auto-truncate is-embedding
        json-model-override-args hf-token sleep-on-idle load-watch-interval collect-tokens-histogram bucket-time-to-first-token
        bucket-inter-token-latency disable-custom-all-reduce cpu-offload-gb constrained-json-whitespace-pattern enable-p2p-check
        max-queued-requests schedule-policy max-prefill-tokens disable-outlines-disk-cache
        """
    ),
)


def begins(words: Sequence[str], place: int) -> int:
    """The server's module, its file, or ``sglang serve``."""
    part = words[place]
    if part.split("/")[-1] == "sglang" and words[place + 1 : place + 2] == ["serve"]:
        return 2
    return int(part in ("sglang.launch_server", "sglang_router.launch_server") or part.endswith("sglang/launch_server.py"))


def read(arguments: Sequence[str], environment: Mapping[str, str], version: str | None) -> LaunchSettings:
    """The settings of a command: those of its ``--config`` file, then its flags."""
    model, flags = flags_of(arguments, SPELLING)
    found = read_fields(with_files(flags, "config", SPELLING), SPELLING)
    own = {flag.name: flag for flag in found.rest}
    if "model-path" in own:
        model = model_named(own["model-path"])
    _formats(own, found.settings)
    _switches(own, found.settings)
    _prefill(own, found)
    _parallel(own, found.settings)
    if "cpu-offload-gb" in own:
        if number(needed(own["cpu-offload-gb"]), "--cpu-offload-gb") > 0:
            refuse_offload(own["cpu-offload-gb"])
        keep(found.unread, own["cpu-offload-gb"])
    kept = {name: value for name, value in environment.items() if KEPT.fullmatch(name)}
    found.unread |= {name: value for name, value in kept.items() if name.startswith("SGLANG_")}
    return LaunchSettings(
        engine="sglang",
        version=version,
        model=model,
        settings=found.settings,
        speculative=_speculative(own, model),
        unread=found.unread,
        environment=kept,
        warnings=unread_warning(found.unread, SPELLING),
    )


def _formats(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    if "quantization" in own:
        given = needed(own["quantization"]).strip().lower()
        settings["quantization"] = quantization(QUANTIZATION.get(given, given), own["quantization"].written)
    if "kv-cache-dtype" in own:
        given = needed(own["kv-cache-dtype"]).strip().lower()
        settings["kv_cache_dtype"] = kv_cache_dtype({"bf16": "bfloat16"}.get(given, given), own["kv-cache-dtype"].written)


def _switches(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    if "disable-radix-cache" in own:
        settings["enable_prefix_caching"] = not on(own["disable-radix-cache"])
    if "disable-cuda-graph" in own:
        settings["enforce_eager"] = on(own["disable-cuda-graph"])


def _prefill(own: Mapping[str, Flag], found: Read) -> None:
    """-1 cuts no prompts into chunks: then the budget of a step is ``--max-prefill-tokens``, which chunks leave without effect."""
    chunk, budget = own.get("chunked-prefill-size"), own.get("max-prefill-tokens")
    chunked = chunk is None or needed(chunk).strip() != "-1"
    if chunk is not None:
        found.settings["enable_chunked_prefill"] = chunked
        if chunked:
            found.settings["max_num_batched_tokens"] = count(needed(chunk), chunk.written)
    if budget is not None and chunked:
        keep(found.unread, budget)
    elif budget is not None:
        found.settings["max_num_batched_tokens"] = count(needed(budget), budget.written)


def _parallel(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    """The sizes, and the caps, which ranks of data-parallel attention share: model_runner.py and scheduler.py divide them."""
    ranks, experts = (count(needed(own[name]), own[name].written) if name in own else 1 for name in ("dp-size", "ep-size"))
    attention = "enable-dp-attention" in own and on(own["enable-dp-attention"])
    settings |= ranks_of(count(settings.get("tensor_parallel_size", 1), "--tp-size"), ranks, experts, attention=attention)
    for name in ("max_num_seqs", "max_num_batched_tokens") if attention else ():
        if name in settings:
            settings[name] = max(1, count(settings[name], name) // ranks)


def _speculative(own: Mapping[str, Flag], model: str | None) -> Speculative | None:
    """Speculation by its flags; a draft that is the model itself is its own head."""
    if "speculative-algorithm" not in own:
        return None
    draft = own.get("speculative-draft-model-path")
    counts = (_whole(own, name) for name in ("speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens"))
    return speculation_of(needed(own["speculative-algorithm"]), None if draft is None or draft.value == model else needed(draft), *counts)


def _whole(own: Mapping[str, Flag], name: str) -> int | None:
    return count(needed(own[name]), own[name].written) if name in own else None
