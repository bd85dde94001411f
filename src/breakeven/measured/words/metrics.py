"""What a row measures, from its metric's words and its unit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from breakeven.measured.words._spelling import plain, refused, stated, table

STATISTICS = re.compile(r"\b(mean|median|average|p50|p90|p95|p99|max|min)\b", re.IGNORECASE)
DEPTH = re.compile(r"\b(?:tg|pp)(\d{1,6})\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A measured quantity."""

    kind: str
    """A table's name in ``catalog/words/metrics.toml``: ``output_throughput``, ``total_throughput``, ``decode_speed``, ``ttft`` …"""
    inverts: bool
    """Whether less is better."""
    statistic: str = ""
    """``mean``, ``median``, ``p99`` …; empty where none is stated."""
    per_device: bool = False
    of_chunks: bool = False
    """Whether it is the time between chunks of a stream (ITL): with drafts a chunk is several tokens, and no time per token."""
    tokens: int | None = None
    """Tokens the name states: of the answer for ``tg1024``, of the prompt for ``pp512``."""


def metric(text: str, unit: str = "") -> Metric:
    """The quantity that a metric's words name; a speed-up is more is better whatever it is a speed-up of."""
    phrase = stated(text, "metric")
    told, units = f" {phrase.lower().replace('_', ' ')} ", plain(unit, "metric").lower()
    known = table("metrics")
    kind = next((name for name, entry in known.items() if any(re.search(pattern, told) for pattern in entry["words"])), None)
    if kind is None:
        raise refused("metric_unknown", field="metric", text=phrase)
    if kind == "output_throughput" and "req/s" in units:
        kind = "request_throughput"
    faster = "speed-up" in told or "speedup" in told
    statistic, depth = STATISTICS.search(told), DEPTH.search(phrase)
    return Metric(
        kind=kind,
        inverts=bool(known[kind]["inverts"]) and not faster,
        statistic=_statistic(statistic[1]) if statistic else "",
        per_device="/gpu" in units or "per gpu" in told,
        of_chunks=re.search(r"\bitl\b|inter-?token", told) is not None,
        tokens=int(depth[1]) if depth else None,
    )


def _statistic(word: str) -> str:
    return {"average": "mean", "p50": "median"}.get(word.lower(), word.lower())
