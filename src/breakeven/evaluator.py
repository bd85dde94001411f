"""The evaluator: a deployment becomes an operating point. One physics for every lever, array and solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from breakeven import acceptance, steady
from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import Efficiencies, prior, table
from breakeven.errors import InputError
from breakeven.ledger import draft, memory, prefill
from breakeven.ledger.shard import Shard, shard
from breakeven.ledger.step import StepCost, step_cost, step_time
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Workload
from breakeven.stats import Array, Flags

Mode = Literal["open", "closed", "pinned"]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Model-form errors of one arm: factors on the time of a round and of a prompt."""

    step: Array | float = 1.0
    prefill: Array | float = 1.0


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The workload as numbers, drawn: lengths, reuse, and what sets the batch."""

    mode: Mode
    input_tokens: Array | float | None
    output_tokens: Array | float | None
    context_tokens: Array | float
    new_tokens: Array | float
    attention_input: Array | float
    """E[I²]/E[I]: the prompt length whose attention per token is the mean one."""
    hit_rate: Array | float
    rate: Array | float | None
    """Requests a second of one replica."""
    clients: Array | float | None
    batch: Array | float | None


@dataclass(frozen=True, kw_only=True)
class Room:
    """The memory ledger of one device, as numbers."""

    weight_bytes: float
    draft_bytes: float
    reserve_bytes: float
    pool_bytes: float
    kv_bytes_per_token: float
    pool_tokens: float
    sequence_bytes: Array | float
    fits_sequences: Array | float

    @property
    def fits(self) -> bool:
        """Whether at least one mean sequence fits beside the weights."""
        return bool(np.all(np.asarray(self.fits_sequences) >= 1.0))


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


def mode_of(workload: Workload) -> Mode:
    """Which of the three ways of arriving the workload states."""
    if workload.batch is not None:
        return "pinned"
    return "closed" if workload.concurrency is not None else "open"


def demand(d: Deployment, draws: Draws) -> Demand:
    """The workload drawn; a trace's moments keep their shape when a mean is moved."""
    w = d.workload
    given = {
        name: draws.value(name, value)
        for name, value in (("input_tokens", w.input_tokens), ("output_tokens", w.output_tokens))
        if value is not None
    }
    prompt, output = given.get("input_tokens"), given.get("output_tokens")
    cross, square, prompt_square = _shape(w)
    if w.batch is not None and w.context_tokens is not None:
        context = draws.value("context_tokens", w.context_tokens)
    elif prompt is not None and output is not None:
        context = prompt * cross + output * square / 2
    else:
        raise InputError("lengths_missing")
    hit = draws.value("prefix_hit_rate", w.prefix_hit_rate) if w.prefix_hit_rate is not None and d.engine.enable_prefix_caching else 0.0
    attention_input = prompt * prompt_square if prompt is not None else 0.0
    new = prefill.new_tokens(attention_input, hit, d.engine.block_size) if prompt is not None else 0.0
    rate = draws.value("request_rate", w.request_rate) / d.replicas if w.request_rate is not None else None
    clients = draws.value("concurrency", w.concurrency) / d.replicas if w.concurrency is not None else None
    batch = draws.value("batch", w.batch) if w.batch is not None else None
    mode = mode_of(w)
    if mode == "open" and rate is None:
        raise InputError("arrivals_missing")
    return Demand(
        mode=mode,
        input_tokens=prompt,
        output_tokens=output,
        context_tokens=context,
        new_tokens=new,
        attention_input=attention_input,
        hit_rate=hit,
        rate=rate,
        clients=clients,
        batch=batch,
    )


def _shape(w: Workload) -> tuple[float, float, float]:
    """E[IO]/(E[I]·E[O]), E[O²]/E[O]² and E[I²]/E[I]²; all 1 for constant lengths."""
    if w.lengths is None:
        return 1.0, 1.0, 1.0
    m = w.lengths
    return (
        m.mean_input_output / (m.mean_input * m.mean_output),
        m.mean_output_squared / m.mean_output**2,
        m.mean_input_squared / m.mean_input**2,
    )


