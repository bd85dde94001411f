"""What varies within an observation: levels over time, and latencies by quantiles."""

from __future__ import annotations

from breakeven.observation.histograms import Histogram, quantile
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Levels, Quantiles, Sure

LATENCIES = ("ttft", "itl", "tpot", "e2e", "queue", "prefill_time", "decode_time", "step_time")
FINE = {"kv_usage": 0.01}
"""Steps in which a level's distribution is told, where they are not whole numbers."""


def levels(q: Quantities) -> dict[str, Levels]:
    """Of one replica, the share of the time at each value."""
    found: dict[str, Levels] = {}
    for quantity in ("running", "waiting", "swapped", "kv_usage"):
        level = q.level(quantity, "mean" if quantity in FINE else "sum")
        if level is not None:
            values, shares = level.distribution(FINE.get(quantity, 1.0))
            found[quantity] = Levels(values=values, shares=shares, sure="sampled", metric=level.metrics[0])
    return found


def latencies(q: Quantities) -> dict[str, Quantiles]:
    """Of the window; of all since the engine started where nothing was observed in it."""
    found: dict[str, Quantiles] = {}
    for quantity in LATENCIES:
        window, whole = q.histogram(quantity), q.histogram(quantity, since_start=True)
        if window is not None and window.count > 0.0:
            found[quantity] = _quantiles(q, quantity, window, "counted")
        elif whole is not None and whole.count > 0.0:
            found[quantity] = _quantiles(q, quantity, whole, "since_start")
    return found


def _quantiles(q: Quantities, quantity: str, one: Histogram, sure: Sure) -> Quantiles:
    first = q.series[quantity][0]
    return Quantiles(
        mean=one.mean or 0.0,
        count=one.count,
        p50=quantile(one, 0.5),
        p90=quantile(one, 0.9),
        p95=quantile(one, 0.95),
        p99=quantile(one, 0.99),
        metric=first.alias.family,
        sense=first.alias.sense,
        sure=sure,
    )
