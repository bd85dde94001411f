"""The evaluator: a deployment becomes an operating point. One physics for every lever, array and solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from breakeven import acceptance, corrected, pools, steady
from breakeven.demand import Demand, context_deviation, demand, tokens_held
from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import Efficiencies, prior, table
from breakeven.hit_settling import settled
from breakeven.ledger import draft
from breakeven.ledger.curves import with_curves
from breakeven.ledger.room import Room, prompt_room_tokens, room
from breakeven.ledger.shard import Shard, shard
from breakeven.ledger.step import StepCost, step_cost
from breakeven.rate_groups import RateGroups, grouped, mixed, varies, within_window
from breakeven.setting import Setting, prompts_of, slowed, steady_at
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import ReuseRates
from breakeven.stats import Array, Flags, median

IN_FLIGHT_STEPS, IN_FLIGHT_SETTLED = 4, 0.005
"""Rounds in which a place and the times it corrects settle, and the change of the times that is let pass."""
TTFT_STEPS = 3
MANY = 128
"""Points from which the groups of a varying rate are solved one by one."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Model-form errors of one arm: factors on the time of a round and of a prompt."""

    step: Array | float = 1.0
    prefill: Array | float = 1.0


@dataclass(frozen=True, kw_only=True)
class Point:
    """An operating point of one replica (rates and throughput: of all replicas), with what it was made of."""

    demand: Demand
    shard: Shard
    efficiencies: Efficiencies
    cost: StepCost
    room: Room
    rows: int
    replicas: int
    tau: Array | float
    cap: Array
    """Most sequences that can run: the smaller of ``max_num_seqs`` and what fits, floored."""
    batch: Array
    saturated: Flags
    step_s: Array
    tpot_s: Array
    ttft_s: Array | None
    e2e_s: Array | None
    wait_s: Array
    request_rate: Array | None
    max_request_rate: Array | None
    throughput: Array
    """Sustainable output tokens a second: λ_max·O (in a closed loop what its clients reach)."""
    capacity: Array
    """Mean sequences the pool holds, all replicas."""
    prefill_share: Array
    prefill_alone_s: Array | float
    interference_s: Array | float
    time_factor: Array | float
    pool: pools.Pool | None
    """The prefill pool, where prompts have devices of their own."""
    prompt_wait_s: Array | float
    """Mean wait of a prompt for a place in the prefill pool, in an open loop."""
    rate_groups: RateGroups | None = None
    """The rates of an open loop one by one, where they vary."""

    @property
    def fitting(self) -> Flags:
        """Whether it can run at all: one mean sequence beside the weights, or the whole of a pinned batch."""
        needed = self.batch if self.demand.mode == "pinned" else float(self.cost.ranks)
        fit = np.asarray(np.asarray(self.room.fits_sequences) >= needed)
        return fit if self.pool is None else fit & self.pool.fits

    @property
    def fits(self) -> bool:
        """Whether it can run, in half of the draws at least."""
        return bool(np.mean(self.fitting) >= 0.5)


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A solved setting: the operating point, the TTFT with its wait, and the most requests a second."""

    found: steady.Steady
    ttft_s: Array | None
    top_rate: Array
    prompt_wait_s: Array | float = 0.0
    rate_groups: RateGroups | None = None


def acceptance_known(d: Deployment) -> bool:
    """Whether the acceptance of the method in force is given; what another method accepts says nothing of it."""
    accepted, speculative = d.workload.acceptance, d.engine.speculative
    return accepted is not None and (speculative is None or accepted.method in (None, draft.method_of(speculative)))


def curve(d: Deployment, context_tokens: Array | float, draws: Draws) -> acceptance.Curve | None:
    """The acceptance curve in force: as given, else the prior of the method and task; None without speculation."""
    speculative = d.engine.speculative
    if speculative is None:
        return None
    method, k = draft.method_of(speculative), speculative.num_speculative_tokens
    if d.workload.acceptance is not None and acceptance_known(d):
        return acceptance.given(d.workload.acceptance, k, float(table("acceptance")[method]["g"]), draws, nodes=speculative.rows - 1)
    tree = acceptance.tree_factor(speculative.topk, speculative.rows)
    return acceptance.prior(method, d.workload.task, context_tokens, k, draws, tree=tree)


def evaluate(d: Deployment, draws: Draws = MEDIAN, *, noise: Noise | None = None, exact: bool = True) -> Point:
    """One operating point; arrays in a field, or draws, give arrays out. ``exact`` False takes the fast form of the open loop."""
    d = _with_hits(d, draws, noise)
    setting = prepare(d, draws, noise or Noise())
    solvers = {"closed": _closed, "pinned": _pinned}
    solver = solvers.get(setting.demand.mode)
    return _point(setting, _open(setting, exact=exact) if solver is None else solver(setting))


def _with_hits(d: Deployment, draws: Draws, noise: Noise | None) -> Deployment:
    """The hit rate that a trace's reuse curve has at the room which running sequences leave to prompts, settled: each sets the other."""
    w, reuse = d.workload, d.workload.reuse
    if reuse is None or not d.engine.enable_prefix_caching:
        return d
    start = np.asarray(0.0 if w.prefix_hit_rate is None else np.median(np.asarray(median(w.prefix_hit_rate))))
    hits = settled(lambda assumed: _hits_found(d, reuse, assumed, draws, noise), start)
    return replace(d, workload=replace(w, prefix_hit_rate=hits, reuse=None))