def room(d: Deployment, s: Shard, load: Demand, *, reserves_whole: bool, reserve_bytes: float) -> Room:
    """The memory ledger of one device."""
    engine = d.engine
    shards = engine.tensor_parallel_size * engine.pipeline_parallel_size
    weights = memory.weight_bytes(d.model, s.kernels, shards=shards)
    drafts = draft.draft_weight_bytes(d)
    pool = memory.kv_pool_bytes(d.hardware.device.memory_bytes, engine.gpu_memory_utilization, weights + drafts, reserve_bytes)
    stages = engine.pipeline_parallel_size
    per_token = (memory.kv_bytes_per_token(d.model, s.kv, tensor_parallel=s.tensor_parallel) + _draft_kv_per_token(d, s)) / stages
    blocks = np.floor(pool / (per_token * engine.block_size)) if per_token else 0.0
    held = _tokens_held(load, reserves_whole) + (engine.block_size - 1) / 2
    sequence = (memory.kv_bytes(d.model, s.kv, held, tensor_parallel=s.tensor_parallel) + _draft_kv_per_token(d, s) * held) / stages
    return Room(
        weight_bytes=weights,
        draft_bytes=drafts,
        reserve_bytes=reserve_bytes,
        pool_bytes=pool,
        kv_bytes_per_token=per_token,
        pool_tokens=float(blocks * engine.block_size),
        sequence_bytes=sequence,
        fits_sequences=memory.sequences_that_fit(pool, sequence),
    )


def _tokens_held(load: Demand, reserves_whole: bool) -> Array | float:
    if load.input_tokens is None or load.output_tokens is None:
        return load.context_tokens
    if reserves_whole:
        return load.input_tokens + load.output_tokens
    return load.context_tokens


def _draft_kv_per_token(d: Deployment, s: Shard) -> float:
    """Cache bytes a token adds for the draft: its own layers, or one target layer for a head."""
    speculative = d.engine.speculative
    if speculative is None or draft.method_of(speculative) in draft.LOOKUPS:
        return 0.0
    if draft.method_of(speculative) == "draft_model":
        return memory.kv_bytes_per_token(draft.draft_model(d, speculative), s.kv, tensor_parallel=s.tensor_parallel)
    return memory.kv_bytes_per_token(d.model, s.kv, tensor_parallel=s.tensor_parallel) / d.model.layers


def curve(d: Deployment, context_tokens: Array | float, draws: Draws) -> acceptance.Curve | None:
    """The acceptance curve in force: as given, else the prior of the method and task; None without speculation."""
    speculative = d.engine.speculative
    if speculative is None:
        return None
    method, k = draft.method_of(speculative), speculative.num_speculative_tokens
    if d.workload.acceptance is not None:
        return acceptance.given(d.workload.acceptance, k, float(table("acceptance")[method]["g"]), draws)
    return acceptance.prior(method, d.workload.task, context_tokens, k, draws)


def evaluate(d: Deployment, draws: Draws = MEDIAN, *, noise: Noise | None = None, exact: bool = True) -> Point:
    """One operating point; arrays in a field, or draws, give arrays out. ``exact`` False takes the fast form of the open loop."""
    noise = noise or Noise()
    e = prior(d.engine)
    load, s = demand(d, draws), shard(d, draws)
    rows = d.engine.speculative.rows if d.engine.speculative else 1
    accepted = curve(d, load.context_tokens, draws)
    tau = (
        acceptance.tokens_per_round(accepted, rows - 1 if d.engine.speculative is None else d.engine.speculative.num_speculative_tokens)
        if accepted
        else 1.0
    )
    cost = draft.with_speculation(step_cost(s, e, d.engine.name, load.context_tokens, rows), d, s, e)
    space = room(d, s, load, reserves_whole=d.engine.kv_reserve == "whole", reserve_bytes=d.engine.runtime_reserve_bytes)
    offset = np.exp(e.tpot_between * draws.normal("offset:tpot") + e.tpot_within * draws.normal("within:tpot"))
    kept = 1.0 + (e.prefix_bookkeeping if d.engine.enable_prefix_caching else 0.0)
    factor, prompt_factor = offset * noise.step * kept, offset * noise.prefill * kept
    scale = load.input_tokens / load.attention_input if load.input_tokens is not None else 0.0
    shared = prompt_factor * scale * prefill.shared_s(s, e, load.new_tokens, load.attention_input)
    alone = prompt_factor * prefill.alone_s(s, e, load.new_tokens * scale, load.input_tokens) if load.input_tokens is not None else 0.0
    interference = (e.interference * shared if d.engine.enable_chunked_prefill else alone) / s.pipeline_parallel
    residual = np.exp(
        (e.ttft_between**2 - e.tpot_between**2) ** 0.5 * draws.normal("offset:ttft")
        + (e.ttft_within**2 - e.tpot_within**2) ** 0.5 * draws.normal("within:ttft")
    )
    return _solve(
        d,
        exact=exact,
        load=load,
        s=s,
        e=e,
        cost=cost,
        space=space,
        tau=tau,
        rows=rows,
        factor=factor,
        alone=alone,
        interference=interference,
        residual=residual,
    )


