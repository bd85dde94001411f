"""Results of ``vllm bench serve --save-result``, one or several appended (older: ``benchmark_serving.py``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, at, figure, milliseconds, word
from breakeven.measured.served import Served, outcome
from breakeven.messages import Message

PERCENT = 1e-2
"""The acceptance rate is in per cent; the shares by position are not."""
ENGINES = ("vllm", "sglang", "trtllm", "tensorrt-llm", "tgi", "llama.cpp")
"""Kinds of endpoint that name an engine; ``openai`` is a protocol that all of them speak."""


def _recognises(first: Fields) -> bool:
    return {"num_prompts", "completed", "request_throughput"} <= first.keys() and "total_output_tokens_retokenized" not in first


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    return (outcome(record, _served(record.fields)) for record in records)


def _served(f: Fields) -> Served:
    completed = figure(f, "completed")
    prompt, output = figure(f, "total_input_tokens"), figure(f, "total_output_tokens")
    client = word(f, "endpoint_type", "backend").lower()
    rate = figure(f, "spec_decode_acceptance_rate")
    return Served(
        model=word(f, "model_id"),
        engine=client if client in ENGINES else "",
        date=word(f, "date"),
        asked=figure(f, "num_prompts"),
        completed=completed,
        duration_s=figure(f, "duration"),
        concurrency=figure(f, "max_concurrency"),
        request_rate=figure(f, "request_throughput"),
        input_tokens=prompt / completed if prompt and completed else None,
        output_tokens=output / completed if output and completed else None,
        tpot_s=milliseconds(f, "mean_tpot_ms"),
        ttft_s=milliseconds(f, "mean_ttft_ms"),
        e2e_s=milliseconds(f, "mean_e2el_ms"),
        tokens_a_round=figure(f, "spec_decode_acceptance_length"),
        accepted=None if rate is None else rate * PERCENT,
        random_prompts=word(f, "dataset_name", "dataset") == "random",
        notes=tuple(_peak(f)),
    )


def _peak(f: Fields) -> Iterable[Message]:
    """The most requests that were ever in flight together are no load; they can be more than were asked for."""
    peak = figure(f, "max_concurrent_requests")
    if peak is not None and at(f, "max_concurrency") is None:
        yield Message("bench.peak", {"peak": peak})


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
