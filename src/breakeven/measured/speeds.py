"""How a row measures speed: quantities of a deployment in which more is better. Arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from breakeven.draws import Draws
from breakeven.evaluator import Noise, Point, evaluate
from breakeven.ledger.step import parts
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

SLOPE_FROM, SLOPE_TO = 256.0, 125_000.0
"""Context tokens between which published slopes of a step's time were taken."""

UNBOUNDED = 1e-9
"""Next to nothing: the speed of a queue without bound, for each token a second of its capacity."""


@dataclass(frozen=True)
class Quantity:
    """One quantity of an operating point, more being better."""

    name: str
    of: Callable[[Point], Array]

    def __call__(self, d: Deployment, draws: Draws, noise: Noise) -> Array:
        """The quantity of one arm."""
        return self.of(evaluate(d, draws, noise=noise))


def _static(p: Point) -> Array:
    """b·O/(b·T_pf + O·t_step/τ): the prompts of a static batch one after the other, then its steps."""
    output = 1.0 if p.demand.output_tokens is None else p.demand.output_tokens
    return np.asarray(p.batch * output / (p.batch * p.prefill_alone_s + output * p.step_s / p.tau))


def _matrices(p: Point) -> Array:
    """The matrix products of a step alone, without launches."""
    return np.asarray(1.0 / (p.time_factor * parts(p.cost, p.batch)["dense"]))


def _inverse(time: Array | float | None) -> Array:
    return np.asarray(1.0 / np.asarray(np.nan if time is None else time, dtype=float))


def _waited(p: Point, time: Array | None) -> Array:
    """1 over a time that may have a wait in it. Both queues of two saturated arms grow without bound, as their capacities stand."""
    return np.where(p.saturated, UNBOUNDED * p.throughput, _inverse(time))


def _rate(p: Point) -> Array:
    return np.asarray(np.nan if p.request_rate is None else p.request_rate)


THROUGHPUT = Quantity("throughput", lambda p: p.throughput)
"""Output tokens a second of a closed loop, or of a batch as it is pinned with its prompts."""
STATIC = Quantity("static", _static)
DECODE = Quantity("decode", lambda p: _inverse(p.tpot_s))
FIRST_TOKEN = Quantity("first_token", lambda p: _waited(p, p.ttft_s))
REQUEST = Quantity("request", lambda p: _waited(p, p.e2e_s))
REQUEST_RATE = Quantity("request_rate", _rate)
"""Requests a second that are reached of those that are asked for."""
PROMPT = Quantity("prompt", lambda p: _inverse(p.prefill_alone_s))
PROMPT_WORK = Quantity("prompt_work", lambda p: _inverse(p.interference_s))
"""Device time that a prompt takes from others."""
MATRICES = Quantity("matrices", _matrices)


def context_slope(d: Deployment, draws: Draws, noise: Noise) -> Array:
    """Tokens of context for each second that a step gains."""
    near, far = (
        evaluate(replace(d, workload=replace(d.workload, context_tokens=context)), draws, noise=noise).tpot_s
        for context in (SLOPE_FROM, SLOPE_TO)
    )
    return np.asarray((SLOPE_TO - SLOPE_FROM) / (far - near))
