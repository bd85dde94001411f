"""TensorRT-LLM: /v1/models and /version, and the labels of its configuration metrics (model, parallel, speculative, cache)."""

from __future__ import annotations

from breakeven.observation.telling import Pages, Telling, first, kept, listed, model_name, part, said_by, switch, text, whole

MODELS, VERSION = "/v1/models", "/version"
PATHS = (MODELS, VERSION)
LABELS = "config_info"
METHODS = {name: name for name in ("eagle", "eagle3", "mtp", "ngram")} | dict.fromkeys(("draft_target", "drafttarget"), "draft_model")


def read(pages: Pages) -> Telling:
    """What its pages and labels tell."""
    label: dict[str, str] = {}
    for labels in pages.labels:
        label |= labels
    settings = kept(
        {
            "dtype": text(label.get("dtype")).removeprefix("torch."),
            "quantization": text(label.get("quantization")).lower(),
            "max_model_len": whole(label.get("max_model_len")),
            "tensor_parallel_size": whole(label.get("tensor_parallel_size")),
            "pipeline_parallel_size": whole(label.get("pipeline_parallel_size")),
            "block_size": whole(label.get("page_size")),
            "gpu_memory_utilization": part(label.get("free_gpu_memory_fraction")),
            "kv_cache_dtype": text(label.get("cache_dtype")).lower(),
            "enable_prefix_caching": switch(label.get("enable_block_reuse")),
        }
    )
    blocks, size = whole(label.get("num_blocks")), whole(label.get("page_size"))
    served = first(listed(pages.object(MODELS).get("data")))
    return Telling(
        version=text(pages.object(VERSION).get("version")).split("+")[0],
        model=model_name(text(label.get("model")) or text(served.get("root")) or text(served.get("id"))),
        settings=settings,
        speculative=_speculative(label),
        kv_tokens=None if blocks is None or size is None else blocks * size,
        device=text(label.get("gpu_type")),
        devices=whole(label.get("gpu_count")),
        sources={**said_by(LABELS, (*settings, "device", "devices", "model")), **_asked(label)},
    )


def _asked(label: dict[str, str]) -> dict[str, str]:
    return {"version": VERSION} if label.get("model") else {"version": VERSION, "model": MODELS}


def _speculative(label: dict[str, str]) -> dict[str, str | float | int | bool]:
    if switch(label.get("spec_enabled")) is not True:
        return {}
    method = text(label.get("spec_method")).lower().removesuffix("decodingconfig")
    draft = model_name(text(label.get("spec_draft_model")))
    return kept({"method": METHODS.get(method, method), "model": draft, "num_speculative_tokens": whole(label.get("spec_num_tokens"))})
