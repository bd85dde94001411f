"""What drafting would have accepted on the logged tokens, and which k is best, with a deployment's costs where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from breakeven.errors import InputError
from breakeven.evaluator import evaluate
from breakeven.levers import speculation
from breakeven.messages import Message
from breakeven.replay.gain import BestK, best_k
from breakeven.replay.ngram import Ngram
from breakeven.replay.result import Replay
from breakeven.replay.run import USUAL_KS, replay
from breakeven.replay.suffix import Suffix
from breakeven.round_costs import round_costs
from breakeven.spec.deployment import Deployment
from breakeven.trace import Trace

Method = Literal["ngram", "suffix"]
Drafting = Method | Ngram | Suffix
DRAFTERS: Mapping[Method, Ngram | Suffix] = {"ngram": Ngram(), "suffix": Suffix()}
"""What is replayed, by the engine's name of it, at the engine's defaults."""
KS: Mapping[Method, tuple[int, ...]] = {"ngram": USUAL_KS, "suffix": (*USUAL_KS, 12, 16, 24)}
"""The k that are replayed; a suffix draft is as long as its match is, and vLLM lets it be as long as its tree is deep."""
LARGEST = 512


@dataclass(frozen=True, kw_only=True)
class Drafts:
    """A drafter replayed, and the k of the least time per token on a deployment."""

    replay: Replay
    best_k: int | None
    """At the mean batch; 0 is off. None without a deployment: acceptance alone does not tell what a round costs."""
    k_range: tuple[int, int] | None
    """The k within a hundredth of the best."""
    batch: int | None = None
    """The batch that ``best_k`` is for."""
    gain: float | None = None
    """Time per token without drafting over the time with it, at ``best_k``."""
    by_batch: tuple[BestK, ...] = ()
    """The best k at batches that double, to the most that run."""
    group_k: Mapping[str | None, int] | None = None
    """The best k of each group alone, at the same batch."""

    @property
    def notes(self) -> tuple[Message, ...]:
        """What a replay does not say: how sampled text would have fared, and what pieces of text are worth."""
        greedy = Message("replay.greedy")
        return (greedy, Message("replay.pieces")) if self.replay.approximate else (greedy,)


def drafts_of(trace: Trace, deployment: Deployment | None, method: Drafting = "ngram", seed: int = 0) -> Drafts | None:
    """A drafter replayed, at the engine's defaults where it is only named; None where the file holds no generated tokens."""
    if trace.output_ids is None:
        return None
    if isinstance(method, str) and method not in DRAFTERS:
        raise InputError("replay_drafter", drafter=method, known=", ".join(DRAFTERS))
    drafter = DRAFTERS[method] if isinstance(method, str) else method
    found = replay(trace, drafter, ks=KS["ngram" if isinstance(drafter, Ngram) else "suffix"], seed=seed)
    if deployment is None or not found.total[-1].rounds:
        return Drafts(replay=found, best_k=None, k_range=None)
    return _on(deployment, found)


def _on(d: Deployment, found: Replay) -> Drafts:
    """The k that is best where the deployment runs, and at every batch."""
    point = evaluate(speculation.remove(d), exact=False)
    batch, cap = max(round(float(np.median(point.batch))), 1), max(int(np.median(point.cap)), 1)
    sizes = sorted({*(2**i for i in range(10) if 2**i <= min(cap, LARGEST)), min(cap, LARGEST), batch})
    costs = dict(zip(sizes, round_costs(d, sizes, max(found.ks)), strict=True))
    by_batch = tuple(best_k(found.total, costs[size]) for size in sizes)
    here = by_batch[sizes.index(batch)]
    return Drafts(
        replay=found,
        best_k=here.k,
        k_range=(min(here.near), max(here.near)),
        batch=batch,
        gain=here.gain,
        by_batch=by_batch,
        group_k={name: best_k(group, costs[batch]).k for name, group in found.groups.items()},
    )
