"""Metric and load of a row: the workload of an arm, and what is read off it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from breakeven.measured import speeds
from breakeven.measured.conditions import room_for, text, under
from breakeven.measured.pair import Speed
from breakeven.measured.row import Row
from breakeven.measured.strings import number, refused
from breakeven.spec.deployment import Deployment

AT_ONCE = 1.38
"""Requests over the mean batch of a run that starts with all of them (lever fit: 1.38 ± 7 %)."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How an arm is loaded, and what is read off it; ``name`` is part of the regime."""

    name: str
    speed: Speed
    loaded: Callable[[Deployment], Deployment]


def at_once(d: Deployment, requests: float, prompt: float, output: float) -> Deployment:
    """All requests sent at the start: a decaying batch, its mean below the pool, never more than fits."""
    one = under(d, batch=1.0, input_tokens=prompt, output_tokens=output)
    return under(d, batch=max(min(requests / AT_ONCE, room_for(one)), 1.0), input_tokens=prompt, output_tokens=output)


def as_many_as_fit(d: Deployment, prompt: float, output: float) -> Deployment:
    """The batch that fills the memory."""
    one = under(d, batch=1.0, input_tokens=prompt, output_tokens=output)
    return under(d, batch=max(float(int(room_for(one))), 1.0), input_tokens=prompt, output_tokens=output)


def measure(row: Row) -> Measure:
    """What a row measures, by its metric first and its load second."""
    metric, batch, setting = text(row, "metric"), text(row, "batch_or_concurrency"), text(row, "lever_setting")
    prompt, output = text(row, "context_or_input_len"), text(row, "output_len")
    if metric.startswith("decode speed") and "speed-up" not in metric:
        context = number(prompt, "context") + number(output, "output") / 2
        return Measure(name="decode", speed=speeds.DECODE, loaded=lambda d: under(d, batch=1.0, context_tokens=context))
    if metric.startswith("prefill"):
        tokens = number(prompt, "prompt")
        return Measure(
            name="prefill", speed=speeds.PROMPT, loaded=lambda d: under(d, concurrency=1.0, input_tokens=tokens, output_tokens=2.0)
        )
    i, o = number(prompt, "prompt"), number(output or (prompt if prompt.startswith("ShareGPT") else ""), "output")
    if metric.startswith("offline") or "all requests at once" in setting or "all at once" in batch:
        requests = number(batch, "requests")
        return Measure(name="at once", speed=speeds.THROUGHPUT, loaded=lambda d: at_once(d, requests, i, o))
    if metric.startswith("max achievable"):
        return Measure(name="max that fits", speed=speeds.THROUGHPUT, loaded=lambda d: as_many_as_fit(d, i, o))
    if metric.startswith("total throughput"):
        return Measure(name="one request", speed=speeds.REQUEST, loaded=closed(1.0, i, o))
    if metric.startswith("batch latency") or "batch 1 ->" in setting:
        b = number(batch, "batch")
        return Measure(name="static", speed=speeds.STATIC, loaded=lambda d: under(d, batch=b, input_tokens=i, output_tokens=o))
    clients = closed(number(batch, "clients"), i, o)
    if metric in ("median ITL", "mean TPOT", "TPOT"):
        return Measure(name="tpot", speed=speeds.DECODE, loaded=clients)
    if metric == "median TTFT":
        return Measure(name="ttft", speed=speeds.FIRST_TOKEN, loaded=clients)
    if "throughput" in metric or metric == "end-to-end speed-up":
        return Measure(name="served", speed=speeds.THROUGHPUT, loaded=clients)
    raise refused("metric_unknown", written=metric)


def closed(clients: float, prompt: float, output: float) -> Callable[[Deployment], Deployment]:
    """So many clients that each wait for their answer."""
    return lambda d: under(d, concurrency=clients, input_tokens=prompt, output_tokens=output)
