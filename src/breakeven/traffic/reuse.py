"""How much of the prompts repeats: the hit rate at round capacities, and where prompts that begin alike part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.reuse.divergence import Divergence, divergence
from breakeven.reuse.hit_rates import ReuseCurve, curve, hit_rate, touched_share
from breakeven.reuse.identity import blocks_of, chains
from breakeven.reuse.sampling import MOST_BLOCKS, curve_of
from breakeven.trace import Trace

ROUND = (1, 3)
FEWEST = 1000


@dataclass(frozen=True, kw_only=True)
class AtCapacity:
    """The reuse of a cache of so many tokens."""

    tokens: float
    hit_rate: float
    touched: float | None
    """Share of requests with at least one hit; a sample does not tell."""


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """The prompts of a trace by identity."""

    curve: ReuseCurve
    capacities: tuple[AtCapacity, ...]
    divergence: Divergence | None
    """None for a sample, which knows no neighbours."""
    partial: bool
    """Whether a request's last partial block counts, as some published figures have it."""


def reuse_of(trace: Trace, block_tokens: int, *, partial: bool = False, seed: int = 0) -> Reuse | None:
    """The reuse of a trace; None where the file knows no identity of prompts."""
    if trace.hash_ids is None and trace.prompt_ids is None:
        return None
    if int(blocks_of(trace, block_tokens, partial, False).counts.sum()) > MOST_BLOCKS:
        found = curve_of(trace, block_tokens, partial=partial, seed=seed)
        return Reuse(curve=found, capacities=_at(found), divergence=None, partial=partial)
    chained = chains(trace, block_tokens, partial)
    found = curve(chained)
    return Reuse(curve=found, capacities=_at(found), divergence=divergence(chained), partial=partial)


def _at(found: ReuseCurve) -> tuple[AtCapacity, ...]:
    """At round capacities: those that the trace's own blocks would fill, and the one beyond which nothing is gained."""
    most = float(found.unique * found.block_tokens)
    steps = [float(step * 10**power) for power in range(3, 15) for step in ROUND]
    wanted = [step for step in steps if FEWEST <= step < most] + [most]
    wanted = [tokens for tokens in wanted if tokens >= found.block_tokens]
    hits = hit_rate(found, np.array(wanted))
    touched = None if found.touched is None else touched_share(found, np.array(wanted))
    return tuple(
        AtCapacity(tokens=tokens, hit_rate=float(hits[i]), touched=None if touched is None else float(touched[i]))
        for i, tokens in enumerate(wanted)
    )
