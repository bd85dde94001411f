"""``/v1/completions`` with token ids and a running usage in every event (vLLM, NIM, trtllm-serve)."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.driving.dialect import Ask, Dialect, Piece, counted, part


def body_of(ask: Ask) -> Mapping[str, object]:
    """A greedy completion of exactly so many tokens."""
    return {
        "model": ask.model,
        "prompt": list(ask.prompt) if isinstance(ask.prompt, tuple) else ask.prompt,
        "max_tokens": ask.output_tokens,
        "min_tokens": ask.output_tokens,
        "temperature": 0,
        "seed": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def read_event(said: Mapping[str, object]) -> Piece:
    """Counts of the usage where the event has one; else an event with a choice is one token."""
    usage = part(said, "usage")
    choices = said.get("choices")
    return Piece(
        total=counted(usage, "completion_tokens"),
        new=1 if isinstance(choices, list) and choices and not usage else None,
        prompt_tokens=counted(usage, "prompt_tokens"),
        cached_tokens=counted(part(usage, "prompt_tokens_details"), "cached_tokens"),
        failed="error" in said,
    )


DIALECT = Dialect(name="completions", path="/v1/completions", takes_ids=True, body=body_of, read=read_event)
