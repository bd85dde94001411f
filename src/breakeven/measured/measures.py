"""Metric and load of a row: how each arm is loaded, and what is read off it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from breakeven.measured import speeds, words
from breakeven.measured.conditions import room_for, under
from breakeven.measured.pair import Speed
from breakeven.measured.reading import RowReading, refused
from breakeven.measured.words.quantities import dataset
from breakeven.spec.deployment import Deployment
from breakeven.stats import Range, Value

AT_ONCE = 1.38
"""Requests over the mean batch of a run that starts with all of them (lever fit: 1.38 ± 7 %)."""
UNSTATED_CONTEXT = Range(low=0.0, high=2048.0)
"""Context of a single stream of which nothing is said."""
MOST = "max that fits"
"""Of a run that fills the memory."""
PROMPT = "context_or_input_len"
RATES = ("output_throughput", "request_throughput", "total_throughput", "max_throughput", "speed_up")
TIMES = {"tpot": speeds.DECODE, "decode_speed": speeds.DECODE, "ttft": speeds.FIRST_TOKEN, "e2e": speeds.REQUEST}
PROMPTS = ("prefill_throughput", "prefill_time")
Loaded = Callable[[Deployment], Deployment]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How the arms are loaded, and what is read off them; ``name`` is part of the regime."""

    name: str
    speed: Speed
    off: Loaded
    on: Loaded


def load_of(r: RowReading, column: str = "batch_or_concurrency") -> words.Load:
    """How much ran at once."""
    found = words.load(r.text(column))
    r.understood("load", column, found)
    return found


def tokens(r: RowReading, column: str, side: str) -> Value:
    """Tokens of one side, ``input`` or ``output``."""
    found = words.tokens(r.text(column), side)
    _, sentence = words.said("tokens", r.text(column), found)
    r.notes["output_len" if side == "output" else column] = sentence
    return found


def lengths(r: RowReading) -> tuple[Value, Value]:
    """Tokens of prompt and answer; a named set of prompts states both."""
    column = "output_len" if r.text("output_len") else PROMPT
    if column == PROMPT and dataset(r.text(column)) is None:
        raise refused("answer_not_stated")
    return tokens(r, PROMPT, "input"), tokens(r, column, "output")


def measure(r: RowReading, load: words.Load | None = None) -> Measure:
    """What a row measures, by its metric first and its load second."""
    metric = r.metric()
    if metric.kind in PROMPTS:
        alone = _prompt(r, metric)
        return Measure(name="prefill", speed=speeds.PROMPT, off=alone, on=alone)
    load = load or load_of(r)
    if metric.kind == "decode_speed" and load.kind in ("count", "batch"):
        stream = _stream(r, load, metric)
        return Measure(name="decode", speed=speeds.DECODE, off=stream, on=stream)
    prompt, answer = lengths(r)
    name, speed = _read_off(metric, load)
    batched = metric.kind == "batch_latency"
    if name == "at once":
        r.assumed("mean_batch", factor=AT_ONCE)
    off, on = (
        _loaded("batch" if batched and kind == "count" else kind, count, prompt, answer)
        for kind, count in ((load.kind, load.off), (load.on_kind or load.kind, load.on))
    )
    return Measure(name=name, speed=speed, off=off, on=on)


def _read_off(metric: words.Metric, load: words.Load) -> tuple[str, Speed]:
    """Name and speed of a metric under a load."""
    if metric.kind == "batch_latency" or "batch" in (load.kind, load.on_kind):
        return "static", speeds.STATIC
    if metric.kind in TIMES:
        if load.kind in ("most", "at_once", "requests"):
            raise refused("batch_not_known", metric=metric.kind)
        return metric.kind, TIMES[metric.kind]
    if metric.kind not in RATES:
        raise refused("metric_not_predicted", metric=metric.kind)
    if load.kind == "rate":
        return "reached", speeds.REQUEST_RATE
    if metric.kind == "total_throughput" and load.on == 1.0:
        return "one request", speeds.REQUEST
    names = {"at_once": "at once", "requests": "at once", "most": MOST}
    return names.get(load.on_kind or load.kind, "served"), speeds.THROUGHPUT


def _loaded(kind: str, count: float | None, prompt: Value, answer: Value) -> Loaded:
    if kind == "most":
        return lambda d: as_many_as_fit(d, prompt, answer)
    if count is None:
        raise refused("load_without_number")
    if kind in ("at_once", "requests"):
        return lambda d: at_once(d, count, prompt, answer)
    if kind == "batch":
        return lambda d: static(d, count, prompt, answer)
    field = "request_rate" if kind == "rate" else "concurrency"
    return lambda d: under(d, **{field: count}, input_tokens=prompt, output_tokens=answer)


def _prompt(r: RowReading, metric: words.Metric) -> Loaded:
    """One prompt at a time, and no answer to speak of."""
    asked: Value = float(metric.tokens) if metric.tokens and not r.stated(PROMPT) else tokens(r, PROMPT, "input")
    return lambda d: under(d, concurrency=1.0, input_tokens=asked, output_tokens=2.0)


def _stream(r: RowReading, load: words.Load, metric: words.Metric) -> Loaded:
    """Sequences decoding together at a mean context: that of the prompt and half of the answer."""
    batch = load.on or 1.0
    context: Value = UNSTATED_CONTEXT
    if r.stated(PROMPT):
        prompt, answer = lengths(r)
        if not isinstance(prompt, float) or not isinstance(answer, float):
            return lambda d: under(d, batch=batch, input_tokens=prompt, output_tokens=answer)
        context = prompt + answer / 2
    else:
        r.assumed("context", low=UNSTATED_CONTEXT.low, high=UNSTATED_CONTEXT.high)
    return lambda d: under(d, batch=batch, context_tokens=context)


def closed(clients: float, prompt: Value, answer: Value) -> Loaded:
    """So many clients that each wait for their answer."""
    return _loaded("clients", clients, prompt, answer)


def at_once(d: Deployment, requests: float, prompt: Value, answer: Value) -> Deployment:
    """All requests sent at the start: a decaying batch, its mean below the pool, never more than fits."""
    one = under(d, batch=1.0, input_tokens=prompt, output_tokens=answer)
    return replace(one, workload=replace(one.workload, batch=max(min(requests / AT_ONCE, room_for(one)), 1.0)))


def as_many_as_fit(d: Deployment, prompt: Value, answer: Value) -> Deployment:
    """The batch that fills the memory."""
    one = under(d, batch=1.0, input_tokens=prompt, output_tokens=answer)
    return replace(one, workload=replace(one.workload, batch=max(float(int(room_for(one))), 1.0)))


def static(d: Deployment, batch: float, prompt: Value, answer: Value) -> Deployment:
    """A batch as it is pinned; where it does not fit, as much of it as does, the rest waiting."""
    one = under(d, batch=1.0, input_tokens=prompt, output_tokens=answer)
    return replace(one, workload=replace(one.workload, batch=max(min(batch, room_for(one)), 1.0)))
