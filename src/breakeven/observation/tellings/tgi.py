"""Text Generation Inference: /info has the model, its type and the limits of the router."""

from __future__ import annotations

from breakeven.observation.telling import Pages, Telling, kept, model_name, said_by, text, whole

INFO = "/info"
PATHS = (INFO,)


def read(pages: Pages) -> Telling:
    """What its page tells; the most tokens of a batch are those that the cache holds."""
    info = pages.object(INFO)
    settings = kept(
        {
            "max_num_seqs": whole(info.get("max_concurrent_requests")),
            "max_model_len": whole(info.get("max_total_tokens")),
            "max_num_batched_tokens": whole(info.get("max_batch_prefill_tokens")),
            "dtype": text(info.get("model_dtype")).removeprefix("torch."),
        }
    )
    return Telling(
        version=text(info.get("version")).removesuffix("-dev0"),
        model=model_name(text(info.get("model_id"))),
        settings=settings,
        kv_tokens=whole(info.get("max_batch_total_tokens")),
        sources=said_by(INFO, (*settings, "version", "model", "kv_tokens")),
    )
