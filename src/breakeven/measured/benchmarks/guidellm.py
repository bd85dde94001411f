"""Reports of guidellm (``benchmarks.json`` or ``.yaml``): every benchmark of a report is a run.

Its time per output token holds the first token too; the time between tokens is TPOT as everyone else calls it. Its own mean of that over
requests weighs each by its tokens, so the requests' own are averaged where the report keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from breakeven.measured.benchmark import MS, Benchmark, Fields, Outcome, Record, at, figure, milliseconds, refused, word
from breakeven.measured.served import Served, outcome
from breakeven.messages import Message

STREAMS = (
    "config.strategy.streams",
    "config.strategy.max_concurrency",
    "args.strategy.streams",
    "args.strategy.max_concurrency",
    "scheduler.strategy.streams",
    "scheduler.strategy.max_concurrency",
)
KINDS = ("config.strategy.type_", "args.strategy.type_", "scheduler.strategy.type_")
MODELS = ("config.backend.model", "args.backend.model", "worker.backend_model", "benchmarker.backend.model", "config.backend.args.model")
CHUNKED = 1.2
"""Tokens an iteration of the stream from which chunks hold several: the server drafted, or gathered them."""


def _recognises(first: Fields) -> bool:
    if not isinstance(first.get("benchmarks"), list):
        return False
    found = [one for one in first["benchmarks"] if isinstance(one, Mapping)]
    told = at(first, "metadata.guidellm_version") is not None
    return told or any(one.get("type_") == "generative_benchmark" or "time_per_output_token_ms" in _metrics(one) for one in found)


def _metrics(one: Fields) -> Fields:
    found = one.get("metrics")
    return found if isinstance(found, Mapping) else {}


def _read(records: Sequence[Record]) -> Iterable[Outcome]:
    for record in records:
        found = record.fields.get("benchmarks")
        if not isinstance(found, list) or not found:
            yield refused(record, "other_record")
            continue
        for place, one in enumerate(found):
            placed = Record(where=f"{record.where}[{place}]", fields=one if isinstance(one, Mapping) else {})
            yield outcome(placed, _served(placed.fields, record.fields)) if _metrics(placed.fields) else refused(placed, "other_record")


def _served(one: Fields, report: Fields) -> Served:
    metrics = _metrics(one)
    completed, asked = _counts(one)
    tpot, weighted = _tpot(one)
    single = word(one, *KINDS) == "synchronous"
    return Served(
        model=word(one, *MODELS) or word(report, "config.backend.model", "config.model", "args.model"),
        asked=asked,
        completed=completed,
        concurrency=1.0 if single else figure(one, *STREAMS),
        mean_in_flight=_mean(metrics, "request_concurrency"),
        request_rate=_mean(metrics, "requests_per_second"),
        input_tokens=_mean(metrics, "prompt_token_count"),
        output_tokens=_mean(metrics, "output_token_count"),
        tpot_s=tpot,
        ttft_s=milliseconds(metrics, "time_to_first_token_ms.successful.mean"),
        e2e_s=_mean(metrics, "request_latency"),
        tokens_a_round=_mean(metrics, "output_tokens_per_iteration") if _drafts(metrics) else None,
        prefix_hit_rate=_hits(one),
        notes=tuple(_notes(one, weighted)),
    )


def _mean(metrics: Fields, name: str) -> float | None:
    """Of the requests that were served."""
    return figure(metrics, f"{name}.successful.mean")


def _drafts(metrics: Fields) -> bool:
    return (_mean(metrics, "output_tokens_per_iteration") or 1.0) >= CHUNKED


def _counts(one: Fields) -> tuple[float | None, float | None]:
    """Requests served, and those that were begun and ended: requests that the end of the benchmark cut off are none that failed."""
    totals = [figure(one, f"metrics.request_totals.{status}", f"requests.{status}_total") for status in ("successful", "errored")]
    if totals[0] is None:
        totals = [figure(one, f"run_stats.requests_made.{status}") for status in ("successful", "errored")]
    if totals[0] is None:
        return None, None
    return totals[0], totals[0] + (totals[1] or 0.0)


def _tpot(one: Fields) -> tuple[float | None, bool]:
    """Seconds between tokens, and whether that is the report's own mean, which weighs requests by their tokens."""
    found = [x for x in _each(one, "inter_token_latency_ms") if x > 0]
    if found:
        return sum(found) / len(found) * MS, False
    return milliseconds(_metrics(one), "inter_token_latency_ms.successful.mean"), True


def _each(one: Fields, name: str) -> Iterator[float]:
    requests: Any = at(one, "requests.successful")
    for request in requests if isinstance(requests, list) else []:
        value = figure(request, name) if isinstance(request, Mapping) else None
        if value is not None:
            yield value


def _notes(one: Fields, weighted: bool) -> Iterator[Message]:
    if weighted:
        yield Message("bench.weighted", {})
    hits = _hits(one)
    if hits is not None:
        yield Message("bench.cached", {"share": hits})


def _hits(one: Fields) -> float | None:
    """Share of the prompt tokens that the server took from its prefix cache; None where it took none or does not say."""
    hits, prompts = sum(_each(one, "cached_tokens")), sum(_each(one, "prompt_tokens"))
    return hits / prompts if 0 < hits < prompts else None


BENCHMARK = Benchmark(recognises=_recognises, read=_read)
