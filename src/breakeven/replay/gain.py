"""What a replayed drafter gains at what a round costs: the best k, off where none pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.errors import InputError
from breakeven.replay.result import Drafting, Interval
from breakeven.trace import Floats

FLAT = 1.01
"""Gains within a hundredth of the best are as good."""


@dataclass(frozen=True, kw_only=True)
class RoundCosts:
    """Seconds of a step at one batch, drafting off and on."""

    batch: int
    """Sequences that decode together."""
    plain_s: float
    """A decode step without speculation."""
    round_s: tuple[float, ...]
    """A round with speculation on whose sequences have 1, 2, 3 … rows each; the first is what it costs when nothing is drafted."""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The time of an output token without drafting over the time with it, at one k."""

    k: int
    gain: float
    interval: Interval | None
    """90 %, from resampling requests alone: what a round costs is taken as given."""


@dataclass(frozen=True, kw_only=True)
class BestK:
    """The k of the greatest gain at one batch."""

    batch: int
    k: int
    """0: off is best."""
    gain: float
    """1 where off is best."""
    near: tuple[int, ...]
    """Every k within a hundredth of the best, 0 among them where off is."""
    gains: tuple[Gain, ...]


def round_seconds(drafting: Drafting, costs: RoundCosts) -> float:
    """Mean seconds of a round of ``costs.batch`` sequences, each with its own draft, drawn as often as the log drafted so many tokens.

    E[t(1 + D/b)], D the drafted tokens of b sequences: the b-fold convolution of the counted draft lengths, t straight between whole
    numbers of rows. Sequences are taken to draft independently of each other.

    >>> found = Drafting(k=2, requests=1, rounds=10, emitted=16, drafts_at=(4, 4), accepted_at=(3, 3), asked_at=(4, 3), past_end=0,
    ...                  cut_short=0)
    >>> round(round_seconds(found, RoundCosts(batch=1, plain_s=0.010, round_s=(0.011, 0.012, 0.014))), 6)  # 0.6 · 11 ms + 0.4 · 14 ms
    0.0122
    """
    if len(costs.round_s) <= drafting.k:
        raise InputError("replay_costs", k=drafting.k, rows=len(costs.round_s))
    if not drafting.rounds:
        return costs.round_s[0]
    longer = np.array([drafting.rounds, *drafting.drafts_at, 0], float) / drafting.rounds
    together = _convolved(longer[:-1] - longer[1:], costs.batch)
    rows = np.arange(len(together)) / costs.batch
    return float(together @ np.interp(rows, np.arange(len(costs.round_s)), costs.round_s))


def _convolved(shares: Floats, times: int) -> Floats:
    """The distribution of a sum of so many equal draws."""
    size = (len(shares) - 1) * times + 1
    found = np.fft.irfft(np.fft.rfft(shares, 2 * size) ** times, 2 * size)[:size]
    return np.asarray(np.maximum(found, 0.0) / np.maximum(found, 0.0).sum())


def gain(drafting: Drafting, costs: RoundCosts) -> Gain:
    """t_plain · tokens a round / t_round: above 1 drafting is quicker. Having it on costs where nothing is drafted, too."""
    found = costs.plain_s * drafting.tokens_per_round / round_seconds(drafting, costs)
    around = drafting.length_interval
    ends = None if around is None else tuple(found * end / drafting.acceptance_length for end in around)
    return Gain(k=drafting.k, gain=found, interval=None if ends is None else (ends[0], ends[1]))


def best_k(draftings: Sequence[Drafting], costs: RoundCosts) -> BestK:
    """The k of the greatest gain at a batch, out of those replayed; 0, that is off, where none is quicker than plain decoding."""
    gains = tuple(gain(drafting, costs) for drafting in draftings if drafting.k)
    by_k = {0: 1.0, **{found.k: found.gain for found in gains}}
    best = max(by_k, key=lambda k: (by_k[k], -k))
    near = tuple(k for k, found in by_k.items() if found * FLAT >= by_k[best])
    return BestK(batch=costs.batch, k=best, gain=by_k[best], near=near, gains=gains)
