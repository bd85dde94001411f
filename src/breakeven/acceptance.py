"""Draft acceptance: the forms people have it in, one curve that extends them to any k, and priors by method and task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.draws import Draws
from breakeven.efficiencies import table
from breakeven.errors import InputError
from breakeven.spec.workload import TASKS, Acceptance
from breakeven.stats import Array

LONG_FROM, LONG_AT = 4096.0, 16384.0
"""Context at which acceptance priors begin to fall, and where they have fallen (reports at 2k, 8k and 16k)."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Cumulative acceptance p_i = exp(−λ·i^g), or the positions measured, continued by the curve through the last of them."""

    decay: Array | float
    exponent: float
    measured: tuple[float, ...] = ()

    def cumulative(self, position: int) -> Array | float:
        """Share of rounds in which position i is accepted."""
        if position <= len(self.measured):
            return self.measured[position - 1]
        return np.asarray(np.exp(-self.decay * position**self.exponent))


def tokens_per_round(curve: Curve, drafted: int) -> Array | float:
    """Tokens a round emits, τ = 1 + Σ_{i≤k} p_i: the accepted run and the bonus token.

    Source: Leviathan et al. 2023, equation 1 for equal conditional acceptance α, (1 − α^{k+1})/(1 − α).

    >>> round(float(tokens_per_round(Curve(decay=-np.log(0.8), exponent=1.0), 3)), 3)
    2.952
    >>> round((1 - 0.8**4) / (1 - 0.8), 3)
    2.952
    """
    return 1.0 + sum((curve.cumulative(i) for i in range(1, drafted + 1)), 0.0)


def decay_of_length(length: Array | float, drafted: int, exponent: float) -> Array:
    """The λ whose tokens a round at k equal a measured acceptance length (bisection on ln λ, to 1e-9).

    >>> float(np.round(tokens_per_round(Curve(decay=decay_of_length(2.4, 3, 1.2), exponent=1.2), 3), 6))
    2.4
    """
    target = np.asarray(length, dtype=float) - 1.0
    powers = np.arange(1, drafted + 1, dtype=float) ** exponent
    low, high = np.full(target.shape, -20.0), np.full(target.shape, 6.0)
    for _ in range(48):
        middle = (low + high) / 2
        more = np.exp(-np.exp(middle)[..., None] * powers).sum(-1) > target
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray(np.exp((low + high) / 2))


def _from_positions(positions: tuple[float, ...], exponent: float) -> Curve:
    last = max(positions[-1], 1e-9)
    return Curve(decay=-np.log(min(last, 1 - 1e-12)) / len(positions) ** exponent, exponent=exponent, measured=positions)


def given(acceptance: Acceptance, drafted: int, exponent: float, draws: Draws, *, nodes: int | None = None) -> Curve:
    """The curve of an acceptance in whatever form it was given; ``drafted`` is the k it was measured at unless it says.

    A rate is accepted over drafted: of a tree, over all its drafted ``nodes`` (k for a chain). What no round can give (more than
    k + 1 tokens, a rate above 1) is cut off: the tails of draws; what is stated is checked where it comes in.
    """
    k = acceptance.k or drafted
    of = nodes if nodes is not None and acceptance.k is None else k
    if acceptance.cumulative is not None:
        return _from_positions(acceptance.cumulative, exponent)
    if acceptance.conditional is not None:
        return _from_positions(tuple(float(p) for p in np.cumprod(acceptance.conditional)), exponent)
    if acceptance.alpha is not None:
        alpha = np.clip(draws.value("acceptance", acceptance.alpha), 1e-9, 1 - 1e-12)
        return Curve(decay=-np.log(alpha), exponent=1.0)
    length: Array | float
    if acceptance.rate is not None:
        length = 1.0 + of * np.clip(draws.value("acceptance", acceptance.rate), 0.0, 1.0)
    elif acceptance.length is not None:
        length = draws.value("acceptance", acceptance.length)
    else:
        raise InputError("acceptance_empty")
    return Curve(decay=decay_of_length(np.clip(length, 1.0, k + 1.0), k, exponent), exponent=exponent)


def tree_factor(topk: int, rows: int) -> float:
    """Factor on λ of a tree of drafts: 1 for a chain; small trees accept less than the chain of their depth, wide ones more."""
    sheet = table("acceptance")["tree"]
    if topk <= 1:
        return 1.0
    return float(sheet["wide"] if rows >= sheet["wide_from"] else sheet["small"])


def prior(method: str, task: str | None, context_tokens: Array | float, drafted: int, draws: Draws, *, tree: float = 1.0) -> Curve:
    """The prior of a method on a task; between tasks (None) the draws spread over all of them. Long contexts accept less.

    λ moves on a logarithmic scale from the task's value at 4 k tokens to the method's long-context value at 16 k.
    """
    sheet = table("acceptance")[method]
    logs = np.log([sheet[name] for name in TASKS])
    centre = float(np.log(sheet[task])) if task else float(np.mean(logs))
    far = np.clip(np.log(np.maximum(context_tokens, 1.0) / LONG_FROM) / np.log(LONG_AT / LONG_FROM), 0.0, 1.0)
    log_decay = centre + far * np.maximum(np.log(sheet["long"]) - centre, 0.0)
    spread = (sheet["sd"] ** 2 + (0.0 if task else float(np.var(logs)) * _slope(np.exp(centre), drafted, sheet["g"]) ** 2)) ** 0.5
    z = draws.normal(f"acceptance:{method}")
    return Curve(decay=tree * np.exp(log_decay + z * spread / _slope(np.exp(centre), drafted, sheet["g"])), exponent=sheet["g"])


def _slope(decay: float, drafted: int, exponent: float) -> float:
    """−d ln(τ − 1)/d ln λ: carries a spread of ln(τ − 1) over to ln λ."""
    powers = decay * np.arange(1, drafted + 1, dtype=float) ** exponent
    accepted = np.exp(-powers)
    return max(float((powers * accepted).sum() / accepted.sum()), 1e-3)
