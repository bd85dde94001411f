"""Results of ``python -m sglang.bench_serving --output-file x.jsonl``, a run a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, at, figure, milliseconds, word
from breakeven.measured.served import Served, outcome
from breakeven.messages import Message

INFO = "server_info"


def _recognises(first: Fields) -> bool:
    return {"backend", "dataset_name", "completed", "total_output_tokens_retokenized"} <= first.keys()


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    return (outcome(record, _served(record.fields)) for record in records)


def _served(f: Fields) -> Served:
    """By the server's own count of tokens: cut anew from the text they are others. TPOT, since times between chunks are not of tokens."""
    completed = figure(f, "completed")
    prompt, output = figure(f, "total_input_tokens"), figure(f, "total_output_tokens")
    backend = word(f, "backend").lower()
    return Served(
        model=word(f, f"{INFO}.model_path", "model", "model_id"),
        engine=next((name for name in ("sglang", "vllm", "trt") if backend.startswith(name)), "").replace("trt", "trtllm"),
        version=word(f, f"{INFO}.version"),
        asked=figure(f, "num_prompts"),
        completed=completed,
        duration_s=figure(f, "duration"),
        concurrency=figure(f, "max_concurrency"),
        mean_in_flight=figure(f, "concurrency"),
        request_rate=figure(f, "request_throughput"),
        input_tokens=prompt / completed if prompt and completed else None,
        output_tokens=output / completed if output and completed else None,
        tpot_s=milliseconds(f, "mean_tpot_ms"),
        ttft_s=milliseconds(f, "mean_ttft_ms"),
        e2e_s=milliseconds(f, "mean_e2e_latency_ms"),
        tokens_a_round=figure(f, "accept_length"),
        random_prompts=word(f, "dataset_name").startswith("random"),
        weights=word(f, f"{INFO}.quantization"),
        cache=word(f, f"{INFO}.kv_cache_dtype").replace("auto", ""),
        tensor_parallel=int(figure(f, f"{INFO}.tp_size") or 1),
        pipeline_parallel=int(figure(f, f"{INFO}.pp_size") or 1),
        eager=at(f, f"{INFO}.disable_cuda_graph") is True,
        notes=tuple(_recounted(f, output)),
    )


def _recounted(f: Fields, output: float | None) -> Iterable[Message]:
    """Random tokens are cut otherwise when they are read back."""
    again = figure(f, "total_output_tokens_retokenized")
    if output and again and abs(again - output) > 0.1 * output:
        yield Message("bench.recounted", {"counted": output, "again": again})


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
