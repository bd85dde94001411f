"""Files of genai-perf: ``profile_export_genai_perf.json`` (aggregates); its CSV is read as aiperf's, which it became."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, at, figure, word
from breakeven.measured.named_metrics import served
from breakeven.measured.served import outcome

CONCURRENCY = ("input_config.concurrency", "input_config.perf_analyzer.stimulus.concurrency", "input_config.parsed_args.concurrency")


def _recognises(first: Fields) -> bool:
    config = first.get("input_config")
    summary = isinstance(first.get("request_latency"), Mapping) and isinstance(config, Mapping) and "loadgen" not in config
    return summary and "aiperf_version" not in first and "was_cancelled" not in first


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    for record in records:
        yield outcome(record, served(record.fields, model=_model(record.fields), concurrency=figure(record.fields, *CONCURRENCY)))


def _model(f: Fields) -> str:
    names = at(f, "input_config.model")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0]
    return word(f, "input_config.model", "input_config.model_names")


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
