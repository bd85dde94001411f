"""An outcome in figures: percentiles, promises, rates, the batch, the device's time, energy, and whether the queue grows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from breakeven.simulation.arrays import DONE, REJECTED, RUNNING, WAITING, Floats, Load, Outcome, Requests
from breakeven.simulation.result import (
    TIMES,
    Batch,
    Counts,
    DeviceTime,
    Energy,
    GroupFigures,
    Percentiles,
    Promise,
    Series,
    Summary,
    Time,
)
from breakeven.spec.deployment import Deployment
from breakeven.spec.parallel import layout
from breakeven.trace import Trace

QUANTILES = (5, 25, 50, 75, 95)
TAIL = re.compile(r"(ttft|tpot|e2e|itl)_p(50|90|95|99)_s")
QUARTERS = 4
LEAST_WAITING = 1.0
"""Requests of a replica that wait in the last quarter of the arrivals, where the queue is said to grow."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds by request; NaN where a request has none or is not done."""

    ttft: Floats
    tpot: Floats
    e2e: Floats
    queue: Floats


def times_of(requests: Requests, outcome: Outcome, before_s: float) -> Times:
    """Times of the requests that are done: first − arrival, (last − first)/(O − 1), last − arrival, start − arrival − before.

    ``before_s`` passes on the host before a request reaches the scheduler, however idle the device is.
    """
    done = outcome.state == DONE
    gaps = requests.output_tokens - 1

    def only(values: Floats, where: np.ndarray) -> Floats:
        return np.where(where, values, np.nan)

    return Times(
        ttft=only(outcome.first_s - outcome.arrival_s, done),
        tpot=only((outcome.last_s - outcome.first_s) / np.maximum(gaps, 1), done & (gaps > 0)),
        e2e=only(outcome.last_s - outcome.arrival_s, done),
        queue=only(np.maximum(outcome.start_s - outcome.arrival_s - before_s, 0.0), done),
    )


def percentiles(values: Floats) -> Percentiles | None:
    """Mean, percentiles and the largest of the times there are."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    p50, p90, p95, p99 = (float(value) for value in np.percentile(known, (50, 90, 95, 99)))
    return Percentiles(n=len(known), mean=float(known.mean()), p50=p50, p90=p90, p95=p95, p99=p99, max=float(known.max()))


def groups_of(trace: Trace, outcome: Outcome, times: Times) -> tuple[GroupFigures, ...]:
    """The figures of each group of the trace that was offered, in the order of their names."""
    if trace.groups is None:
        return ()
    offered, found = ~np.isnan(outcome.arrival_s), []
    owner = trace.groups[: len(offered)]
    for place in sorted(np.unique(owner[offered]).tolist(), key=lambda one: trace.group_names[one]):
        here = np.flatnonzero((owner == place) & offered)
        told = {name: percentiles(getattr(times, name)[here]) for name in TIMES}
        known = {name: value for name, value in told.items() if value is not None}
        done = int(np.count_nonzero(outcome.state[here] == DONE))
        found.append(GroupFigures(name=trace.group_names[place], offered=len(here), done=done, times=known))
    return tuple(found)


def counts_of(outcome: Outcome) -> Counts:
    """Where the requests stand; those that no client of a closed loop came to were not offered."""
    held = np.bincount(outcome.state[~np.isnan(outcome.arrival_s)].astype(np.int64), minlength=4)
    return Counts(
        offered=int(held.sum()),
        done=int(held[DONE]),
        waiting=int(held[WAITING]),
        running=int(held[RUNNING]),
        rejected=int(held[REJECTED]),
    )


def promises_of(d: Deployment, times: Mapping[Time, Percentiles]) -> tuple[Promise, ...]:
    """Each key of the objectives against what came out: means against means, tails against tails."""
    asked = [(f"{name}_s", getattr(d.slo, f"{name}_s")) for name in ("ttft", "tpot", "e2e")]
    keyed = [(key, limit) for key, limit in asked if limit is not None]
    keyed += list(zip(d.slo.tails, d.slo.tail_limits_s, strict=False))
    return tuple(_promise(key, limit, times) for key, limit in keyed)


def _promise(key: str, limit: float, times: Mapping[Time, Percentiles]) -> Promise:
    """One key; gaps between single tokens (itl) are not kept, so nothing is told of them."""
    tail = TAIL.fullmatch(key)
    name, place = (tail[1], f"p{tail[2]}") if tail is not None else (key.removesuffix("_s"), "mean")
    held = {str(one): value for one, value in times.items()}.get(name)
    value = None if held is None else float(getattr(held, place))
    return Promise(key=key, limit_s=limit, value_s=value, met=None if value is None else value <= limit)


def good_requests(d: Deployment, times: Times) -> int | None:
    """Requests that are done within every limit of the objectives' means; one without a TPOT keeps that limit."""
    limits = {"ttft": d.slo.ttft_s, "tpot": d.slo.tpot_s, "e2e": d.slo.e2e_s}
    asked = {name: limit for name, limit in limits.items() if limit is not None}
    if not asked:
        return None
    good = ~np.isnan(times.e2e)
    for name, limit in asked.items():
        values = getattr(times, name)
        good &= ~(values > limit)
    return int(np.count_nonzero(good))


