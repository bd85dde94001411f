"""The operating point: where arrivals, caps and step time agree. Numbers in, numbers out; arrays broadcast.

``step`` is a function b → seconds of a step with b sequences. ``interference_s`` is the device time one request's prefill
takes from decoding (ξ·T_mix chunked, T_pf alone). Section numbers are of the theory page "operating point".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from breakeven.lumps import CONSTANT, Lumps, held_back, lump_excess, waiting_excess
from breakeven.stats import Array, Flags

Step = Callable[[Array], Array | float]
DENSE_NODES = 8
NODE_RATIO = 1.15
STRETCH = 1.1
STEEPEST = 0.995
SPREADS = 6.0
"""How far beyond the mean batch states are summed one by one; a geometric tail follows."""
WIDE = 32
"""Points from which it pays to sum over states a block at a time."""
FAST_STEPS = 8
SETTLED = 1e-12
"""Of the batch, the last step of the fast form after which another would move nothing but its last digits."""
CLOSED_STEPS = 16
TINY = 1e-300
"""Running sequences of a chain that has none: its shares are zero then, not unknown."""
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


def _steps(step: Step, cap: Array, most: int) -> Array:
    """t_step at 1 … most, straight between nodes: exact where the step grows by so much a sequence."""
    nodes = states(most)
    shape = (-1,) + (1,) * cap.ndim
    times = np.asarray(step(nodes.reshape(shape)), dtype=float)
    times = np.broadcast_to(times, np.broadcast_shapes(times.shape, (len(nodes),) + (1,) * cap.ndim))
    if len(nodes) == most:
        return times
    whole = np.arange(1, most + 1, dtype=float)
    right = np.clip(np.searchsorted(nodes, whole), 1, len(nodes) - 1)
    weight = ((whole - nodes[right - 1]) / (nodes[right] - nodes[right - 1])).reshape(shape)
    return np.asarray(times[right - 1] * (1 - weight) + times[right] * weight)


def _looked_at(step: Step, calm: Array, cap: Array, excess: Array) -> int:
    """States to sum over: six spreads above the mean. Where a step grows by ε % for 1 % more sequences, their variance is
    b·(1 + excess)/(1 − ε)."""
    here = np.minimum(1 + calm, cap)
    growth = np.log(step(here * STRETCH) / step(here)) / np.log(STRETCH)
    spread = np.sqrt(calm * (1 + excess) / (1 - np.clip(growth, 0.0, STEEPEST)))
    return int(np.ceil(min(float(np.max(cap)), float(np.max(calm + SPREADS * spread + 30)))))


def open_loop(
    step: Step,
    tau: Array | float,
    rate: Array | float,
    output: Array | float,
    cap: Array | float,
    interference_s: Array | float,
    lumps: Lumps = CONSTANT,
) -> Steady:
    """Poisson arrivals whose prompts come in lumps, by levels: π_n = r_n·Π_{j<n} (θ + r_j), r_j = (1 − θ)·λ·O·t_step(j)/(j·τ·(1 − ρ)).

    In decode time lumps arrive whole; θ = x/(1 + x), x of :func:`lump_excess`, is the chance that a lump goes on, and without prompts θ = 0
    is the birth–death form. Up to the cap sequences decode; beyond it they wait, so the tail is geometric. b = Σ min(n, cap)·π_n + what is
    :func:`held_back`, TPOT = b/(λ·O) by Little's law, and the wait is the mean queue over λ, of exponential outputs as
    :func:`waiting_excess` has them. λ ≥ λ_max is saturated: then b is the cap and the wait unbounded.

    >>> step = lambda b: 0.01 + 0.001 * b
    >>> [round(float(open_loop(step, 1.0, 2.0, 100.0, 64.0, prompt_s).tpot_s), 5) for prompt_s in (0.0, 0.1, 0.2)]
    [0.01375, 0.01953, 0.03353]
    """
    tau, rate, output, cap, interference_s = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (tau, rate, output, cap, interference_s))
    )
    c = chain(step, tau, rate, output, cap, interference_s, lumps)
    return _finish(step, tau, c.served, output, c.cap, interference_s, c.saturated, np.minimum(c.batch + c.held, c.cap), c.queue)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The chain of :func:`open_loop` in decode time: shares of the states 0, of 1 to the last looked at, and of those beyond."""

    cap: Array
    served: Array
    saturated: Flags
    mass: Array
    """The states from 1 on along the leading axis; nothing beyond the cap."""
    idle: Array
    beyond: Array
    batch: Array
    queue: Array
    held: Array
    """What the prompts of their own lump add to the batch: nothing for sequences that fill it, since nobody is admitted beside them."""