def _hits_found(d: Deployment, reuse: ReuseRates, hits: Array, draws: Draws, noise: Noise | None) -> Array:
    """The curve's hit rate at the room that a point with these hits leaves to prompts."""
    point = evaluate(replace(d, workload=replace(d.workload, prefix_hit_rate=hits, reuse=None)), draws, noise=noise, exact=False)
    kept = prompt_room_tokens(point.room, point.batch / point.cost.ranks, point.demand.running_prompt_tokens)
    return np.asarray(np.interp(kept, reuse.capacity_tokens, reuse.hit_rates))


def prepare(d: Deployment, draws: Draws, noise: Noise) -> Setting:
    """Costs and caps of a deployment, drawn."""
    e, load, s = prior(d.engine, d.calibration), demand(d, draws), shard(d, draws)
    spec = d.engine.speculative
    rows = spec.rows if spec is not None else 1
    accepted = curve(d, load.context_tokens, draws)
    space = room(d, s, tokens_held(load, d.engine.kv_reserve == "whole"))
    kept = 1.0 + (e.prefix_bookkeeping if d.engine.enable_prefix_caching else 0.0)
    untimed = partial(
        Setting,
        deployment=d,
        demand=load,
        shard=s,
        efficiencies=e,
        cost=priced(d, s, e, draws, load.context_tokens, context_deviation(load, d.workload)),
        room=space,
        rows=rows,
        tau=acceptance.tokens_per_round(accepted, spec.num_speculative_tokens) if accepted is not None and spec is not None else 1.0,
        cap=np.maximum(np.floor(np.minimum(float(d.engine.max_num_seqs * s.layout.ranks), space.fits_sequences)), 1.0),
    )

    def timed(step: Array | float, prefill: Array | float, first_token: Array | float) -> Setting:
        prompts = prompts_of(d, s, e, load, prefill, first_token)
        return untimed(factor=step, prompt_factor=prefill, prompts=prompts, pool=pools.pool(d, s, load, prefill, draws))

    told = corrected.factors(d, e, load, draws, _in_flight(d, load, None if draws.size else lambda: timed(kept, kept, 1.0)))
    return timed(kept * told.step * noise.step, kept * told.step * noise.prefill, told.first_token)


def priced(d: Deployment, s: Shard, e: Efficiencies, draws: Draws, context_tokens: Array | float, deviation: Array | float) -> StepCost:
    """The price of a step at a mean context: the roofline, what a round of speculation adds, and what was measured over it."""
    rows = d.engine.speculative.rows if d.engine.speculative is not None else 1
    own = 0 if d.engine.kv_unified else d.engine.max_num_seqs
    plain = step_cost(s, e, d.engine.name, context_tokens, rows, context_deviation=deviation, own_slots=own)
    return with_curves(draft.with_speculation(plain, d, s, e, context_tokens), d, s, e, draws, context_tokens)


