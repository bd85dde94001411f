"""What is offered to the engine: a trace's requests, or made-up ones from the workload's rate or clients and its lengths."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, get_args

import numpy as np

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.simulation.arrays import Floats, Ints, Load, Policy, Requests, Router
from breakeven.simulation.costs import acceptance_of
from breakeven.simulation.prefixes import Prefixes, prefixes
from breakeven.spec.deployment import Deployment
from breakeven.spec.parallel import layout
from breakeven.stats import Range, Spread, Value, log_normal_sigma, median
from breakeven.trace import Trace, arrivals, damage, outputs, request_rate

MADE_UP = 5000
"""Requests that are made up where nobody says how many."""
BYTES_PER_REQUEST = 256.0
"""What a request takes here and in the kernel, its prompt's identities aside; times as percentiles are taken included."""
Word = TypeVar("Word", bound=str)
MOST_REQUESTS = 40_000_000
ROUTERS: tuple[Router, ...] = get_args(Router)
POLICIES: tuple[Policy, ...] = get_args(Policy)
DIGITS = "0123456789"
AFTER_NUMBERS = 10**18


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How the user wants it offered."""

    requests: int | None = None
    """The first so many; of made-up ones, how many there are."""
    speed: float = 1.0
    """Times the arrivals are pressed together by."""
    duration_s: float | None = None
    router: Router = "round_robin"
    policy: Policy = "fcfs"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Offered:
    """Requests and how they come, with what there is to say of both."""

    requests: Requests
    load: Load
    prefixes: Prefixes
    notes: tuple[Message, ...]


def asked(
    *, requests: int | None = None, speed: float = 1.0, duration_s: float | None = None, router: str, policy: str, seed: int = 0
) -> RunSettings:
    """How it is to be offered, checked: what cannot be offered is refused."""
    if requests is not None and requests < 1:
        raise InputError("below_one", path="requests", value=requests)
    if not 0.0 < speed < float("inf"):
        raise InputError("not_positive", path="speed", value=speed)
    if duration_s is not None and not duration_s > 0.0:
        raise InputError("not_positive", path="duration", value=duration_s)
    return RunSettings(
        requests=requests,
        speed=speed,
        duration_s=duration_s,
        router=_one_of("router", router, ROUTERS),
        policy=_one_of("policy", policy, POLICIES),
        seed=seed,
    )


def _one_of(path: str, given: str, known: tuple[Word, ...]) -> Word:
    found = next((word for word in known if word == given), None)
    if found is None:
        raise InputError("not_one_of", path=path, value=given, names=", ".join(known))
    return found


def own_trace(d: Deployment) -> Trace | None:
    """The trace that the deployment was loaded with, read again; one that is no longer there is refused."""
    from breakeven import traces

    if d.workload.trace is None:
        return None
    if not Path(d.workload.trace).exists():
        raise InputError("simulate_trace_gone", path=d.workload.trace)
    return traces.read(Path(d.workload.trace))


def with_replicas(d: Deployment, replicas: int | None) -> Deployment:
    """The deployment with so many copies of its engine."""
    if replicas is None:
        return d
    if replicas < 1:
        raise InputError("below_one", path="replicas", value=replicas)
    return replace(d, hardware=replace(d.hardware, count=replicas * layout(d.model, d.engine).devices))


def offered(d: Deployment, trace: Trace | None, asked: RunSettings) -> Offered:
    """All that the kernel is offered."""
    clients = 0 if d.workload.concurrency is None else round(float(median(d.workload.concurrency)))
    made = _made_up(d, asked) if trace is None else _traced(d, trace, asked)
    requests, notes = made
    if clients and asked.speed != 1.0:
        notes += (Message("simulate.note_speed_unused", {}),)
    if not clients and asked.duration_s is not None:
        requests, cut = _before(requests, asked.duration_s)
        notes += () if trace is None else cut
    kept = prefixes(d, trace, requests)
    load = Load(
        clients=clients,
        replicas=d.replicas,
        router=asked.router,
        acceptance=acceptance_of(d),
        seed=asked.seed,
        until_s=float("inf") if asked.duration_s is None else asked.duration_s,
    )
    return Offered(requests=kept.requests, load=load, prefixes=kept, notes=(*notes, *kept.notes))


def _before(requests: Requests, duration_s: float) -> tuple[Requests, tuple[Message, ...]]:
    """Only what arrives within the duration."""
    kept = int(np.searchsorted(requests.arrival_s, duration_s, side="left"))
    if kept == 0:
        raise InputError("simulate_nothing_arrives", duration=duration_s)
    cut = len(requests.arrival_s) - kept
    return first(requests, kept), (Message("simulate.note_cut", {"duration": duration_s, "requests": cut}),) if cut else ()


def first(requests: Requests, count: int) -> Requests:
    """The first requests."""
    return replace(
        requests,
        arrival_s=requests.arrival_s[:count],
        input_tokens=requests.input_tokens[:count],
        output_tokens=requests.output_tokens[:count],
        priority=None if requests.priority is None else requests.priority[:count],
    )


def _traced(d: Deployment, trace: Trace, asked: RunSettings) -> tuple[Requests, tuple[Message, ...]]:
    """A trace's requests: at its own times, pressed together or stretched; without times at the workload's rate."""
    if d.workload.batch is not None:
        raise InputError("simulate_pinned_trace", path=trace.name)
    count = trace.requests if asked.requests is None else min(asked.requests, trace.requests)
    _check_size(count)
    notes = [*damage(trace), *trace.notes]
    if asked.requests is not None and asked.requests > trace.requests:
        notes.append(Message("simulate.note_fewer", {"asked": asked.requests, "requests": trace.requests}))
    closed = d.workload.concurrency is not None
    if closed:
        times: Floats = np.zeros(count)
        notes.append(Message("simulate.note_times_unused", {}))
    else:
        times, said = _times(d, trace, count, asked)
        notes += said
    generated, said = _outputs(d, trace, count, asked)
    requests = Requests(
        arrival_s=times,
        input_tokens=np.maximum(trace.input_tokens[:count], 1),
        output_tokens=np.maximum(generated, 1),
        priority=_priorities(trace, count) if asked.policy == "priority" else None,
    )
    empty = int(np.count_nonzero((generated < 1) | (trace.input_tokens[:count] < 1)))
    return requests, (*notes, *said, *([Message("simulate.note_empty", {"requests": empty})] if empty else []))


def _times(d: Deployment, trace: Trace, count: int, asked: RunSettings) -> tuple[Floats, list[Message]]:
    """When the requests of an open loop arrive."""
    declared = d.provenance.get("workload.request_rate") == "declared" and d.workload.request_rate is not None
    if trace.arrival_s is None:
        if d.workload.request_rate is None:
            arrivals(trace)
        return _poisson(d, count, asked), [Message("simulate.note_times_made_up", {"rate": _rate(d) * asked.speed})]
    times = trace.arrival_s[:count] / asked.speed
    own = request_rate(trace) if float(trace.arrival_s[-1]) > 0 else 0.0
    if not declared or not own or abs(_rate(d) / own - 1.0) < 1e-9:
        return times, []
    return times * (own / _rate(d)), [Message("simulate.note_stretched", {"own": own, "rate": _rate(d) * asked.speed})]


def _priorities(trace: Trace, count: int) -> Ints:
    """Groups of the trace in the order of their names, numbers among these as numbers; the first goes first."""
    if trace.groups is None:
        raise InputError("simulate_no_priorities", path=trace.name)
    rank = np.empty(len(trace.group_names), dtype=np.int64)
    rank[sorted(range(len(rank)), key=lambda place: _in_order(trace.group_names[place]))] = np.arange(len(rank))
    return np.asarray(rank[trace.groups[:count]])


def _in_order(name: str) -> tuple[tuple[int, str], ...]:
    """A name cut into numbers and what stands between them.

    >>> sorted(["10", "2", "tier-10", "tier-9", "-1"], key=_in_order)
    ['-1', '2', '10', 'tier-9', 'tier-10']
    """
    whole = re.fullmatch(r"-?\d{1,18}", name, re.ASCII)
    if whole:
        return ((int(name), ""),)
    return tuple((int(part), "") if part[0] in DIGITS else (AFTER_NUMBERS, part) for part in re.findall(r"[0-9]{1,18}|[^0-9]+", name))


def _outputs(d: Deployment, trace: Trace, count: int, asked: RunSettings) -> tuple[Ints, list[Message]]:
    """Tokens generated, as the trace has them; one that does not tell them takes the workload's, where that states them."""
    stated = d.workload.output_tokens
    if trace.output_tokens is not None or stated is None:
        return outputs(trace)[:count], []
    said = Message("simulate.note_outputs_made_up", {"output": _how(stated)})
    return _lengths(stated, count, np.random.default_rng([asked.seed, 1])), [said]


