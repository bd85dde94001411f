"""What is known of a draft method's acceptance, from the firmest source: counters, what is declared or logged, a replay, the prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from breakeven import acceptance
from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import table
from breakeven.errors import InputError
from breakeven.evaluator import evaluate
from breakeven.levers import speculation
from breakeven.messages import Message
from breakeven.origin.draft_counters import DraftCounters, acceptance_of, read_draft_counters
from breakeven.replay.result import Replay
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import LOOKUPS
from breakeven.spec.workload import Acceptance
from breakeven.trace import Trace

DRAWS = 512
INTERVAL = (0.05, 0.95)
Source = Literal["metrics", "declared", "trace", "replay", "prior"]


@dataclass(frozen=True, kw_only=True)
class KnownAcceptance:
    """The acceptance of one method by position, and where it is from."""

    method: str
    k: int
    cumulative: tuple[float, ...]
    """p_i over all rounds, i = 1 … k; a median where the source is a prior. Positions not counted are continued by the method's curve."""
    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    """90 % interval: over draws of a prior, by resampling requests of a replay; None where the source has none."""
    source: Source
    provenance: Message
    """Where it is from, in words."""

    @property
    def length(self) -> float:
        """Tokens a round, the bonus token included."""
        return 1.0 + sum(self.cumulative)


def known_acceptance(
    trace: Trace | None,
    d: Deployment,
    metrics_file: Path | None = None,
    *,
    method: str | None = None,
    replayed: Replay | None = None,
    seed: int = 0,
) -> KnownAcceptance:
    """Counters of a saved metrics page first, then what is declared or the trace's file states, a replay of the method, else the prior.

    The method and k are the deployment's own, or those that would be meant; a page of counters does not name its method, so that one of
    the two has to. No model is run: for heads, MTP layers and draft models the tokens of a log alone tell nothing.
    """
    counters = None if metrics_file is None else read_draft_counters(metrics_file)
    if counters is not None and method is None and d.engine.speculative is None:
        raise InputError("metrics_method", path=str(metrics_file))
    meant, k = _meant(d)
    method = method or meant
    if counters is not None:
        return _from_given(acceptance_of(counters, method), method, k, "metrics", _counted(counters))
    declared, stated = d.workload.acceptance, None if trace is None else trace.acceptance
    if declared is not None and declared != stated and declared.method in (None, method):
        return _from_given(declared, method, k, "declared", Message("replay.acceptance_declared"))
    if trace is not None and stated is not None and stated.method in (None, method):
        return _from_given(stated, method, k, "trace", Message("replay.acceptance_trace", {"path": trace.name}))
    if method in LOOKUPS and replayed is not None and replayed.method == method and not replayed.approximate:
        return _from_replay(replayed, k)
    return _from_prior(d, method, k, Draws(DRAWS, seed))


def _meant(d: Deployment) -> tuple[str, int]:
    """The method and k in force, or those that acceptance without a name would be taken for."""
    bare = replace(d, workload=replace(d.workload, acceptance=Acceptance(length=1.0)))
    owned = speculation.with_owner(bare).workload.acceptance
    if owned is None or owned.method is None or owned.k is None:
        return "ngram", speculation.USUAL_K
    return owned.method, owned.k


def _counted(counters: DraftCounters) -> Message:
    values = {"path": counters.path, "engine": counters.engine, "drafts": counters.drafts, "rounds": counters.rounds or 0.0}
    if counters.length is not None:
        return Message("replay.acceptance_gauge", values)
    return Message("replay.acceptance_metrics" if counters.rounds else "replay.acceptance_metrics_drafts", values)


def _from_given(given: Acceptance, method: str, k: int, source: Source, provenance: Message) -> KnownAcceptance:
    curve = acceptance.given(given, k, float(table("acceptance")[method]["g"]), MEDIAN)
    cumulative = tuple(float(curve.cumulative(i)) for i in range(1, k + 1))
    return KnownAcceptance(method=method, k=k, cumulative=cumulative, low=None, high=None, source=source, provenance=provenance)


def _from_replay(found: Replay, k: int) -> KnownAcceptance:
    drafting = min(found.total, key=lambda one: (abs(one.k - k), -one.k))
    ends = drafting.cumulative_intervals
    return KnownAcceptance(
        method=found.method,
        k=drafting.k,
        cumulative=drafting.cumulative,
        low=None if ends is None else tuple(low for low, _ in ends),
        high=None if ends is None else tuple(high for _, high in ends),
        source="replay",
        provenance=Message("replay.acceptance_replay", {"rounds": drafting.rounds, "rule": found.rule}),
    )


def _from_prior(d: Deployment, method: str, k: int, draws: Draws) -> KnownAcceptance:
    context = float(np.median(evaluate(d, exact=False).demand.context_tokens))
    middle, spread = (acceptance.prior(method, d.workload.task, context, k, found) for found in (MEDIAN, draws))
    ends = [np.quantile(np.asarray(spread.cumulative(i)), INTERVAL) for i in range(1, k + 1)]
    return KnownAcceptance(
        method=method,
        k=k,
        cumulative=tuple(float(middle.cumulative(i)) for i in range(1, k + 1)),
        low=tuple(float(end[0]) for end in ends),
        high=tuple(float(end[1]) for end in ends),
        source="prior",
        provenance=Message("replay.acceptance_prior", {"method": method, "source": str(table("acceptance")[method]["source"])}),
    )
