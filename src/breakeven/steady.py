"""The operating point: where arrivals, caps and step time agree. Numbers in, numbers out; arrays broadcast.

``step`` is a function b → seconds of a step with b sequences. ``interference_s`` is the device time one request's prefill
takes from decoding (ξ·T_mix chunked, T_pf alone). Section numbers are of the theory page "operating point".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from breakeven.stats import Array, Flags

Step = Callable[[Array], Array | float]
DENSE_NODES = 8
NODE_RATIO = 1.15
STRETCH = 1.1
STEEPEST = 0.995
SPREADS = 6.0
"""How far beyond the mean batch states are summed one by one; a geometric tail follows."""
FAST_STEPS = 8
CLOSED_STEPS = 16
IDLE = 1e-9
"""The mean batch of one client that asks for one token: nothing is ever decoded, and batches are compared by their ratios."""


@dataclass(frozen=True, kw_only=True)
class Steady:
    """A solved operating point of one replica."""

    batch: Array
    """Mean sequences decoding together."""
    tpot_s: Array
    wait_s: Array
    """Mean wait for a place among the running (0 for the pinned batch)."""
    request_rate: Array
    """Requests served a second."""
    saturated: Flags
    """Booleans: the queue grows without bound."""


def max_request_rate(
    step_at_cap: Array | float, tau: Array | float, output: Array | float, cap: Array | float, interference_s: Array | float
) -> Array:
    """λ_max = τ·b_cap / (t_step(b_cap)·O + τ·b_cap·ξ·T_mix): the arrivals a full batch keeps up with.

    >>> float(max_request_rate(0.02, 1.0, 200.0, 64.0, 0.0))
    16.0
    """
    return np.asarray(tau * cap / (step_at_cap * output + tau * cap * interference_s))


def states(most: int) -> Array:
    """Batches at which the step time is evaluated: every one to 8, then growing by a seventh."""
    nodes = list(range(1, min(most, DENSE_NODES) + 1))
    while nodes[-1] < most:
        nodes.append(min(most, max(nodes[-1] + 1, int(nodes[-1] * NODE_RATIO))))
    return np.array(nodes, dtype=float)


def _log_steps(step: Step, cap: Array, most: int) -> Array:
    """ln t_step at 1 … most (no further than the cap), straight between nodes: exact where the step grows by so much a sequence."""
    nodes = states(most)
    shape = (-1,) + (1,) * cap.ndim
    times = np.asarray(step(nodes.reshape(shape)), dtype=float)
    times = np.broadcast_to(times, np.broadcast_shapes(times.shape, (len(nodes),) + (1,) * cap.ndim))
    whole = np.arange(1, most + 1, dtype=float)
    if len(nodes) < most:
        right = np.clip(np.searchsorted(nodes, whole), 1, len(nodes) - 1)
        weight = ((whole - nodes[right - 1]) / (nodes[right] - nodes[right - 1])).reshape(shape)
        times = times[right - 1] * (1 - weight) + times[right] * weight
    if float(np.min(cap)) < most:
        times = np.where(whole.reshape(shape) > cap, step(cap), times)
    return np.asarray(np.log(times))


def _looked_at(step: Step, calm: Array, cap: Array) -> int:
    """States to sum over: six spreads above the mean. Where a step grows by ε % for 1 % more sequences, their variance is b/(1 − ε)."""
    here = np.minimum(1 + calm, cap)
    growth = np.log(step(here * STRETCH) / step(here)) / np.log(STRETCH)
    spread = np.sqrt(calm / (1 - np.clip(growth, 0.0, STEEPEST)))
    return int(np.ceil(min(float(np.max(cap)), float(np.max(calm + SPREADS * spread + 30)))))


def open_loop(
    step: Step, tau: Array | float, rate: Array | float, output: Array | float, cap: Array | float, interference_s: Array | float
) -> Steady:
    """Poisson arrivals, by the birth–death form: π_i ∝ Π_{j≤i} λ·O·t_step(j)/(j·τ·(1 − ρ)), ρ = λ·ξ·T_mix.

    Up to the cap sequences decode; beyond it they wait, so the tail is geometric. b = Σ min(i, cap)·π_i, TPOT = b/(λ·O) by
    Little's law, and the wait is the mean queue over λ. λ ≥ λ_max is saturated: then b is the cap and the wait unbounded.
    """
    tau, rate, output, cap, interference_s = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (tau, rate, output, cap, interference_s))
    )
    c = chain(step, tau, rate, output, cap, interference_s)
    batch = ((c.mass * c.running).sum(axis=0) + c.beyond_running) / c.total
    queue = ((c.mass * (c.whole - c.running)).sum(axis=0) + c.beyond_queue) / c.total
    return _finish(step, tau, c.served, output, c.cap, interference_s, c.saturated, np.minimum(batch, c.cap), queue)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The birth–death chain: masses not yet divided by ``total``, of the states 1 to the last looked at and of those beyond."""

    cap: Array
    served: Array
    saturated: Flags
    whole: Array
    """The states, along the leading axis."""
    running: Array
    mass: Array
    idle: Array
    beyond: Array
    beyond_running: Array
    beyond_queue: Array
    total: Array