def _made_up(d: Deployment, asked: RunSettings) -> tuple[Requests, tuple[Message, ...]]:
    """Poisson arrivals or clients, with lengths as the workload says."""
    w = d.workload
    if w.batch is not None:
        raise InputError("simulate_pinned")
    if w.input_tokens is None or w.output_tokens is None:
        raise InputError("simulate_no_workload")
    if asked.policy == "priority":
        raise InputError("simulate_no_priorities", path="workload")
    if w.request_rate is None and w.concurrency is None:
        raise InputError("simulate_no_workload")
    count = asked.requests or _count(d, asked)
    _check_size(count)
    rng = np.random.default_rng([asked.seed, 1])
    requests = Requests(
        arrival_s=np.zeros(count) if w.concurrency is not None else _poisson(d, count, asked),
        input_tokens=_lengths(w.input_tokens, count, rng),
        output_tokens=_lengths(w.output_tokens, count, rng),
    )
    said = {"requests": count, "input": _how(w.input_tokens), "output": _how(w.output_tokens)}
    if w.concurrency is not None:
        return requests, (Message("simulate.note_made_up_clients", said),)
    return requests, (Message("simulate.note_made_up_rate", {**said, "rate": _rate(d) * asked.speed}),)


def _count(d: Deployment, asked: RunSettings) -> int:
    """Requests made up: as many as a duration may bring, or the usual number."""
    if asked.duration_s is None or d.workload.request_rate is None:
        return MADE_UP
    mean = _rate(d) * asked.speed * asked.duration_s
    return int(mean + 6.0 * mean**0.5 + 10.0)


