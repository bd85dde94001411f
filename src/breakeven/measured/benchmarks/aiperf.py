"""Files of aiperf: ``profile_export_aiperf.json`` and ``.csv`` (aggregates), ``profile_export.jsonl`` (a request a line)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from breakeven.measured.benchmark import Benchmark, Fields, Outcome, Record, at, figure, refused, word
from breakeven.measured.named_metrics import SECONDS, served
from breakeven.measured.served import Served, outcome
from breakeven.measured.sheets import METRIC, metrics_of_table

TIMES = ("time_to_first_token", "inter_token_latency", "request_latency")
NS = 1e-9
CONCURRENCY = ("input_config.loadgen.concurrency", "input_config.concurrency")


def _recognises(first: Fields) -> bool:
    return _is_summary(first) or _is_request(first) or METRIC in first


def _is_summary(f: Fields) -> bool:
    metrics = _metrics(f)
    named = "aiperf_version" in f or "was_cancelled" in f or isinstance(at(f, "input_config.loadgen"), Mapping)
    return named and any(isinstance(metrics.get(name), Mapping) for name in TIMES)


def _is_request(f: Fields) -> bool:
    return "metrics" in f and at(f, "metadata.request_start_ns") is not None


def _metrics(f: Fields) -> Fields:
    """The metrics themselves: of older files under ``records``."""
    records = f.get("records")
    return records if isinstance(records, Mapping) else f


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    first = records[0]
    if METRIC in first.fields:
        yield outcome(first, served(metrics_of_table(records)))
        return
    requests = [record for record in records if _is_request(record.fields)]
    if requests:
        yield outcome(first, _of_requests(requests))
    for record in records:
        if _is_summary(record.fields):
            yield outcome(record, _of_summary(record.fields))
        elif not _is_request(record.fields):
            yield refused(record, "other_record")


def _of_summary(f: Fields) -> Served:
    names = at(f, "input_config.endpoint.model_names")
    model = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else word(f, "input_config.model")
    return served(_metrics(f), model=model, concurrency=figure(f, *CONCURRENCY), date=word(f, "start_time"))


def _of_requests(records: Sequence[Record]) -> Served:
    """Means over the requests that were served: each counts once, whatever its length."""
    sound = [one.fields for one in records if not one.fields.get("error") and at(one.fields, "metadata.was_cancelled") is not True]
    starts = [x for f in sound if (x := figure(f, "metadata.request_start_ns")) is not None]
    ends = [x for f in sound if (x := figure(f, "metadata.request_end_ns")) is not None]
    return Served(
        asked=float(len(records)),
        completed=float(len(sound)),
        duration_s=(max(ends) - min(starts)) * NS if starts and ends else None,
        input_tokens=_mean(sound, "input_sequence_length", ()),
        output_tokens=_mean(sound, "output_sequence_length", ()),
        tpot_s=_mean(sound, "inter_token_latency", SECONDS),
        ttft_s=_mean(sound, "time_to_first_token", SECONDS),
        e2e_s=_mean(sound, "request_latency", SECONDS),
    )


def _mean(sound: Sequence[Fields], name: str, units: Mapping[str, float] | tuple[()]) -> float | None:
    found = []
    for f in sound:
        value, unit = figure(f, f"metrics.{name}.value"), at(f, f"metrics.{name}.unit")
        scale = 1.0 if not units else units.get(unit.strip().lower()) if isinstance(unit, str) else None
        if value is not None and scale is not None:
            found.append(value * scale)
    return sum(found) / len(found) if found else None


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