def chain(step: Step, tau: Array, rate: Array, output: Array, cap: Array, interference_s: Array, lumps: Lumps = CONSTANT) -> Chain:
    """The chain of :func:`open_loop`, over arrays of one shape."""
    cap = np.maximum(cap, 1.0)
    limit = max_request_rate(step(cap), tau, output, cap, interference_s)
    served = np.minimum(rate, limit)
    share = served * interference_s
    excess = lump_excess(share, lumps)
    fast = fast_open_loop(step, tau, rate, output, cap, interference_s, lumps)
    saturated = rate >= limit
    most = _looked_at(step, np.where(saturated, 0.0, fast.batch), cap, excess)
    goes_on = excess / (1 + excess)
    load = served * output * (1 - goes_on) / (tau * (1 - share))
    mass, idle, ratio = _masses(_steps(step, cap, most), load, goes_on, cap)
    reached = np.minimum(cap, float(most))
    last = np.take_along_axis(mass, (reached - 1).astype(np.int64)[None], axis=0)[0]
    beyond, beyond_running, queue = _tail(last, ratio, reached, cap)
    sums = np.array((np.ones(most), np.arange(1.0, most + 1))) @ mass.reshape(most, -1)
    total = idle + sums[0].reshape(cap.shape) + beyond
    running = sums[1].reshape(cap.shape) + beyond_running
    mass /= total
    full = np.where(reached < cap, 0.0, reached * last + beyond_running)
    return Chain(
        cap=cap,
        served=served,
        saturated=saturated,
        mass=mass,
        idle=idle / total,
        beyond=beyond / total,
        batch=running / total,
        queue=queue / total * waiting_excess(share, lumps) / (1 + excess),
        held=held_back(share, lumps) * (1 - full / np.maximum(running, TINY)),
    )


def _running_sums(x: Array) -> Array:
    """Running sums down the rows, in place: in blocks of √n rows, then block by block (``np.cumsum`` of wide rows takes much longer)."""
    if x[0].size < WIDE:
        return np.asarray(np.cumsum(x, axis=0, out=x))
    size = max(int(np.sqrt(len(x))), 1)
    for first in range(1, size):
        here = x[first::size]
        here += x[first - 1 :: size][: len(here)]
    for first in range(size, len(x), size):
        x[first : first + size] += x[first - 1]
    return x


def _masses(times: Array, load: Array, goes_on: Array, cap: Array) -> tuple[Array, Array, Array]:
    """Masses of 1 … most (none beyond the cap) and of 0, and the ratio of the states after the last, or after the cap."""
    shape = (-1,) + (1,) * cap.ndim
    whole = np.arange(1.0, len(times) + 1).reshape(shape)
    ratio = times * (load / whole)
    growth = ratio + goes_on
    logs = _running_sums(np.log(growth))
    if float(np.min(cap)) < len(times):
        np.copyto(logs, -np.inf, where=whole > cap)
    top = np.maximum(logs.max(axis=0), 0.0)
    logs -= top
    mass = np.exp(logs, out=logs)
    if np.any(goes_on):
        mass *= np.divide(ratio, growth, out=ratio)
    place = (np.minimum(cap, float(len(times))) - 1).astype(np.int64)[None]
    return mass, np.exp(-top), np.minimum(np.take_along_axis(growth, place, axis=0)[0], 1 - 1e-9)