def chain(step: Step, tau: Array, rate: Array, output: Array, cap: Array, interference_s: Array) -> Chain:
    """The chain of :func:`open_loop`, over arrays of one shape."""
    cap = np.maximum(cap, 1.0)
    limit = max_request_rate(step(cap), tau, output, cap, interference_s)
    fast = fast_open_loop(step, tau, rate, output, cap, interference_s)
    saturated = rate >= limit
    most = _looked_at(step, np.where(saturated, 0.0, fast.batch), cap)
    served = np.minimum(rate, limit)
    log_ratio = _log_steps(step, cap, most) + np.log(served * output / (tau * (1 - served * interference_s)))
    whole = np.arange(1, most + 1, dtype=float).reshape((-1,) + (1,) * log_ratio[0].ndim)
    running = np.minimum(whole, cap)
    log_ratio = log_ratio - np.log(running)
    log_mass = np.cumsum(log_ratio, axis=0)
    top = np.maximum(log_mass.max(axis=0), 0.0)
    mass = np.exp(log_mass - top)
    beyond, beyond_running, beyond_queue = _tail(mass[-1], np.minimum(np.exp(log_ratio[-1]), 1 - 1e-9), float(most), cap)
    return Chain(
        cap=cap,
        served=served,
        saturated=saturated,
        whole=whole,
        running=running,
        mass=mass,
        idle=np.exp(-top),
        beyond=beyond,
        beyond_running=beyond_running,
        beyond_queue=beyond_queue,
        total=np.exp(-top) + mass.sum(axis=0) + beyond,
    )


def occupancy(
    step: Step, tau: Array | float, rate: Array, output: Array | float, cap: Array | float, interference_s: Array | float
) -> tuple[Array, Array]:
    """How many decode together: 0 … most, and the share of time of each, shape (most + 1, rates).

    π of :func:`open_loop` by the number running. What lies beyond the last state looked at is counted there: at the cap it runs no more.
    """
    tau, rate, output, cap, interference_s = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(x, dtype=float)) for x in (tau, rate, output, cap, interference_s))
    )
    c = chain(step, tau, rate, output, cap, interference_s)
    last = np.where(c.saturated, c.cap, np.minimum(c.cap, float(c.whole.max()))).astype(np.int64)
    share = np.zeros((int(last.max()) + 1, len(rate)))
    columns = np.arange(len(rate))
    places = np.minimum(c.running, last).astype(np.int64)
    np.add.at(share, (places, np.broadcast_to(columns, places.shape)), c.mass / c.total)
    share[0] += c.idle / c.total
    np.add.at(share, (last, columns), c.beyond / c.total)
    share[:, c.saturated] = 0.0
    share[last[c.saturated], columns[c.saturated]] = 1.0
    return np.arange(len(share), dtype=float), share


def _tail(last: Array, ratio: Array, most: float, cap: Array) -> tuple[Array, Array, Array]:
    """Sums over the states beyond the last, π_j = last·ratio^j: of π, of π·running, and of π·waiting, running = min(most + j, cap)."""
    gap, surplus = np.maximum(cap - most, 0.0), np.maximum(most - cap, 0.0)
    mass = last * ratio / (1 - ratio)
    reaches_cap = ratio**gap
    running = mass * (np.minimum(most, cap) + (1 - reaches_cap) / (1 - ratio))
    return mass, running, mass * (surplus + reaches_cap / (1 - ratio))


