"""Text Generation Inference: its launcher, or its image. Flags from its launcher reference (2.x, 3.x); each has a variable of its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from breakeven.origin.engine_fields import kv_cache_dtype, quantization
from breakeven.origin.launch import (
    Flag,
    LaunchSettings,
    Spelling,
    environment_flags,
    flag_set,
    flags_of,
    model_named,
    needed,
    on,
    read_fields,
    unread_warning,
)
from breakeven.origin.speculative import speculative_of
from breakeven.origin.values import count, utilization
from breakeven.spec.engine import Speculative

IMAGE = re.compile(r"(?!-)(?:[\w.-]+(?::\d+)?/){0,8}text-generation-inference(?::([\w.-]+))?(?:@sha256:\w+)?")
KEPT = re.compile(r"CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|ATTENTION|TGI_WIGGLE_ROOM|USE_FLASH_ATTENTION")
KEPT_OF_ROOM = 0.95
"""Share of the free memory that warm-up takes: TGI_WIGGLE_ROOM of server/text_generation_server/models/globals.py."""
QUANTIZATION: Mapping[str, str] = {
    "marlin": "int4_marlin",
    "bitsandbytes": "bitsandbytes-int8",
    "bitsandbytes-nf4": "nf4",
}
"""TGI's words to those that are known; its bitsandbytes are 8 bit."""
SPELLING = Spelling(
    aliases={"max-input-length": "max-input-tokens", "p": "port", "use-prefix-caching": "prefix-caching"},
    fields={
        "num-shard": "tensor_parallel_size",
        "dtype": "dtype",
        "max-batch-total-tokens": "kv_cache_tokens",
        "max-batch-prefill-tokens": "max_num_batched_tokens",
        "max-total-tokens": "max_model_len",
    },
    own=flag_set(
        """
        model-id quantize kv-cache-dtype max-batch-size max-concurrent-requests speculate cuda-memory-fraction prefix-caching
        cuda-graphs sharded
        """
    ),
    bare=flag_set(
        """
        trust-remote-code json-output disable-custom-kernels disable-grammar-support ngrok env usage-stats-off
        """
    ),
    harmless=flag_set(
        """
        hostname port prometheus-port revision trust-remote-code json-output validation-workers max-best-of max-stop-sequences
        max-top-n-tokens max-input-tokens max-client-batch-size shard-uds-path master-addr master-port huggingface-hub-cache
        weights-cache-override otlp-endpoint otlp-service-name cors-allow-origin api-key tokenizer-config-path
        disable-grammar-support env usage-stats payload-limit watermark-gamma watermark-delta ngrok ngrok-authtoken ngrok-edge
        lora-adapters enable-prefill-logprobs graceful-termination-timeout cuda-graphs sharded waiting-served-ratio
        max-waiting-tokens rope-scaling rope-factor disable-custom-kernels
        """
    ),
)
READ = {*SPELLING.fields, *SPELLING.own, *SPELLING.aliases} - {"p"}
VARIABLES = {name.upper().replace("-", "_"): SPELLING.canonical(name) for name in READ}


def begins(words: Sequence[str], place: int) -> int:
    """The launcher."""
    return int(words[place].split("/")[-1] == "text-generation-launcher")


def read(arguments: Sequence[str], environment: Mapping[str, str], version: str | None) -> LaunchSettings:
    """The settings of a command; its flags win over the variables."""
    stray, flags = flags_of(arguments, SPELLING)
    found = read_fields([*environment_flags(environment, VARIABLES), *flags], SPELLING)
    own = {flag.name: flag for flag in found.rest}
    _formats(own, found.settings)
    _caps(own, found.settings)
    _switches(own, found.settings)
    kept = {name: value for name, value in environment.items() if KEPT.fullmatch(name)}
    return LaunchSettings(
        engine="tgi",
        version=version,
        model=model_named(own["model-id"]) if "model-id" in own else stray,
        settings=found.settings,
        speculative=_speculative(own),
        spread="tensor",
        unread=found.unread,
        environment=kept,
        warnings=unread_warning(found.unread, SPELLING),
    )


def _formats(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    if "quantize" in own:
        given = needed(own["quantize"]).strip().lower()
        settings["quantization"] = quantization(QUANTIZATION.get(given, given), own["quantize"].written)
    if "kv-cache-dtype" in own:
        settings["kv_cache_dtype"] = kv_cache_dtype(needed(own["kv-cache-dtype"]), own["kv-cache-dtype"].written)


def _caps(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    """The router admits so many requests at a time, and a batch may hold fewer."""
    caps = [count(needed(own[name]), own[name].written) for name in ("max-batch-size", "max-concurrent-requests") if name in own]
    if caps:
        settings["max_num_seqs"] = min(caps)
    if "cuda-memory-fraction" in own:
        part = utilization(needed(own["cuda-memory-fraction"]), own["cuda-memory-fraction"].written)
        settings["gpu_memory_utilization"] = KEPT_OF_ROOM * part


def _switches(own: Mapping[str, Flag], settings: dict[str, object]) -> None:
    if "prefix-caching" in own:
        settings["enable_prefix_caching"] = on(own["prefix-caching"])
    if "cuda-graphs" in own:
        settings["enforce_eager"] = needed(own["cuda-graphs"]).strip() == "0"
    if "sharded" in own and not on(own["sharded"]):
        settings["tensor_parallel_size"] = 1


def _speculative(own: Mapping[str, Flag]) -> Speculative | None:
    """So many tokens are looked up; a model with Medusa heads is refused where it is read."""
    if "speculate" not in own or needed(own["speculate"]).strip() == "0":
        return None
    return speculative_of({"method": "ngram", "num_speculative_tokens": needed(own["speculate"])}, "--speculate")[0]
