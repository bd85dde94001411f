"""llama.cpp's own ``/completion``: token ids, the slot, running counts in every event, ``timings`` in the last."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.driving.dialect import Ask, Dialect, Piece, counted, part


def _body(ask: Ask) -> Mapping[str, object]:
    placed = {} if ask.slot is None else {"id_slot": ask.slot}
    return {
        "prompt": list(ask.prompt) if isinstance(ask.prompt, tuple) else ask.prompt,
        "n_predict": ask.output_tokens,
        "stream": True,
        "temperature": 0,
        "seed": 0,
        "ignore_eos": True,
        "cache_prompt": False,
        **placed,
    }


def _read(said: Mapping[str, object]) -> Piece:
    timings = part(said, "timings")
    tokens = said.get("tokens")
    return Piece(
        total=counted(said, "tokens_predicted"),
        new=len(tokens) if isinstance(tokens, list) and not said.get("stop") else None,
        prompt_tokens=counted(said, "tokens_evaluated"),
        cached_tokens=counted(timings, "cache_n"),
        drafted_tokens=counted(timings, "draft_n"),
        accepted_tokens=counted(timings, "draft_n_accepted"),
        failed="error" in said,
    )


DIALECT = Dialect(name="llamacpp", path="/completion", takes_ids=True, places=True, body=_body, read=_read)
