"""How much of the prompts repeats: the hit rate at round capacities, and where prompts that begin alike part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from breakeven.levers import kv_quant
from breakeven.reuse.dealing import dealt
from breakeven.reuse.divergence import Divergence, divergence
from breakeven.reuse.hit_rates import ReuseCurve, curve, hit_rate, hit_tokens, touched_share
from breakeven.reuse.identity import Chains, blocks_of, chains
from breakeven.reuse.sampling import MOST_BLOCKS, curve_of
from breakeven.spec.parallel import layout
from breakeven.trace import Trace
from breakeven.traffic.batches import Batches
from breakeven.traffic.ceiling import Ceiling, ceiling
from breakeven.traffic.left_over import LeftOver, SecondEffect, hit_rate_of, hit_rate_over, second_effect

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
    left_over: LeftOver | None
    """On the deployment: at the capacity that running sequences leave over, at its fixed point."""
    over_time: float | None
    """The same over the distribution of the batch."""
    second: SecondEffect | None
    """KV quantisation's effect by way of the prefix cache."""
    ceiling: Ceiling | None
    """What caching could save at most; None for a sample."""
    partial: bool
    """Whether a request's last partial block counts, as some published figures have it."""


def reuse_of(trace: Trace, block_tokens: int, on: Batches | None = None, *, partial: bool = False, seed: int = 0) -> Reuse | None:
    """The reuse of a trace, joined with the memory of a deployment; None where the file knows no identity of prompts."""
    if trace.hash_ids is None and trace.prompt_ids is None:
        return None
    if int(blocks_of(trace, block_tokens, partial, False).counts.sum()) > MOST_BLOCKS:
        found = curve_of(trace, block_tokens, partial=partial, seed=seed)
        return Reuse(curve=found, capacities=_at(found), divergence=None, ceiling=None, partial=partial, **_joined(found, on))
    chained = chains(trace, block_tokens, partial)
    found, owned = curve(chained), _of_one_cache(chained, on)
    return Reuse(
        curve=found,
        capacities=_at(found),
        divergence=divergence(chained),
        ceiling=ceiling(trace, hit_tokens(chained), None if on is None else on.deployment),
        partial=partial,
        **_joined(found if owned is chained else curve(owned), on),
    )


def _of_one_cache(chained: Chains, on: Batches | None) -> Chains:
    """What the cache of one rank of one replica sees of the requests, dealt to them in turn."""
    caches = 1 if on is None else on.deployment.replicas * layout(on.deployment.model, on.deployment.engine).ranks
    return dealt(chained, caches)


def _joined(found: ReuseCurve, on: Batches | None) -> Any:
    """The curve where the memory ledger meets it; nothing without a deployment, or where it keeps no prefixes."""
    nothing = {"left_over": None, "over_time": None, "second": None}
    if on is None or not on.deployment.engine.enable_prefix_caching:
        return nothing
    d = replace(on.deployment, workload=replace(on.deployment.workload, reuse=None))
    at = hit_rate_of(d, found)
    shares = on.best.shares
    over_time = hit_rate_over(at.point, found, np.arange(len(shares), dtype=float), shares)
    quantised = next((c.setting for c in kv_quant.candidates(d) if c.refused is None), None)
    second = None if quantised is None or kv_quant.setting_on(d) is not None else second_effect(d, found, quantised)
    return {"left_over": at, "over_time": over_time, "second": second}


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
