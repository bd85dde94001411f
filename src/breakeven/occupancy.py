"""How many decode together over time, as a distribution: the chain of every rate, weighted by its share of the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.demand import lumps_of
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, prepare
from breakeven.setting import Setting
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array
from breakeven.steady import max_request_rate, occupancy

FEW = 4.0
"""An effective batch below which batching settings give nothing where demand limits."""


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """Sequences decoding on one replica, over time."""

    shares: Array
    """Share of time of 0, 1, 2 … sequences."""
    token_shares: Array
    """Share of tokens that are made in steps of so many."""
    saturated: float
    """Share of time in windows that ask for more than can be served."""

    @property
    def mean(self) -> float:
        """Time mean."""
        return float(self.shares @ np.arange(len(self.shares)))

    @property
    def seen_by_a_token(self) -> float:
        """The batch in which the mean token is made; 0 where none is."""
        return float(self.token_shares @ np.arange(len(self.token_shares)))

    @property
    def seen_by_a_sequence(self) -> float:
        """E[N²]/E[N]: the batch that a sequence is in at a random moment of its decoding; full steps take longer, so tokens see less."""
        states = np.arange(len(self.shares))
        mean = float(self.shares @ states)
        return float(self.shares @ states**2) / mean if mean > 0.0 else 0.0

    @property
    def few(self) -> float:
        """Share of time with fewer than four sequences, idle included."""
        return float(self.shares[: int(FEW)].sum())

    @property
    def idle(self) -> float:
        """Share of time without any."""
        return float(self.shares[0])

    def quantile(self, q: float) -> float:
        """The fewest sequences that no less than this share of the time is within."""
        return float(np.searchsorted(np.cumsum(self.shares), q - 1e-9))


def occupancy_of(d: Deployment, factors: Array, weights: Array) -> Occupancy:
    """The distribution of an open loop whose rate is so many times its mean for such shares of the time, in the median world.

    A window that asks for more than λ_max runs at the cap, and as much longer as its requests take to be served.
    """
    x = prepare(d, MEDIAN, Noise())
    mean = 0.0 if x.demand.rate is None else float(np.asarray(x.demand.rate))
    rates = mean * factors
    cap, taken = float(np.asarray(x.cap)), float(np.asarray(x.prompts.interference_s))
    limit = float(max_request_rate(x.step(np.asarray(cap)), x.tau, x.output, cap, taken))
    if x.pool is not None:
        limit = min(limit, float(np.asarray(x.pool.max_rate)) / d.replicas)
    over = rates >= limit
    if mean >= limit:
        shares = np.zeros(int(cap) + 1)
        shares[-1] = 1.0
        return Occupancy(shares=shares, token_shares=shares, saturated=1.0)
    _, share = occupancy(x.step, x.tau, rates, x.output, cap, taken, lumps_of(d))
    full = weights * np.where(over, rates / limit, 0.0)
    calm = np.where(over, 0.0, weights)
    found = (share * (full + calm * (1.0 - full.sum()) / max(calm.sum(), 1e-12))).sum(axis=1)
    return Occupancy(shares=found, token_shares=_of_tokens(x, found), saturated=float(weights[over].sum()))


def _of_tokens(x: Setting, shares: Array) -> Array:
    """Shares of tokens from shares of time: N sequences make N tokens (or rounds) a step, which takes t_step(N)."""
    states = np.arange(len(shares), dtype=float)
    made = shares * states / x.step(np.maximum(states, 1.0))
    return np.asarray(made / made.sum() if made.sum() > 0.0 else made)
