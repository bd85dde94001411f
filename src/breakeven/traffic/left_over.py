"""The prefix cache that running sequences leave over, and the hit rate of a trace in it: where the memory ledger meets the reuse curve."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breakeven.evaluator import Point, evaluate
from breakeven.ledger.room import prompt_room_tokens
from breakeven.levers import kv_quant
from breakeven.reuse.hit_rates import ReuseCurve, hit_rate
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

ITERATIONS = 60
SETTLED = 1e-6


@dataclass(frozen=True, kw_only=True)
class LeftOver:
    """A deployment at the hit rate that its own traffic and memory give it. Tokens are of one cache: that of a rank of a replica."""

    deployment: Deployment
    """With this hit rate as its workload's."""
    point: Point
    pool_tokens: float
    held_tokens: float
    """Of the pool, by running sequences: prompts, outputs and what is set aside for the next round."""
    left_over_tokens: float
    """What they leave over, for prompts of requests that have ended."""
    capacity_tokens: float
    """What prompts take in all: left over, and held by running sequences for their own."""
    hit_rate: float
    """Share of prompt tokens served from the cache, at ``capacity_tokens`` of the curve."""
    unbounded: float
    """What a cache without end would serve."""


def left_over_tokens(p: Point, batch: Array | float) -> Array:
    """Tokens of the pool of one rank that ``batch`` running sequences of a replica leave over: pool − b/ranks·sequence bytes/κ.

    A model whose tokens take no room has no prefixes to keep; one that does not fit leaves nothing.
    """
    return _pool_less(p, batch, _sequence_tokens(p))


def capacity_tokens(p: Point, batch: Array | float) -> Array:
    """Tokens of the pool of one rank for prompts, those of running sequences included: pool − b/ranks·(sequence bytes/κ − prompt).

    The curve's stack has the prompts that run on its top, and they are hit as well as those that have ended, once for all that share
    them; only what a sequence holds beside its prompt is lost. A running prompt is longer than the mean, E[IO]/E[O].
    """
    found = prompt_room_tokens(p.room, np.asarray(batch) / p.cost.ranks, p.demand.running_prompt_tokens)
    return found if p.fits else np.zeros_like(found)


def _sequence_tokens(p: Point) -> Array | float:
    return p.room.sequence_bytes / (p.room.kv_bytes_per_token or np.inf)


def _pool_less(p: Point, batch: Array | float, each: Array | float) -> Array:
    pool = p.room.pool_tokens if p.fits and p.room.kv_bytes_per_token else 0.0
    return np.asarray(np.maximum(pool - np.asarray(batch) / p.cost.ranks * each, 0.0))


def hit_rate_over(p: Point, curve: ReuseCurve, batches: Array | float, weights: Array | float = 1.0) -> float:
    """The mean hit rate over a distribution of the batch: a prompt finds what the sequences that run just then leave it.

    Weights are of the requests that find so many running; with Poisson arrivals those are the shares of time.
    """
    rates = hit_rate(curve, capacity_tokens(p, batches))
    return float(np.sum(rates * weights) / np.sum(np.broadcast_to(weights, np.shape(rates))))


def hit_rate_of(d: Deployment, curve: ReuseCurve) -> LeftOver:
    """The hit rate at its fixed point, from an empty cache up: hits shorten prompts, prompts make the batch, the batch leaves room over.

    The curve is that of the requests that one cache sees: deal a trace to replicas and ranks first (:func:`breakeven.reuse.dealt`).
    """
    rate, stride = 0.0, 1.0
    moved = 0.0
    for _ in range(ITERATIONS):
        point = evaluate(_at(d, rate))
        step = _found(d, point, curve) - rate
        if abs(step) < SETTLED:
            break
        stride = stride / 2 if step * moved < 0 else stride
        moved = step
        rate += stride * step
    point = evaluate(_at(d, rate))
    free = float(np.median(left_over_tokens(point, point.batch)))
    return LeftOver(
        deployment=_at(d, rate),
        point=point,
        pool_tokens=point.room.pool_tokens,
        held_tokens=point.room.pool_tokens - free,
        left_over_tokens=free,
        capacity_tokens=float(np.median(capacity_tokens(point, point.batch))),
        hit_rate=rate,
        unbounded=curve.unbounded,
    )


def _at(d: Deployment, rate: float) -> Deployment:
    return replace(d, workload=replace(d.workload, prefix_hit_rate=rate))


def _found(d: Deployment, point: Point, curve: ReuseCurve) -> float:
    if not d.engine.enable_prefix_caching:
        return 0.0
    return float(np.median(hit_rate(curve, capacity_tokens(point, point.batch))))


@dataclass(frozen=True, kw_only=True)
class SecondEffect:
    """KV quantisation's effect by way of the prefix cache: fewer bytes a token, more tokens in the pool, more left over, more hits."""

    setting: str
    off: LeftOver
    on: LeftOver
    same_hits: Point
    """On, at the hit rate of the arm that is off: the first effect alone."""


def second_effect(d: Deployment, curve: ReuseCurve, setting: str = "fp8") -> SecondEffect:
    """KV quantisation off and on, each at its own hit rate, and on at the hit rate of off."""
    off = hit_rate_of(kv_quant.remove(d), curve)
    on = kv_quant.apply(kv_quant.remove(d), setting)
    return SecondEffect(setting=setting, off=off, on=hit_rate_of(on, curve), same_hits=evaluate(_at(on, off.hit_rate)))
