"""How many tokens to draft by how many decode together: stretches of k, and how surely each ends where it does."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from breakeven.draws import MEDIAN, Draws
from breakeven.evaluator import evaluate
from breakeven.judge import HIGH, LOW, noise_of, quantile
from breakeven.lever import Sigma
from breakeven.levers import speculation
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import version_key
from breakeven.stats import Array

POINTS = 33
LARGEST = 512
SCHEDULED_FROM = "0.24"
"""vLLM's first release that takes ``num_speculative_tokens_per_batch_size`` (pull request 32374, merged 2026-05/06; ranges are inclusive,
``[from, to, k]``, and batches between them keep the k before)."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Batches at which one k is best."""

    k: int
    """Drafted tokens a round; 0 is off."""
    first: int
    to: int
    to_low: float | None = None
    to_high: float | None = None
    """The 90 % interval of where it ends; None where that leaves the range, and for the last stretch."""


def largest(off: Deployment) -> int:
    """The batch to which a schedule goes: what runs at most, and no further than engines capture."""
    return max(1, min(int(np.median(evaluate(off, exact=False).cap)), LARGEST))


def stretches(off: Deployment, method: str, draws: Draws, sigma: Sigma) -> tuple[Stretch, ...]:
    """k by batch at the mean context, each border where the next k becomes quicker by a hundredth, with its interval over the draws."""
    cap = largest(off)
    steps = speculation.schedule(off, method, cap)
    batches = np.unique(np.geomspace(1.0, float(cap), POINTS))
    found: list[Stretch] = []
    first = 1
    for place, (low, high, k) in enumerate(steps):
        if place + 1 == len(steps):
            found.append(Stretch(k=k, first=first, to=cap))
            break
        near = batches[(batches >= max(low / 2, 1.0)) & (batches <= 4.0 * high)]
        border, ends = _border(off, method, (k, steps[place + 1][2]), near, draws, sigma)
        to = int(np.clip(np.floor(high if border is None else border), first, cap))
        found.append(Stretch(k=k, first=first, to=to, to_low=ends[0], to_high=ends[1]))
        first = to + 1
    return tuple(one for one in found if one.to >= one.first)


Ends = tuple[float | None, float | None]


def _border(off: Deployment, method: str, ks: tuple[int, int], batches: Array, draws: Draws, sigma: Sigma) -> tuple[float | None, Ends]:
    """Where the second k becomes quicker than the first: at the median, and over the draws."""
    if len(batches) < 2:
        return None, (None, None)
    middle = _crossing(batches, _lead(off, method, ks, batches, MEDIAN, Sigma())[:, None])
    spread = _crossing(batches, _lead(off, method, ks, batches[:, None], draws, sigma))
    at = float(middle[0])
    ends = [quantile(spread, q) for q in (LOW, HIGH)]
    low, high = (float(end) if np.isfinite(end) and end > 0.0 else None for end in ends)
    return (at if np.isfinite(at) and at > 0.0 else None), (low, high)


def _lead(off: Deployment, method: str, ks: tuple[int, int], batches: Array, draws: Draws, sigma: Sigma) -> Array:
    """ln of the first k's time per token over the second's, less what is no difference (a hundredth)."""
    before, after = (np.log(_times(off, method, k, batches, draws, sigma)) for k in ks)
    return np.asarray(before - after - np.log(speculation.FLAT))


def _times(off: Deployment, method: str, k: int, batches: Array, draws: Draws, sigma: Sigma) -> Array:
    """Time per token at pinned batches; drafting carries the lever's own error."""
    pinned = speculation.pinned(off, batches)
    drafted = pinned if k == 0 else speculation.apply(pinned, speculation.name_of(method, k))
    noise = noise_of("speculation", sigma, draws) if k and draws.size else None
    found = evaluate(drafted, draws, noise=noise).tpot_s
    return np.broadcast_to(found, np.broadcast_shapes(found.shape, batches.shape))


def _crossing(batches: Array, lead: Array) -> Array:
    """The first batch at which the lead turns positive, draw by draw, straight over ln b; ∞ where it never does, 0 where it always is."""
    logs = np.log(batches)[:, None]
    up = lead > 0.0
    where = np.argmax(up, axis=0)
    columns = np.arange(lead.shape[1])
    after, before = lead[where, columns], lead[np.maximum(where - 1, 0), columns]
    share = np.where(after > before, -before / np.where(after > before, after - before, 1.0), 0.0)
    at = np.exp(logs[np.maximum(where - 1, 0), 0] + share * (logs[where, 0] - logs[np.maximum(where - 1, 0), 0]))
    return np.where(~up.any(axis=0), np.inf, np.where(where == 0, 0.0, at))


def setting(found: tuple[Stretch, ...], off: Deployment) -> str | None:
    """The schedule as vLLM takes it (JSON, to merge into ``--speculative-config``); None where the engine or its version takes none."""
    takes = off.engine.name == "vllm" and version_key(off.engine.version) >= version_key(SCHEDULED_FROM)
    if not takes or not any(one.k for one in found):
        return None
    table = {
        "num_speculative_tokens": max(one.k for one in found),
        "num_speculative_tokens_per_batch_size": [[one.first, one.to, one.k] for one in found],
    }
    return json.dumps(table)