def _in_flight(d: Deployment, load: Demand, uncorrected: Callable[[], Setting] | None) -> Array | float | None:
    """Requests in flight of one replica, by which its own rows correct its times; None where it has none.

    ``uncorrected`` is the median world without those rows, where it is at hand.
    """
    if d.calibration is None or d.calibration.own is None:
        return None
    if load.mode != "open":
        return load.clients if load.mode == "closed" else load.batch
    alone = replace(d, calibration=replace(d.calibration, own=None))
    plain = uncorrected() if uncorrected is not None else prepare(alone, MEDIAN, Noise())
    step_factor = corrected.step_factor(d, load)
    clients: Array = np.asarray(np.exp(d.calibration.own.place.logs[-1, 0]))
    factor: Array | None = None
    # The batch moves with the times that its place corrects; what is asked about is mostly near the last of the rows.
    for _ in range(IN_FLIGHT_STEPS):
        last, factor = factor, np.asarray(step_factor(clients))
        if last is not None and np.all(np.abs(factor - last) <= IN_FLIGHT_SETTLED * last):
            break
        clients = _batch(slowed(plain, factor)) + 1.0
    return clients


def _batch(x: Setting) -> Array:
    """The batch of an open loop by the fast form, and nothing else of it."""
    rate = 0.0 if x.demand.rate is None else x.demand.rate
    return _open(x, exact=False).found.batch if varies(x.deployment.workload.arrivals) else steady_at(x, rate, exact=False)[0].batch


@dataclass(frozen=True, kw_only=True)
class Served:
    """An open loop at one rate or several: TTFT without the waits, and the wait for a place in the prefill pool."""

    found: steady.Steady
    first_token_s: Array
    prompt_wait_s: Array | float


def _open(x: Setting, *, exact: bool) -> Solved:
    """An open loop at its rate, or at each of its rates where they vary."""
    rates, rate = x.deployment.workload.arrivals, 0.0 if x.demand.rate is None else x.demand.rate
    top = steady.max_request_rate(x.step(x.cap), x.tau, x.output, x.cap, x.prompts.interference_s)
    if x.pool is not None:
        top = np.minimum(top, x.pool.max_rate / x.deployment.replicas)
    if rates is None or not varies(rates):
        one = _open_at(x, rate, exact=exact)
        waited = one.first_token_s if x.pool is None else one.first_token_s + one.prompt_wait_s
        return Solved(found=one.found, ttft_s=waited + one.found.wait_s, top_rate=top, prompt_wait_s=one.prompt_wait_s)
    base = np.broadcast_shapes(*(np.shape(value) for value in (rate, top, x.output, x.tau)))
    factors, weights = grouped(rates, len(base))
    if exact and int(np.prod(base)) >= MANY:
        # The busiest group's states are many: each of many draws is summed over its own group's alone.
        each = stacked([_open_at(x, factor * rate, exact=exact) for factor in rates.factors])
    else:
        each = _open_at(x, factors * rate, exact=exact)
    found, ttft, groups = mixed(rates, each.found, rate, top, each.first_token_s, x.output)
    wait = (weights * factors * within_window(np.asarray(each.prompt_wait_s), factors * rate, rates.window_s)).sum(axis=0)
    return Solved(found=found, ttft_s=ttft + wait + found.wait_s, top_rate=top, prompt_wait_s=wait, rate_groups=groups)


def stacked(groups: Sequence[Served]) -> Served:
    """Groups solved one by one as arrays with the groups along a new leading axis."""
    found = {f.name: np.stack([getattr(one.found, f.name) for one in groups]) for f in fields(steady.Steady)}
    waits = [np.broadcast_to(np.asarray(one.prompt_wait_s, dtype=float), one.first_token_s.shape) for one in groups]
    first = np.stack([one.first_token_s for one in groups])
    return Served(found=steady.Steady(**found), first_token_s=first, prompt_wait_s=np.stack(waits))


