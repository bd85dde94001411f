"""Results of ``vllm bench throughput --output-json``: all requests at once, and one time for the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, figure, refused


def _recognises(first: Fields) -> bool:
    return {"elapsed_time", "num_requests", "total_num_tokens", "tokens_per_second"} <= first.keys()


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    return (refused(record, "offline_throughput", rate=figure(record.fields, "tokens_per_second") or 0.0) for record in records)


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
