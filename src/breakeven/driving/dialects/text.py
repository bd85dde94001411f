"""``/v1/completions`` with text, for engines that take no token ids there: the usage tells how many tokens it was."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.driving.dialect import Ask, Dialect, Piece, counted, part


def _body(ask: Ask) -> Mapping[str, object]:
    return {
        "model": ask.model or "tgi",
        "prompt": ask.prompt,
        "max_tokens": ask.output_tokens,
        "temperature": 0,
        "seed": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _read(said: Mapping[str, object]) -> Piece:
    usage, choices = part(said, "usage"), said.get("choices")
    return Piece(
        total=counted(usage, "completion_tokens"),
        new=1 if isinstance(choices, list) and choices and not usage else None,
        prompt_tokens=counted(usage, "prompt_tokens"),
        failed="error" in said,
    )


DIALECT = Dialect(name="text", path="/v1/completions", takes_ids=False, body=_body, read=_read)
