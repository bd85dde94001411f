"""vLLM, and NIM around it: /v1/models, /version, the labels of its cache metric, /server_info in its development mode."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven import registry
from breakeven.errors import BreakevenError
from breakeven.observation.telling import Pages, Scalar, Telling, first, kept, listed, model_name, part, said_by, switch, text, whole

MODELS, VERSION, INFO = "/v1/models", "/version", "/server_info?config_format=json"
METADATA = "/v1/metadata"
PATHS = (MODELS, VERSION, INFO)
OTHERWISE = {VERSION: (METADATA,)}
"""What is asked where a page is not there: NIM has its version in its metadata."""
LABELS = "cache_config_info"
SECTIONS = ("model_config", "parallel_config", "scheduler_config", "cache_config")
WORDS = {
    "tensor_parallel_size": whole,
    "pipeline_parallel_size": whole,
    "data_parallel_size": whole,
    "decode_context_parallel_size": whole,
    "prefill_context_parallel_size": whole,
    "enable_expert_parallel": switch,
    "max_num_seqs": whole,
    "max_num_batched_tokens": whole,
    "max_model_len": whole,
    "quantization": text,
    "block_size": whole,
    "gpu_memory_utilization": part,
    "enable_prefix_caching": switch,
    "enable_chunked_prefill": switch,
    "enforce_eager": switch,
}


def read(pages: Pages) -> Telling:
    """What its pages tell: the model's path rather than the alias it is served by."""
    served = first(listed(pages.object(MODELS).get("data")))
    version, model = text(pages.object(VERSION).get("version")), text(served.get("root")) or text(served.get("id"))
    settings, sources = _settings(pages, served)
    info = _server_info(pages, version)
    metadata = pages.object(METADATA)
    assets = first(listed(metadata.get("modelInfo")))
    model = info.model or model or text(assets.get("modelUrl"))
    tokens, local = _tokens(pages)
    spoken = {"model": INFO if info.model else MODELS, "version": VERSION, "kv_tokens": LABELS}
    return Telling(
        version=(version or text(metadata.get("version"))).split("+")[0],
        model=model_name(model),
        settings={**settings, **info.settings},
        speculative=info.speculative,
        kv_tokens=tokens,
        kv_tokens_local=local,
        sources={**sources, **said_by(INFO.partition("?")[0], info.settings), **spoken},
    )


def _settings(pages: Pages, served: Mapping[str, object]) -> tuple[dict[str, Scalar], dict[str, str]]:
    """What the list of models and the labels say; ``cache_dtype`` is the type of the cache."""
    listed_length = kept({"max_model_len": whole(served.get("max_model_len"))})
    label = _label(pages)
    cached = kept(
        {
            "block_size": whole(label.get("block_size")),
            "kv_cache_dtype": text(label.get("cache_dtype")),
            "gpu_memory_utilization": part(label.get("gpu_memory_utilization")),
            "enable_prefix_caching": switch(label.get("enable_prefix_caching")),
            "data_parallel_size": _ranks(pages),
        }
    )
    return {**listed_length, **cached}, {**said_by(MODELS, listed_length), **said_by(LABELS, cached)}


def _ranks(pages: Pages) -> int | None:
    """Engine cores under data parallelism: each tells of a cache of its own; nothing of one alone, which may be one of many servers."""
    found = {labels["engine"] for labels in pages.labels if "num_gpu_blocks" in labels and "engine" in labels}
    return len(found) if len(found) > 1 else None


def _label(pages: Pages) -> Mapping[str, str]:
    return next((labels for labels in pages.labels if "num_gpu_blocks" in labels), {})


def _tokens(pages: Pages) -> tuple[int | None, bool]:
    """Tokens of a rank's cache, the smallest of several, and whether they are those of one device of a context-parallel group.

    The label's own count of tokens, where it is there, is that of the start-up log; blocks alone are local.
    """
    found: list[tuple[int, bool]] = []
    for labels in pages.labels:
        blocks, block = whole(labels.get("num_gpu_blocks")), whole(labels.get("block_size"))
        counted = whole(labels.get("kv_cache_size_tokens"))
        if blocks is not None and block is not None:
            found.append((counted or blocks * block, counted is None or counted == blocks * block))
    return min(found) if found else (None, False)


def _server_info(pages: Pages, version: str) -> Telling:
    """The whole configuration, as sections or as the line that the start-up log has."""
    config = pages.object(INFO).get("vllm_config")
    if isinstance(config, str):
        return _of_line(f"Initializing a V1 LLM engine (v{version or '0'}) with config: {config}")
    if not isinstance(config, Mapping):
        return Telling()
    flat: dict[str, object] = {}
    for section in SECTIONS:
        flat |= found if isinstance(found := config.get(section), dict) else {}
    settings = kept({name: reader(flat.get(name)) for name, reader in WORDS.items()})
    draft = config.get("speculative_config")
    table = draft if isinstance(draft, Mapping) else {}
    counted = {"num_speculative_tokens": whole(table.get("num_speculative_tokens"))}
    speculative = kept({"method": text(table.get("method")), "model": model_name(text(table.get("model"))), **counted})
    return Telling(model=text(flat.get("model")), settings=settings, speculative=speculative)


def _of_line(line: str) -> Telling:
    try:
        log = registry.module("origin.startup_logs", "vllm").read([line])
    except BreakevenError:
        return Telling()
    settings: dict[str, Scalar] = {name: value for name, value in log.settings.items() if isinstance(value, (str, int, float))}
    speculative = (
        {}
        if log.speculative is None
        else kept(
            {
                "method": log.speculative.method,
                "model": log.speculative.model,
                "num_speculative_tokens": log.speculative.num_speculative_tokens,
            }
        )
    )
    return Telling(model=log.model or "", settings=settings, speculative=speculative)
