"""Metrics that name their own unit, as aiperf and genai-perf write them: read by the unit, never by the name."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.measured.benchmark import Fields, at, figure
from breakeven.measured.served import Served

SECONDS: Mapping[str, float] = {
    "ns": 1e-9,
    "nanoseconds": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "microseconds": 1e-6,
    "ms": 1e-3,
    "milliseconds": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "seconds": 1.0,
}


def duration(metrics: Fields, name: str) -> float | None:
    """The mean of a time in seconds; without a unit that is known it says nothing."""
    value, unit = figure(metrics, f"{name}.avg"), at(metrics, f"{name}.unit")
    scale = SECONDS.get(unit.strip().lower()) if isinstance(unit, str) else None
    return None if value is None or scale is None or value <= 0 else value * scale


def mean(metrics: Fields, *names: str) -> float | None:
    """The mean of a count."""
    return figure(metrics, *(f"{name}.avg" for name in names))


def served(metrics: Fields, *, model: str = "", concurrency: float | None = None, date: str = "") -> Served:
    """Aggregated metrics as a run; failed requests are those that were counted beside."""
    completed, failed = mean(metrics, "request_count"), mean(metrics, "error_request_count")
    return Served(
        model=model,
        date=date,
        asked=None if completed is None else completed + (failed or 0.0),
        completed=completed,
        duration_s=duration(metrics, "benchmark_duration"),
        concurrency=concurrency,
        request_rate=mean(metrics, "request_throughput"),
        input_tokens=mean(metrics, "input_sequence_length"),
        output_tokens=mean(metrics, "output_sequence_length", "output_token_count"),
        tpot_s=duration(metrics, "inter_token_latency"),
        ttft_s=duration(metrics, "time_to_first_token"),
        e2e_s=duration(metrics, "request_latency"),
    )