def batch_of(outcome: Outcome, replicas: int) -> Batch:
    """The batch over time and as tokens see it."""
    sizes = np.arange(len(outcome.batch_s), dtype=np.float64)
    whole = outcome.end_s * replicas
    # A first token that comes with no sequence decoding beside it is in no batch.
    decoding, tokens = outcome.batch_s[1:], float(outcome.batch_tokens[1:].sum())
    busy = float(decoding.sum())
    reached = np.flatnonzero(decoding > 0.0)
    shares = np.cumsum(decoding) / busy if busy else np.ones(len(decoding))
    quantiles = {f"p{q}": float(np.searchsorted(shares, q / 100 - 1e-12) + 1) if busy else 0.0 for q in QUANTILES}
    return Batch(
        mean=float(sizes @ outcome.batch_s) / whole if whole else 0.0,
        by_tokens=float(sizes @ outcome.batch_tokens) / tokens if tokens else 0.0,
        quantiles=quantiles,
        most=int(reached[-1]) + 1 if len(reached) else 0,
        share_idle=max(0.0, 1.0 - busy / whole) if whole else 1.0,
    )


def device_of(outcome: Outcome, replicas: int) -> DeviceTime:
    """The time of the devices; what is left is idle."""
    busy = outcome.prefill_s + outcome.decode_s + outcome.speculation_s
    return DeviceTime(
        prefill_s=outcome.prefill_s,
        decode_s=outcome.decode_s,
        speculation_s=outcome.speculation_s,
        idle_s=max(0.0, outcome.end_s * replicas - busy),
    )


def energy_of(d: Deployment, device: DeviceTime, tokens: int) -> Energy | None:
    """Busy seconds × devices of a replica × TDP: an upper figure of what work takes, and nothing of what idling does."""
    watts = d.hardware.device.tdp_watts
    if watts is None:
        return None
    joules = watts * layout(d.model, d.engine).devices * (device.prefill_s + device.decode_s + device.speculation_s)
    return Energy(watts=watts, joules=joules, joules_per_output_token=joules / tokens if tokens else None)


def grows(outcome: Outcome, load: Load) -> bool:
    """Whether more wait in each quarter of the arrivals than in the one before, and in the last one at least one a replica."""
    last = float(outcome.arrival_s[-1]) if load.clients == 0 and len(outcome.arrival_s) else 0.0
    bins = int(last / outcome.bin_s) if outcome.bin_s > 0.0 else 0
    waiting = outcome.waiting[:bins]
    if len(waiting) < 2 * QUARTERS:
        return False
    quarters = [float(part.mean()) for part in np.array_split(waiting, QUARTERS)]
    rising = all(later > earlier for earlier, later in pairwise(quarters))
    return rising and quarters[-1] >= LEAST_WAITING * load.replicas and quarters[-1] > 2.0 * quarters[1]


def summary_of(d: Deployment, requests: Requests, load: Load, outcome: Outcome, times: Times) -> Summary:
    """All figures of a run."""
    told = {name: percentiles(getattr(times, name)) for name in TIMES}
    known = {name: value for name, value in told.items() if value is not None}
    device, tokens, good = device_of(outcome, load.replicas), int(outcome.emitted.sum()), good_requests(d, times)
    held, span = counts_of(outcome), outcome.end_s
    return Summary(
        counts=held,
        times=known,
        promises=promises_of(d, known),
        good=good,
        goodput_per_s=None if good is None else _per(good, span),
        requests_per_s=_per(held.done, span),
        output_tokens_per_s=_per(tokens, span),
        batch=batch_of(outcome, load.replicas),
        preemptions=int(outcome.preemptions.sum()),
        preempted=int(np.count_nonzero(outcome.preemptions)),
        lookup_tokens=outcome.lookups,
        hit_tokens=outcome.hits,
        device=device,
        energy=energy_of(d, device, tokens),
        saturated=grows(outcome, load),
        end_s=span,
        steps=outcome.steps,
    )


def _per(count: float, seconds: float) -> float:
    return count / seconds if seconds > 0.0 else 0.0


def series_of(outcome: Outcome, pool_blocks: int) -> Series:
    """What is shown over time; KV as shares of the pool of all replicas."""
    pool = float(max(pool_blocks, 1))
    return Series(
        bin_s=outcome.bin_s,
        running=outcome.running,
        waiting=outcome.waiting,
        kv=outcome.kv_blocks / pool,
        cached=outcome.cached_blocks / pool,
    )
