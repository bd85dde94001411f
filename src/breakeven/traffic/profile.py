"""A trace profiled: all that it tells of the traffic, and what it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.messages import Message
from breakeven.trace import Trace
from breakeven.traffic.arrivals import Arrivals, arrivals_of
from breakeven.traffic.lengths import Distribution, LengthsOf, distribution, lengths_of
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
    unanswered: tuple[Unanswered, ...]


def profile_of(trace: Trace, *, window_s: float | None = None) -> Profile:
    """Everything that needs no deployment."""
    arrivals = None if trace.arrival_s is None else arrivals_of(trace.arrival_s, window_s)
    lengths = lengths_of(trace.input_tokens, trace.output_tokens, trace.cached_tokens)
    if lengths is None:
        raise ValueError("a trace without a request")
    return Profile(
        trace=trace,
        arrivals=arrivals,
        lengths=lengths,
        sessions=sessions_of(trace),
        ttft_s=None if trace.ttft_s is None else distribution(trace.ttft_s),
        e2e_s=None if trace.e2e_s is None else distribution(trace.e2e_s),
        unanswered=tuple(_unanswered(trace, arrivals)),
    )


def _unanswered(trace: Trace, arrivals: Arrivals | None) -> list[Unanswered]:
    """What the file leaves open: no verdict is made up in its place."""
    found = []
    if arrivals is None:
        reason = "profile.no_times" if trace.arrival_s is None else "profile.no_span"
        found.append(Unanswered(question="arrivals", reason=Message(reason), how=Message("profile.how_times")))
    if trace.output_tokens is None:
        found.append(Unanswered(question="output_tokens", reason=Message("profile.no_outputs"), how=Message("profile.how_outputs")))
    if trace.hash_ids is None and trace.prompt_ids is None:
        found.append(Unanswered(question="prefix_reuse", reason=Message("profile.no_prompts"), how=Message("profile.how_prompts")))
    if trace.output_ids is None and trace.acceptance is None:
        found.append(Unanswered(question="draft_acceptance", reason=Message("profile.no_texts"), how=Message("profile.how_texts")))
    return found
