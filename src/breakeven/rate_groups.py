"""An open loop whose rate varies: every group of windows solved by itself, and put together by time, requests and tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.spec.workload import ArrivalRates
from breakeven.stats import Array, Flags
from breakeven.steady import Steady

DIFFUSED = 2.0 / 3.0 * (4.0 / np.pi) ** 0.5
"""Mean queue that chance alone builds within a window at full load, over √(requests in it): the time mean of reflected Brownian motion
from 0, (2/3)·σ·√(2W/π), with σ² = 2λ of arrivals and departures."""


@dataclass(frozen=True, kw_only=True)
class RateGroups:
    """The groups of windows, along the leading axis of each array."""

    factors: Array
    weights: Array
    window_s: float
    batch: Array
    tpot_s: Array
    wait_s: Array
    """Mean wait for a place, of chance alone, as far as it builds up within a window."""
    first_token_s: Array
    """TTFT without the waits."""
    saturated: Flags
    spill_s: Array
    """Mean wait of a request, over all groups, for what overloaded windows leave behind."""

    @property
    def saturated_share(self) -> Array:
        """Share of time in windows that ask for more than can be served."""
        return np.asarray((self.weights * self.saturated).sum(axis=0))

    @property
    def waiting_share(self) -> Array:
        """Share of requests that come when the mean wait for a place reaches a time per token."""
        waits = self.saturated | (self.wait_s >= self.tpot_s)
        return np.asarray((self.weights * self.factors * waits).sum(axis=0))


def varies(rates: ArrivalRates | None) -> bool:
    """Whether there is more than one rate: equal rates are one."""
    return rates is not None and len(set(rates.factors)) > 1


def grouped(rates: ArrivalRates, dimensions: int) -> tuple[Array, Array]:
    """Factors and weights as a leading axis before so many others."""
    shape = (-1,) + (1,) * dimensions
    return np.array(rates.factors).reshape(shape), np.array(rates.weights).reshape(shape)


def spilled_s(rates: ArrivalRates, room: Array) -> Array:
    """Mean wait of a request for what windows above λ_max leave behind, at λ_max over the mean rate: as tabled, straight between."""
    if not rates.spill:
        return np.zeros(np.shape(room))
    levels, waits = (np.array(column) for column in zip(*rates.spill, strict=True))
    return np.asarray(np.interp(room, levels, waits))


def within_window(wait_s: Array, rate: Array, window_s: float) -> Array:
    """A wait that has built up within a window at most: 0.752·√(W/λ) at full load, from an empty queue."""
    return np.asarray(np.minimum(wait_s, DIFFUSED * np.sqrt(window_s / rate)))


def mixed(
    rates: ArrivalRates, found: Steady, rate: Array | float, top_rate: Array, first_token_s: Array, output: Array | float
) -> tuple[Steady, Array, RateGroups]:
    """The groups as one operating point, its TTFT without the waits, and the groups themselves.

    TPOT = Σ w·f·TPOT_i (by tokens), TTFT and wait = Σ w·f·x_i (by requests), b = λ·O·TPOT = Σ w·b_i (by time): Little's law holds of the
    whole since it holds of each. What a window asks above λ_max is served at the full batch, later; requests then wait for what was left
    behind (:func:`spilled_s`). At a mean rate of λ_max and above nothing is calm: saturated, as at one rate.
    """
    rate, top_rate = (np.asarray(x, dtype=float) for x in (rate, top_rate))
    factors, weights = grouped(rates, found.batch.ndim - 1)
    shares = weights * factors
    saturated = rate >= top_rate
    spill = np.where(saturated, np.inf, spilled_s(rates, top_rate / rate))
    calm = within_window(found.wait_s, factors * rate, rates.window_s)
    tpot = (shares * found.tpot_s).sum(axis=0)
    busiest = int(np.argmax(rates.factors))
    whole = Steady(
        batch=np.where(saturated, found.batch[busiest], rate * output * tpot),
        tpot_s=np.where(saturated, found.tpot_s[busiest], tpot),
        wait_s=np.where(saturated, np.inf, (shares * calm).sum(axis=0) + spill),
        request_rate=np.minimum(rate, top_rate) + np.zeros_like(tpot),
        saturated=saturated & np.ones_like(tpot, dtype=bool),
    )
    kept = RateGroups(
        factors=factors,
        weights=weights,
        window_s=rates.window_s,
        batch=found.batch,
        tpot_s=found.tpot_s,
        wait_s=calm,
        first_token_s=first_token_s,
        saturated=found.saturated,
        spill_s=spill,
    )
    return whole, np.asarray((shares * first_token_s).sum(axis=0)), kept
