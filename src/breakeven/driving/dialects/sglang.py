"""SGLang's ``/generate``: token ids, and running counts in ``meta_info``."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.driving.dialect import Ask, Dialect, Piece, counted, part


def _body(ask: Ask) -> Mapping[str, object]:
    prompt = {"input_ids": list(ask.prompt)} if isinstance(ask.prompt, tuple) else {"text": ask.prompt}
    return {
        **prompt,
        "sampling_params": {"max_new_tokens": ask.output_tokens, "temperature": 0, "ignore_eos": True},
        "stream": True,
    }


def _read(said: Mapping[str, object]) -> Piece:
    meta = part(said, "meta_info")
    return Piece(
        total=counted(meta, "completion_tokens"),
        prompt_tokens=counted(meta, "prompt_tokens"),
        cached_tokens=counted(meta, "cached_tokens"),
        failed="error" in said,
    )


DIALECT = Dialect(name="sglang", path="/generate", takes_ids=True, body=_body, read=_read)
