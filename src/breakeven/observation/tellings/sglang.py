"""SGLang: /get_server_info holds its arguments by its own names, /get_model_info the path of the model."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.errors import BreakevenError
from breakeven.observation.telling import Pages, Scalar, Telling, first, kept, listed, model_name, part, said_by, switch, text, whole
from breakeven.origin.sglang_words import QUANTIZATION, ranks_of, speculation_of

INFO, MODEL, MODELS = "/get_server_info", "/get_model_info", "/v1/models"
PATHS = (INFO, MODEL, MODELS)
LABELS = "cache_config_info"
WORDS = {
    "page_size": ("block_size", whole),
    "context_length": ("max_model_len", whole),
    "max_running_requests": ("max_num_seqs", whole),
    "pp_size": ("pipeline_parallel_size", whole),
    "mem_fraction_static": ("gpu_memory_utilization", part),
    "kv_cache_dtype": ("kv_cache_dtype", text),
    "mamba_ssm_dtype": ("mamba_ssm_cache_dtype", text),
}


def read(pages: Pages) -> Telling:
    """What its pages tell; the settled values of the scheduler stand over the arguments."""
    info = pages.object(INFO)
    state = first(listed(info.get("internal_states")))
    given = {**info, **{name: state[name] for name in ("max_running_requests", "max_total_num_tokens") if name in state}}
    settings = kept({name: reader(given.get(word)) for word, (name, reader) in WORDS.items()})
    settings |= _switches(given) | _spread(given)
    quantization = text(given.get("quantization"))
    settings |= kept({"quantization": QUANTIZATION.get(quantization, quantization)})
    label = next((labels for labels in pages.labels if "num_pages" in labels), {})
    settings |= kept({"block_size": whole(label.get("page_size"))}) if "block_size" not in settings else {}
    pages_, size = whole(label.get("num_pages")), whole(label.get("page_size"))
    tokens = whole(given.get("max_total_num_tokens")) or (pages_ * size if pages_ is not None and size is not None else None)
    served = first(listed(pages.object(MODELS).get("data")))
    model = text(info.get("model_path")) or text(pages.object(MODEL).get("model_path")) or text(served.get("root"))
    return Telling(
        version=text(info.get("version")).split("+")[0],
        model=model_name(model),
        settings=settings,
        speculative=_speculative(given, model),
        kv_tokens=tokens,
        sources={**said_by(INFO, (*settings, "version", "kv_tokens")), "model": INFO if info.get("model_path") else MODEL},
    )


def _switches(given: Mapping[str, object]) -> dict[str, Scalar]:
    radix, graphs, chunk = (
        switch(given.get("disable_radix_cache")),
        switch(given.get("disable_cuda_graph")),
        given.get("chunked_prefill_size"),
    )
    found: dict[str, Scalar] = {} if radix is None else {"enable_prefix_caching": not radix}
    found |= {} if graphs is None else {"enforce_eager": graphs}
    size = whole(chunk)
    if size is not None:
        return found | {"enable_chunked_prefill": True, "max_num_batched_tokens": size}
    return found | ({"enable_chunked_prefill": False} if str(chunk) == "-1" else {})


def _spread(given: Mapping[str, object]) -> dict[str, Scalar]:
    """Data-parallel attention splits the devices of tensor parallelism among the ranks."""
    tensor, ranks, experts = (whole(given.get(name)) for name in ("tp_size", "dp_size", "ep_size"))
    if tensor is None:
        return {}
    try:
        dealt = ranks_of(tensor, ranks or 1, experts or 1, attention=switch(given.get("enable_dp_attention")) is True)
    except BreakevenError:
        return {}
    return {"tensor_parallel_size": tensor, **{name: value for name, value in dealt.items() if isinstance(value, (bool, int))}}


def _speculative(given: Mapping[str, object], model: str) -> dict[str, Scalar]:
    algorithm, draft = text(given.get("speculative_algorithm")), text(given.get("speculative_draft_model_path"))
    if not algorithm:
        return {}
    steps, topk, rows = (whole(given.get(f"speculative_{name}")) for name in ("num_steps", "eagle_topk", "num_draft_tokens"))
    try:
        found = speculation_of(algorithm, None if draft in ("", model) else draft, steps, topk, rows)
    except BreakevenError:
        return {}
    if found is None:
        return {}
    counts = {"num_speculative_tokens": found.num_speculative_tokens, "topk": found.topk, "verify_tokens": found.verify_tokens}
    return kept({"method": found.method, "model": found.model, **counts})