def _check_size(count: int) -> None:
    if count > MOST_REQUESTS:
        size, most = count * BYTES_PER_REQUEST, MOST_REQUESTS * BYTES_PER_REQUEST
        raise InputError("simulate_too_large", requests=count, size=size, most=most)


def _rate(d: Deployment) -> float:
    """Requests a second of all replicas, in the median world."""
    return 0.0 if d.workload.request_rate is None else float(median(d.workload.request_rate))


def _poisson(d: Deployment, count: int, asked: RunSettings) -> Floats:
    gaps = np.random.default_rng([asked.seed, 0]).exponential(1.0 / (_rate(d) * asked.speed), count)
    times = np.cumsum(gaps)
    return np.asarray(times - times[0])


def _lengths(value: Value, count: int, rng: np.random.Generator) -> Ints:
    """Whole tokens, one at least: constant, log-normal about a mean, or anywhere in a range."""
    if isinstance(value, Spread):
        sigma = log_normal_sigma(value.mean, value.p95)
        drawn = value.mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    elif isinstance(value, Range):
        drawn = rng.uniform(value.low, value.high, count)
    else:
        drawn = np.full(count, float(np.asarray(value)))
    return np.maximum(np.rint(drawn), 1).astype(np.int64)


def _how(value: Value) -> Message:
    """How lengths are spread, in words."""
    if isinstance(value, Spread):
        return Message("simulate.lengths_spread", {"mean": value.mean, "p95": value.p95})
    if isinstance(value, Range):
        return Message("simulate.lengths_range", {"low": value.low, "high": value.high})
    return Message("simulate.lengths_constant", {"mean": float(np.asarray(value))})
