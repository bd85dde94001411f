"""A trace profiled: all that it tells of the traffic, and what it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from breakeven.errors import InputError
from breakeven.evaluator import evaluate
from breakeven.known_acceptance import KnownAcceptance, known_acceptance
from breakeven.messages import Message
from breakeven.origin.draft_counters import read_draft_counters
from breakeven.reading import BLOCK_TOKENS
from breakeven.spec.deployment import Deployment
from breakeven.trace import Trace
from breakeven.traffic.arrivals import Arrivals, arrivals_of
from breakeven.traffic.batches import Batches, batches_of
from breakeven.traffic.drafts import Drafting, Drafts, drafts_of
from breakeven.traffic.lengths import Distribution, LengthsOf, distribution, lengths_of
from breakeven.traffic.reuse import Reuse, reuse_of
from breakeven.traffic.sessions import Sessions, sessions_of


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """A question that the trace cannot answer, and what would answer it."""

    question: str
    """``arrivals``, ``output_tokens``, ``effective_batch``, ``prefix_reuse`` or ``draft_acceptance``."""
    reason: Message
    how: Message


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What a trace tells; each part is None where it does not."""

    trace: Trace
    arrivals: Arrivals | None
    lengths: LengthsOf
    sessions: Sessions | None
    ttft_s: Distribution | None
    e2e_s: Distribution | None
    batches: Batches | None
    """Only on a deployment."""
    reuse: Reuse | None
    drafts: Drafts | None
    acceptance: KnownAcceptance | None
    """Of the deployment's draft method; only on a deployment."""
    unanswered: tuple[Unanswered, ...]
    warnings: tuple[Message, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProfileQuestion:
    """How a trace is to be looked at."""

    window_s: float | None = None
    block_tokens: int = BLOCK_TOKENS
    partial: bool = False
    """Whether a request's last partial block counts as reusable."""
    drafts: Drafting | None = None
    """The drafting to replay."""
    metrics: Path | None = None
    """A saved page of the engine's metrics, for its counters of accepted drafts."""
    seed: int = 0


def profile_of(trace: Trace, asked: ProfileQuestion, deployment: Deployment | None = None, refused: Message | None = None) -> Profile:
    """All that the trace tells; ``refused`` is why nothing can be said on the deployment."""
    arrivals = None if trace.arrival_s is None else arrivals_of(trace.arrival_s, asked.window_s)
    lengths = lengths_of(trace.input_tokens, trace.output_tokens, trace.cached_tokens)
    if lengths is None:
        raise InputError("trace_empty", path=trace.name, damaged=trace.damaged, apart=0)
    served = deployment is not None and arrivals is not None and evaluate(deployment).fits
    batches = batches_of(deployment, trace, asked.window_s, asked.seed) if deployment is not None and served else None
    reuse = reuse_of(trace, asked.block_tokens, batches, partial=asked.partial, seed=asked.seed)
    drafts = drafts_of(trace, deployment, asked.drafts, asked.seed) if asked.drafts is not None else None
    return Profile(
        trace=trace,
        arrivals=arrivals,
        lengths=lengths,
        sessions=sessions_of(trace),
        ttft_s=None if trace.ttft_s is None else distribution(trace.ttft_s),
        e2e_s=None if trace.e2e_s is None else distribution(trace.e2e_s),
        batches=batches,
        reuse=reuse,
        drafts=drafts,
        acceptance=_acceptance(trace, deployment, asked, drafts),
        warnings=() if batches is None else batches.notes,
        unanswered=tuple(_unanswered(trace, arrivals, batches, refused if deployment is None else Message("profile.does_not_fit"))),
    )


def _acceptance(trace: Trace, d: Deployment | None, asked: ProfileQuestion, drafts: Drafts | None) -> KnownAcceptance | None:
    if d is None:
        if asked.metrics is not None:
            read_draft_counters(asked.metrics)
            raise InputError("metrics_method", path=str(asked.metrics))
        return None
    return known_acceptance(trace, d, asked.metrics, replayed=None if drafts is None else drafts.replay, seed=asked.seed)


def _unanswered(trace: Trace, arrivals: Arrivals | None, batches: Batches | None, refused: Message | None) -> list[Unanswered]:
    """What the file leaves open: no verdict is made up in its place."""
    found = []
    if arrivals is None:
        reason = "profile.no_times" if trace.arrival_s is None else "profile.no_span"
        found.append(Unanswered(question="arrivals", reason=Message(reason), how=Message("profile.how_times")))
    if trace.output_tokens is None:
        found.append(Unanswered(question="output_tokens", reason=Message("profile.no_outputs"), how=Message("profile.how_outputs")))
    if batches is None:
        why = refused if refused is not None else Message("profile.no_deployment")
        found.append(Unanswered(question="effective_batch", reason=why, how=Message("profile.how_deployment")))
    if trace.hash_ids is None and trace.prompt_ids is None:
        found.append(Unanswered(question="prefix_reuse", reason=Message("profile.no_prompts"), how=Message("profile.how_prompts")))
    if trace.output_ids is None and trace.acceptance is None:
        found.append(Unanswered(question="draft_acceptance", reason=Message("profile.no_texts"), how=Message("profile.how_texts")))
    return found