def places_wait(busy: Array, places: Array, service_s: Array) -> Array:
    """Mean wait for one of c places, ρ^(√(2(c + 1)) − 1)/(c·(1 − ρ)) service times: exact for one place, an approximation of M/M/c.

    Source: Sakasegawa 1977. Here a step with fewer sequences is quicker, so it errs to the long side.

    >>> round(float(places_wait(np.array(0.5), np.array(1.0), np.array(1.0))), 6)
    1.0
    """
    return np.asarray(busy ** (np.sqrt(2.0 * (places + 1.0)) - 1.0) / (places * (1.0 - busy)) * service_s)


def _finish(
    step: Step, tau: Array, served: Array, output: Array, cap: Array, interference_s: Array, saturated: Flags, batch: Array, queue: Array
) -> Steady:
    full_tpot = step(cap) / (tau * (1 - served * interference_s))
    return Steady(
        batch=np.where(saturated, cap, batch),
        tpot_s=np.where(saturated, full_tpot, batch / (served * output)),
        wait_s=np.where(saturated, np.inf, queue / served),
        request_rate=np.asarray(served),
        saturated=np.asarray(saturated),
    )


def fast_open_loop(
    step: Step, tau: Array | float, rate: Array | float, output: Array | float, cap: Array | float, interference_s: Array | float
) -> Steady:
    """The fast form for maps: TPOT = t_step(1 + b)/(τ·(1 − ρ)) at its fixed point b = λ·O·TPOT (secant steps).

    A request is never alone with less than itself, hence 1 + b. The wait for a place is :func:`places_wait`.
    """
    tau, rate, output, cap, interference_s = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (tau, rate, output, cap, interference_s))
    )
    limit = max_request_rate(step(cap), tau, output, cap, interference_s)
    served = np.minimum(rate, limit)
    factor = served * output / (tau * (1 - served * interference_s))

    def image(b: Array) -> Array:
        return np.asarray(factor * step(np.minimum(1 + b, cap)))

    before = np.zeros_like(factor)
    value_before = image(before)
    b = np.minimum(value_before, cap)
    for _ in range(FAST_STEPS):
        value = image(b)
        moved = b - before
        slope = np.divide(value - value_before, moved, out=np.zeros_like(b), where=np.abs(moved) > 1e-12)
        before, value_before = b, value
        b = np.clip(b + (value - b) / (1 - np.clip(slope, 0.0, 0.98)), 0.0, cap)
    busy = np.minimum(served / limit, 1 - 1e-9)
    wait = places_wait(busy, cap, step(cap) * output / (tau * (1 - served * interference_s)))
    return _finish(step, tau, served, output, cap, interference_s, rate >= limit, b, served * wait)


def closed_loop(
    step: Step,
    tau: Array | float,
    clients: Array | float,
    output: Array | float,
    cap: Array | float,
    interference_s: Array | float,
    prompt: Callable[[Array, Array, Array], Array],
) -> tuple[Steady, Array]:
    """C clients, each with one request in flight: the fixed point of TPOT and TTFT (model.md 7), and the TTFT itself.

    f = D/(D + TTFT), D = (O − 1)·TPOT, C_act = min(C, cap), b = C_act·f;
    D = (O − 1)·t_step(b)/τ + ξ·T_mix·(C_act − 1)·f. ``prompt(step_s, others, f)`` is the TTFT without the wait for a place;
    the wait is (C − C_act)·(D + TTFT)/C_act. Prompts alone never take more than the whole device, X·ξ·T_mix ≤ 1: TTFT is at least
    what C_act prompts take one after the other, less the decoding they overlap.
    """
    tau, clients, output, cap, interference_s = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (tau, clients, output, cap, interference_s))
    )
    active = np.minimum(clients, np.maximum(cap, 1.0))
    others = np.maximum(active - 1, 0.0)
    fraction = np.full(active.shape, 0.8)
    for _ in range(CLOSED_STEPS):
        batch = active * fraction
        step_s = np.asarray(step(batch))
        decode = np.maximum(output - 1, 0.0) * step_s / tau + interference_s * others * fraction
        ttft = np.maximum(prompt(step_s, others, fraction), active * interference_s - decode)
        fraction = 0.5 * fraction + 0.5 * decode / (decode + ttft)
    wait = (clients - active) * (decode + ttft) / active
    latency = decode + ttft
    tpot = np.where(output > 1, decode / np.maximum(output - 1, 1e-9), step_s / tau)
    found = Steady(
        batch=np.maximum(active * decode / latency, IDLE),
        tpot_s=tpot,
        wait_s=wait,
        request_rate=active / latency,
        saturated=np.zeros(active.shape, dtype=bool),
    )
    return found, ttft
