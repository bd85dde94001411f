"""A deployment made ready to be solved: what its steps and prompts cost in seconds, its caps, and the batch of an open loop among them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breakeven import pools, steady
from breakeven.demand import Demand, beside, lumps_of
from breakeven.draws import MEDIAN
from breakeven.efficiencies import Efficiencies
from breakeven.ledger import prefill
from breakeven.ledger.room import Room
from breakeven.ledger.shard import Shard
from breakeven.ledger.step import StepCost, step_time
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """What prompts cost, drawn: alone, beside decode steps, and how TTFT departs from its form."""

    alone_s: Array | float
    interference_s: Array | float
    residual: Array | float


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A deployment made ready to be solved: its costs in seconds and its caps."""

    deployment: Deployment
    demand: Demand
    shard: Shard
    efficiencies: Efficiencies
    cost: StepCost
    room: Room
    rows: int
    tau: Array | float
    cap: Array
    factor: Array | float
    """On the roofline's time of a step."""
    prompt_factor: Array | float
    """And on that of a prompt."""
    prompts: Prompts
    pool: pools.Pool | None

    @property
    def output(self) -> Array | float:
        """Output tokens; 1 where the workload states none."""
        return 1.0 if self.demand.output_tokens is None else self.demand.output_tokens

    def step(self, batch: Array) -> Array:
        """Seconds of a step or round."""
        return np.asarray(self.factor * step_time(self.cost, batch))

    def prompt(self, step_s: Array, others: Array, fraction: Array) -> Array:
        """TTFT without the wait for a place: t₀ + t_w·t_step + T_pf·(1 + β·others/2 + μ·others·(1 − f))."""
        if self.pool is not None:
            return self._first_token(self.pool, step_s, others, fraction)
        e, others = self.efficiencies, others / self.cost.ranks
        busy = 1.0 + e.ttft_burst * others / 2 + e.ttft_queue * others * (1.0 - fraction)
        return np.asarray(self.prompts.residual * (e.ttft_start_s + e.ttft_steps * step_s + self.prompts.alone_s * busy))

    def _first_token(self, pool: pools.Pool, step_s: Array, others: Array, fraction: Array) -> Array:
        """TTFT over two pools: t₀ + T_pf + what the transfer does not hide + one step; clients also wait for each other's prompts."""
        served = self.prompts.residual * (self.efficiencies.ttft_start_s + pool.alone_s + pool.exposed_s + step_s)
        if self.demand.mode != "closed":
            return np.asarray(served + 0.0 * others)
        decode = np.maximum(self.output - 1, 0.0) * step_s / self.tau
        waited = served + pool.queue_s(others * (1.0 - fraction), self.deployment.replicas)
        return np.maximum(waited, (others + 1.0) * self.deployment.replicas / pool.max_rate - decode)


def prompts_of(d: Deployment, s: Shard, e: Efficiencies, load: Demand, factor: Array | float, residual: Array | float) -> Prompts:
    """Prompt times at the trace's mean: linear work by E[I], attention by E[I²]."""
    if load.input_tokens is None:
        return Prompts(alone_s=0.0, interference_s=0.0, residual=1.0)
    scale = load.input_tokens / load.attention_input
    shared = factor * scale * prefill.shared_s(s, e, load.new_tokens, load.attention_input)
    alone = factor * prefill.alone_s(s, e, load.new_tokens * scale, load.input_tokens)
    mixes = beside(d)
    ranks = s.layout.ranks
    whole = alone if ranks == 1 else factor * prefill.alone_s(s, e, load.new_tokens * scale, load.input_tokens, ranks)
    taken = e.interference * shared if mixes else whole
    if d.disaggregation is not None:
        taken = 0.0
    return Prompts(alone_s=alone, interference_s=taken / (s.pipeline_parallel * ranks), residual=residual)


def slowed(x: Setting, factor: Array) -> Setting:
    """A setting of the median world with all its times so many times as long."""
    prompts = replace(x.prompts, alone_s=x.prompts.alone_s * factor, interference_s=x.prompts.interference_s * factor)
    pool = pools.pool(x.deployment, x.shard, x.demand, x.prompt_factor * factor, MEDIAN)
    return replace(x, factor=x.factor * factor, prompt_factor=x.prompt_factor * factor, prompts=prompts, pool=pool)


def steady_at(x: Setting, asked: Array | float, *, exact: bool) -> tuple[steady.Steady, Array | float, Array | float]:
    """The batch and its times at a rate, the rate that prompts get through at, and the most that they can."""
    solver = steady.open_loop if exact else steady.fast_open_loop
    limit: Array | float = np.inf if x.pool is None else x.pool.max_rate / x.deployment.replicas
    rate = np.minimum(asked, limit) if x.pool is not None else asked
    # A calibration's candidates may be in the step alone: the solvers take their shape from the cap.
    cap = np.broadcast_to(x.cap, np.broadcast_shapes(np.shape(x.cap), np.shape(x.step(x.cap))))
    return solver(x.step, x.tau, rate, x.output, cap, x.prompts.interference_s, lumps_of(x.deployment)), rate, limit
