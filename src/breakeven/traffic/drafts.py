"""What drafting would have accepted on the logged tokens, and which k is best, with a deployment's costs where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from breakeven.levers import speculation
from breakeven.replay.ngram import Ngram
from breakeven.replay.result import Replay
from breakeven.replay.run import replay
from breakeven.replay.suffix import Suffix
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Acceptance
from breakeven.trace import Trace

Method = Literal["ngram", "suffix"]
DRAFTERS: Mapping[Method, type[Ngram] | type[Suffix]] = {"ngram": Ngram, "suffix": Suffix}
COSTED = "ngram"
"""Both look their drafts up, without a model: a round costs what it costs with prompt lookup."""


@dataclass(frozen=True, kw_only=True)
class Drafts:
    """A drafter replayed, and the k of the least time per token on a deployment."""

    replay: Replay
    best_k: int | None
    """None without a deployment: acceptance alone does not tell what a round costs."""
    k_range: tuple[int, int] | None
    """The k within a hundredth of the best."""


def drafts_of(trace: Trace, deployment: Deployment | None, method: Method = "ngram", seed: int = 0) -> Drafts | None:
    """A drafter replayed with its engine's defaults; None where the file holds no generated tokens."""
    if trace.output_ids is None:
        return None
    found = replay(trace, DRAFTERS[method](), seed=seed)
    if deployment is None or not found.total[-1].rounds:
        return Drafts(replay=found, best_k=None, k_range=None)
    d = with_acceptance(deployment, found)
    best, near = speculation.best_k(d, COSTED)
    return Drafts(replay=found, best_k=best, k_range=near)


def with_acceptance(d: Deployment, found: Replay) -> Deployment:
    """The deployment with the acceptance that the replay counted, without drafting."""
    last = found.total[-1]
    accepted = Acceptance(cumulative=last.cumulative, k=last.k, method=COSTED)
    plain = speculation.remove(d)
    return replace(plain, workload=replace(plain.workload, acceptance=accepted))