def occupancy(
    step: Step,
    tau: Array | float,
    rate: Array,
    output: Array | float,
    cap: Array | float,
    interference_s: Array | float,
    lumps: Lumps = CONSTANT,
) -> tuple[Array, Array]:
    """How many decode together: 0 … most, and the share of time of each, shape (most + 1, rates).

    π of :func:`open_loop` by the number running. What lies beyond the last state looked at is counted there: at the cap it runs no more.
    Prompts stop the clock of π when more decode than on average: states weigh 1 + (n − b)·held/variance, which has the operating point's b.
    """
    tau, rate, output, cap, interference_s = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(x, dtype=float)) for x in (tau, rate, output, cap, interference_s))
    )
    c = chain(step, tau, rate, output, cap, interference_s, lumps)
    most = len(c.mass)
    last = np.where(c.saturated, c.cap, np.minimum(c.cap, float(most))).astype(np.int64)
    share = np.zeros((int(max(last.max(), most)) + 1, len(rate)))
    share[0], share[1 : most + 1] = c.idle, c.mass
    columns = np.arange(len(rate))
    np.add.at(share, (last, columns), c.beyond)
    counts = np.arange(len(share), dtype=float)[:, None]
    mean = (counts * share).sum(axis=0)
    variance = (counts**2 * share).sum(axis=0) - mean**2
    share *= np.maximum(1 + (counts - mean) * (c.held / np.maximum(variance, IDLE)), 0.0)
    share[:, c.saturated] = 0.0
    share[last[c.saturated], columns[c.saturated]] = 1.0
    return counts[:, 0], share / share.sum(axis=0)


def _tail(last: Array, ratio: Array, reached: Array, cap: Array) -> tuple[Array, Array, Array]:
    """Sums over the states beyond the last, π_j = last·ratio^j: of π, of π·running, and of π·waiting, running = min(reached + j, cap)."""
    gap = cap - reached
    mass = last * ratio / (1 - ratio)
    reaches_cap = ratio**gap
    running = mass * (reached + (1 - reaches_cap) / (1 - ratio))
    return mass, running, mass * reaches_cap / (1 - ratio)


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
    step: Step,
    tau: Array | float,
    rate: Array | float,
    output: Array | float,
    cap: Array | float,
    interference_s: Array | float,
    lumps: Lumps = CONSTANT,
) -> Steady:
    """The fast form for maps: b = λ·O·t_step(1 + x + b)/(τ·(1 − ρ)) by secant steps, and 1 − b/cap of what is held back.

    A request is never alone with less than itself and, over its life, x others of its lump (:func:`lump_excess`): the batch as a sequence
    sees it. The wait for a place is :func:`places_wait`, as many times as long as lumps make it (:func:`waiting_excess`).
    """
    tau, rate, output, cap, interference_s = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (tau, rate, output, cap, interference_s))
    )
    limit = max_request_rate(step(cap), tau, output, cap, interference_s)
    served = np.minimum(rate, limit)
    share = served * interference_s
    factor = served * output / (tau * (1 - share))
    seen = 1 + lump_excess(share, lumps)

    def image(b: Array) -> Array:
        return np.asarray(factor * step(np.minimum(seen + b, cap)))

    b = _fixed_point(image, cap)
    b = np.minimum(b + held_back(share, lumps) * (1 - b / cap), cap)
    busy = np.minimum(served / limit, 1 - 1e-9)
    wait = places_wait(busy, cap, step(cap) * output / (tau * (1 - share))) * waiting_excess(share, lumps)
    return _finish(step, tau, served, output, cap, interference_s, rate >= limit, b, served * wait)


def _fixed_point(image: Callable[[Array], Array], cap: Array) -> Array:
    """b = image(b) up to the cap, by secant steps from an empty batch."""
    before = np.zeros(cap.shape)
    value_before = image(before)
    b = np.minimum(value_before, cap)
    for _ in range(FAST_STEPS):
        value = image(b)
        moved = b - before
        slope = np.divide(value - value_before, moved, out=np.zeros_like(b), where=np.abs(moved) > 1e-12)
        before, value_before = b, value
        b = np.minimum(np.maximum(b + (value - b) / (1 - np.minimum(np.maximum(slope, 0.0), 0.98)), 0.0), cap)
        if np.all(np.abs(moved) <= SETTLED * b):
            break
    return b


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
