"""Uncertain values, and their draws: uncertainty is an array axis, and quantiles come last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp, log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Q95 = NormalDist().inv_cdf(0.95)
SPREAD_LIMIT = exp(Q95**2 / 2)
"""The largest p95/mean a log-normal can have."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """Anywhere between two bounds, each point as likely."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Log-normal about its mean, with its 95th percentile."""

    mean: float
    p95: float


Value = float | Range | Spread | Array
"""What a field of a specification may hold: a number, an uncertain number, or an array of numbers."""


@cache
def _normal_quantiles(n: int) -> Array:
    inverse = NormalDist().inv_cdf
    return np.array([inverse((i + 0.5) / n) for i in range(n)])


def normal_draws(n: int, rng: np.random.Generator) -> Array:
    """``n`` standard normal draws, one from each of ``n`` equal slices, in random order. Shape (n,)."""
    return rng.permutation(_normal_quantiles(n))


def uniform_draws(n: int, rng: np.random.Generator) -> Array:
    """``n`` draws from (0, 1), the middle of each of ``n`` equal slices, in random order. Shape (n,)."""
    return rng.permutation((np.arange(n) + 0.5) / n)


def log_normal_sigma(mean: float, p95: float) -> float:
    """Sigma of ln x for a log-normal of that mean and 95th percentile.

    p95 = mean·exp(1.645·σ − σ²/2); the smaller root is taken.

    >>> round(log_normal_sigma(100.0, 100.0 * 2.718281828 ** (1.6448536 * 0.5 - 0.125)), 6)
    0.5
    """
    return float(Q95 - (Q95**2 - 2 * log(p95 / mean)) ** 0.5)


def draw(value: Value, n: int, rng: np.random.Generator) -> float | Array:
    """The value itself when it is certain, else ``n`` draws of it."""
    if isinstance(value, Range):
        return value.low + (value.high - value.low) * uniform_draws(n, rng)
    if isinstance(value, Spread):
        sigma = log_normal_sigma(value.mean, value.p95)
        return value.mean * np.exp(sigma * normal_draws(n, rng) - sigma**2 / 2)
    return value


def median(value: Value) -> float | Array:
    """The middle of an uncertain value; arrays and numbers are themselves."""
    if isinstance(value, Range):
        return (value.low + value.high) / 2
    if isinstance(value, Spread):
        return value.mean * float(np.exp(-(log_normal_sigma(value.mean, value.p95) ** 2) / 2))
    return value


def is_uncertain(value: object) -> bool:
    """Whether a field holds a range or a distribution."""
    return isinstance(value, (Range, Spread))
