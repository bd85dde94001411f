"""The effective batch over time on a deployment: window by window with the steady form, and by the simulation where it can run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breakeven.draws import Draws
from breakeven.evaluator import Point, evaluate
from breakeven.ledger.draft import method_of
from breakeven.levers import speculation
from breakeven.messages import Message
from breakeven.occupancy import Occupancy, occupancy_of
from breakeven.origin.arrival_rates import arrival_rates, windows_of
from breakeven.schedule import Stretch, stretches
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array, median
from breakeven.trace import Trace, arrivals, request_rate

DRAWS = 64


@dataclass(frozen=True, kw_only=True)
class Batches:
    """How many sequences decode together on one replica while the trace is served."""

    deployment: Deployment
    point: Point
    """At the mean of the windows, in the median world."""
    occupancy: Occupancy
    """Of the windows, each in its own steady state."""
    simulated: Occupancy | None
    """Of the simulation, which follows every request; None where it cannot run."""
    window_s: float
    batches: Array
    """Mean batch of each window, in order."""
    drafting: str | None
    """The method that ``schedule`` is drawn for; None where nothing can draft."""
    schedule: tuple[Stretch, ...]
    notes: tuple[Message, ...] = ()
    """Requests that the simulation rejects, and why: the windows count them, the deployment would not."""

    @property
    def best(self) -> Occupancy:
        """What is told first: the simulation knows what windows do not."""
        return self.occupancy if self.simulated is None else self.simulated


def batches_of(d: Deployment, trace: Trace, window_s: float | None = None, seed: int = 0) -> Batches:
    """The batch as a distribution, at the trace's own arrivals, and how many tokens to draft at which."""
    d = at_arrivals(d, trace)
    counted = windows_of(arrivals(trace), window_s)
    factors, window = (np.ones(1), float(arrivals(trace)[-1])) if counted is None else counted
    rate = d.workload.request_rate
    each = replace(d, workload=replace(d.workload, request_rate=np.asarray(rate) * factors, arrivals=None))
    method = _drafting(d)
    rates, counts = np.unique(factors.round(4), return_counts=True)
    occupied = occupancy_of(d, rates, counts / counts.sum())
    simulated, notes = _simulated(d, trace, occupied.saturated, seed)
    return Batches(
        deployment=d,
        point=evaluate(d),
        occupancy=occupied,
        simulated=simulated,
        window_s=window,
        batches=np.broadcast_to(evaluate(each).batch, factors.shape),
        drafting=method,
        schedule=() if method is None else _schedule(d, method, seed),
        notes=notes,
    )


def _simulated(d: Deployment, trace: Trace, saturated: float, seed: int) -> tuple[Occupancy | None, tuple[Message, ...]]:
    """The time at every batch as the simulation has it; None for two pools, unknown lengths, more than it takes, and none served."""
    from breakeven.simulation import offered, run

    if d.disaggregation is not None or trace.output_tokens is None or trace.requests > offered.MOST_REQUESTS:
        return None, ()
    x = run.scene(d, trace, offered.asked(router="round_robin", policy="fcfs", seed=seed), static_batch=False)
    ran = run.run(d, x)
    found, notes = ran.outcome, run.rejections(x.offered.requests, ran)
    if not found.batch_s.sum():
        return None, notes
    made = found.batch_tokens * (np.arange(len(found.batch_tokens)) > 0)
    shares = found.batch_s / found.batch_s.sum()
    return Occupancy(shares=shares, token_shares=made / max(float(made.sum()), 1e-300), saturated=saturated), notes


def _drafting(d: Deployment) -> str | None:
    """The method in force, else the first that is to be had."""
    spec = d.engine.speculative
    if spec is not None:
        return method_of(spec)
    return next((speculation.parse(one.setting).method for one in speculation.candidates(d) if one.refused is None), None)


def _schedule(d: Deployment, method: str, seed: int) -> tuple[Stretch, ...]:
    """k by batch, with the lever's own error in its borders."""
    off = speculation.remove(d)
    on = speculation.apply(off, speculation.name_of(method, speculation.best_k(off, method)[0]))
    sigma = speculation.sigma(on, evaluate(off, exact=False), evaluate(on, exact=False))
    return stretches(off, method, Draws(DRAWS, seed), sigma)


def at_arrivals(d: Deployment, trace: Trace) -> Deployment:
    """The deployment in an open loop at the trace's mean rate and its variation, whatever its file says of clients or batches."""
    rate = request_rate(trace) if d.workload.request_rate is None else float(np.asarray(median(d.workload.request_rate)))
    w = replace(d.workload, request_rate=rate, concurrency=None, batch=None, context_tokens=None, arrivals=arrival_rates(arrivals(trace)))
    return replace(d, workload=w)
