"""A deployment and what is offered to it become a result: the kernel is run once, or once for each combination of levers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven.errors import InputError, NotModelledError
from breakeven.evaluator import evaluate
from breakeven.messages import Message
from breakeven.simulation import kernel
from breakeven.simulation.arrays import REJECTED, Engine, Load, Outcome, Requests
from breakeven.simulation.costs import acceptance_of, costs_of, engine_of
from breakeven.simulation.interrupts import interruptible
from breakeven.simulation.offered import Offered, RunSettings, offered
from breakeven.simulation.pairs import paired
from breakeven.simulation.result import Gained, Paired, Simulation, Summary
from breakeven.simulation.summary import Times, groups_of, series_of, summary_of, times_of
from breakeven.spec.check import has_arrays
from breakeven.spec.deployment import Deployment
from breakeven.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What stays the same whichever levers are on: requests, how they come, how the engine schedules."""

    offered: Offered
    asked: RunSettings
    static_batch: bool


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One deployment on a scene."""

    outcome: Outcome
    times: Times
    summary: Summary
    engine: Engine


def check(d: Deployment) -> None:
    """Refuse what is no one deployment, or none that the simulation knows."""
    if has_arrays(d):
        raise InputError("arrays_only_evaluate")
    if d.disaggregation is not None:
        raise NotModelledError("simulate_two_pools")
    point = evaluate(d, exact=False)
    if float(np.median(point.room.pool_bytes)) <= 0.0 or engine_of(d).blocks < 1:
        raise InputError("simulate_does_not_fit", model=d.model.name, count=d.hardware.count, device=d.hardware.device.title)


def scene(d: Deployment, trace: Trace | None, asked: RunSettings, *, static_batch: bool) -> Scene:
    """The scene of a deployment that has passed its checks."""
    return Scene(offered=offered(d, trace, asked), asked=asked, static_batch=static_batch)


def run(d: Deployment, x: Scene) -> Ran:
    """One run of the kernel, and its figures."""
    requests, load = x.offered.requests, replace(x.offered.load, acceptance=acceptance_of(d))
    own = engine_of(d)
    engine = replace(
        own,
        policy=x.asked.policy,
        static_batch=x.static_batch,
        prefix_cache=own.prefix_cache and requests.chain_ids is not None,
    )
    costs = costs_of(d)
    outcome = interruptible(lambda: kernel.simulate(requests, engine, costs, load))
    times = times_of(requests, outcome, costs.start_s)
    return Ran(outcome=outcome, times=times, summary=summary_of(d, requests, load, outcome, times), engine=engine)


def result(d: Deployment, trace: Trace | None, x: Scene, ran: Ran, warnings: Sequence[Message]) -> Simulation:
    """The result of a run as it stands, without a lattice."""
    return Simulation(
        deployment=d,
        source="" if trace is None else trace.name,
        load=x.offered.load,
        static_batch=x.static_batch,
        policy=x.asked.policy,
        outcome=ran.outcome,
        summary=ran.summary,
        series=series_of(ran.outcome, ran.engine.blocks * x.offered.load.replicas),
        groups=() if trace is None else groups_of(trace, ran.outcome, ran.times),
        lattice=None,
        notes=(*warnings, *x.offered.notes, *rejections(x.offered.requests, ran), *_said(d, ran)),
        seed=x.asked.seed,
    )


def rejections(requests: Requests, ran: Ran) -> tuple[Message, ...]:
    """Why requests were rejected, and how many for which reason."""
    refused, limit = ran.outcome.state == REJECTED, ran.engine.max_model_len
    tokens = (requests.input_tokens + requests.output_tokens)[refused]
    long = int(np.count_nonzero(tokens > limit)) if limit else 0
    large = len(tokens) - long
    pool = ran.engine.blocks * ran.engine.block_tokens
    values = {"long": long, "large": large, "limit": limit, "pool": pool, "most": int(tokens.max(initial=0))}
    key = "both" if long and large else "long" if long else "large"
    return (Message(f"simulate.note_rejected_{key}", values),) if len(tokens) else ()


def _said(d: Deployment, ran: Ran) -> tuple[Message, ...]:
    """What the figures do not say by themselves."""
    held, found = ran.summary.counts, []
    if held.waiting or held.running:
        found.append(Message("simulate.note_unfinished", {"waiting": held.waiting, "running": held.running}))
    if ran.summary.saturated:
        found.append(Message("simulate.note_saturated", {}))
    if len(d.slo.tails) > len(d.slo.tail_limits_s):
        found.append(Message("simulate.note_tails_without_limit", {"keys": ", ".join(d.slo.tails[len(d.slo.tail_limits_s) :])}))
    return tuple(found)


def compared(off: Ran, on: Ran, load: Load) -> Mapping[Gained, Paired]:
    """The gains of one run over another: pair by pair where the same request is done in both."""
    names: tuple[Gained, ...] = ("ttft", "tpot", "e2e")
    found = {name: paired(getattr(off.times, name), getattr(on.times, name)) for name in names}
    if load.clients:
        # Clients begin a request when one ends: the time between beginnings is what a request takes of the whole.
        found["throughput"] = paired(np.diff(off.outcome.arrival_s), np.diff(on.outcome.arrival_s))
    return {name: value for name, value in found.items() if value is not None}