def _solve(
    d: Deployment,
    *,
    exact: bool,
    load: Demand,
    s: Shard,
    e: Efficiencies,
    cost: StepCost,
    space: Room,
    tau: Array | float,
    rows: int,
    factor: Array | float,
    alone: Array | float,
    interference: Array | float,
    residual: Array | float,
) -> Point:
    cap = np.maximum(np.floor(np.minimum(float(d.engine.max_num_seqs), space.fits_sequences)), 1.0)

    def step(b: Array) -> Array:
        return np.asarray(factor * step_time(cost, b))

    def prompt(step_s: Array, others: Array, fraction: Array) -> Array:
        busy = 1.0 + e.ttft_burst * others / 2 + e.ttft_queue * others * (1.0 - fraction)
        return np.asarray(residual * (e.ttft_start_s + e.ttft_steps * step_s + alone * busy))

    output = load.output_tokens if load.output_tokens is not None else 1.0
    ttft: Array | None = None
    if load.mode == "closed":
        clients = load.clients if load.clients is not None else 1.0
        found, ttft = steady.closed_loop(step, tau, clients, output, cap, interference, prompt)
        ttft = ttft + found.wait_s
        top = found.request_rate
    elif load.mode == "pinned":
        found = _pinned(step, tau, load, output, interference)
        ttft = (
            prompt(step(found.batch), np.maximum(found.batch - 1, 0.0), np.ones_like(found.batch))
            if load.input_tokens is not None
            else None
        )
        top = found.request_rate
    else:
        solver = steady.open_loop if exact else steady.fast_open_loop
        found = solver(step, tau, load.rate if load.rate is not None else 0.0, output, cap, interference)
        ttft = _open_ttft(found, step, output, prompt) + found.wait_s
        top = steady.max_request_rate(step(cap), tau, output, cap, interference)
    step_s = step(np.maximum(found.batch, 1e-3))
    has_output = load.output_tokens is not None
    return Point(
        demand=load,
        shard=s,
        efficiencies=e,
        cost=cost,
        room=space,
        rows=rows,
        replicas=d.replicas,
        tau=tau,
        cap=cap,
        batch=found.batch,
        saturated=found.saturated,
        step_s=step_s,
        tpot_s=found.tpot_s,
        ttft_s=ttft,
        e2e_s=ttft + np.maximum(output - 1, 0.0) * found.tpot_s if ttft is not None and has_output else None,
        wait_s=found.wait_s,
        request_rate=d.replicas * found.request_rate if has_output else None,
        max_request_rate=d.replicas * top if has_output else None,
        throughput=np.asarray(d.replicas * (top * output if has_output else found.batch * tau / step_s)),
        capacity=np.asarray(d.replicas * space.fits_sequences),
        prefill_share=np.asarray(found.request_rate * interference if has_output else 0.0 * step_s),
        prefill_alone_s=alone,
        interference_s=interference,
        time_factor=factor,
    )


def _pinned(step: steady.Step, tau: Array | float, load: Demand, output: Array | float, interference: Array | float) -> steady.Steady:
    """b as given: TPOT = t_step(b)/τ; the rate is what that batch sustains with its prompts."""
    batch = np.asarray(load.batch, dtype=float)
    step_s = np.asarray(step(batch))
    batch = np.broadcast_to(batch, np.broadcast_shapes(batch.shape, step_s.shape, np.shape(tau)))
    rate = steady.max_request_rate(step_s, tau, output, batch, interference)
    return steady.Steady(
        batch=batch,
        tpot_s=np.asarray(step_s / tau),
        wait_s=np.zeros(batch.shape),
        request_rate=rate,
        saturated=np.zeros(batch.shape, dtype=bool),
    )


def _open_ttft(found: steady.Steady, step: steady.Step, output: Array | float, prompt: object) -> Array:
    """TTFT before the wait: the closed-loop form among the requests an arrival finds, N = λ·(TTFT + D) (Little)."""
    decode = np.maximum(output - 1, 0.0) * found.tpot_s
    others = found.batch
    step_s = step(np.maximum(found.batch, 1e-3))
    ttft = np.zeros_like(step_s)
    for _ in range(3):
        fraction = decode / (decode + ttft + 1e-12)
        ttft = prompt(step_s, others, fraction)  # type: ignore[operator]
        others = np.where(found.saturated, found.batch, found.request_rate * (ttft + decode))
    return np.asarray(ttft)