def _open_at(x: Setting, asked: Array | float, *, exact: bool) -> Served:
    """Poisson arrivals; TTFT by the closed-loop form among the requests an arrival finds, N = λ·(TTFT + D) (Little)."""
    found, rate, limit = steady_at(x, asked, exact=exact)
    decode = np.maximum(x.output - 1, 0.0) * found.tpot_s
    step_s = x.step(found.batch)
    others, ttft = found.batch, np.zeros_like(step_s)
    for _ in range(TTFT_STEPS):
        ttft = x.prompt(step_s, others, decode / (decode + ttft + 1e-12))
        others = np.where(found.saturated, found.batch, found.request_rate * (ttft + decode))
    if x.pool is None:
        return Served(found=found, first_token_s=ttft, prompt_wait_s=0.0)
    over = np.asarray(asked) >= limit
    found = replace(found, saturated=found.saturated | over, wait_s=np.where(over, np.inf, found.wait_s))
    return Served(found=found, first_token_s=ttft, prompt_wait_s=x.pool.wait_s(np.asarray(rate) * x.deployment.replicas))


def _closed(x: Setting) -> Solved:
    """A fixed number of clients; what they reach is what can be sustained."""
    clients = 1.0 if x.demand.clients is None else x.demand.clients
    found, ttft = steady.closed_loop(x.step, x.tau, clients, x.output, x.cap, x.prompts.interference_s, x.prompt)
    return Solved(found=found, ttft_s=ttft + found.wait_s, top_rate=found.request_rate)


def _pinned(x: Setting) -> Solved:
    """b as given: TPOT = t_step(b)/τ; the rate is what that batch sustains with its prompts."""
    batch = np.asarray(x.demand.batch, dtype=float)
    step_s = x.step(batch)
    batch = np.broadcast_to(batch, np.broadcast_shapes(batch.shape, step_s.shape, np.shape(x.tau)))
    found = steady.Steady(
        batch=batch,
        tpot_s=np.asarray(step_s / x.tau),
        wait_s=np.zeros(batch.shape),
        request_rate=steady.max_request_rate(step_s, x.tau, x.output, batch, x.prompts.interference_s),
        saturated=np.zeros(batch.shape, dtype=bool),
    )
    if x.pool is not None:
        found = replace(found, request_rate=np.minimum(found.request_rate, x.pool.max_rate / x.deployment.replicas))
    prompted = x.demand.input_tokens is not None
    ttft = x.prompt(step_s, np.maximum(batch - 1, 0.0), np.ones_like(batch)) if prompted else None
    return Solved(found=found, ttft_s=ttft, top_rate=found.request_rate)


def _point(x: Setting, solved: Solved) -> Point:
    """The point with all that it was made of."""
    found, replicas = solved.found, x.deployment.replicas
    step_s = x.step(found.batch)
    has_output = x.demand.output_tokens is not None
    decode = np.maximum(x.output - 1, 0.0) * found.tpot_s
    tokens = solved.top_rate * x.output if has_output else found.batch * x.tau / step_s
    return Point(
        demand=x.demand,
        shard=x.shard,
        efficiencies=x.efficiencies,
        cost=x.cost,
        room=x.room,
        rows=x.rows,
        replicas=replicas,
        tau=x.tau,
        cap=x.cap,
        batch=found.batch,
        saturated=found.saturated,
        step_s=step_s,
        tpot_s=found.tpot_s,
        ttft_s=solved.ttft_s,
        e2e_s=solved.ttft_s + decode if solved.ttft_s is not None and has_output else None,
        wait_s=found.wait_s,
        request_rate=replicas * found.request_rate if has_output else None,
        max_request_rate=replicas * solved.top_rate if has_output else None,
        throughput=np.asarray(replicas * tokens),
        capacity=np.asarray(replicas * x.room.fits_sequences),
        prefill_share=np.asarray(found.request_rate * x.prompts.interference_s if has_output else np.zeros_like(step_s)),
        prefill_alone_s=x.prompts.alone_s if x.pool is None else x.pool.alone_s,
        interference_s=x.prompts.interference_s,
        time_factor=x.factor,
        pool=x.pool,
        prompt_wait_s=solved.prompt_wait_s,
        rate_groups=solved.rate_groups,
    )
