"""What speculation accepted: rate, length and shares by position, three forms that are not each other."""

from __future__ import annotations

from breakeven.observation import rounds
from breakeven.observation.estimate import figure, ratio
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Figure, Said, Sure

ADDS_UP = 0.01
"""How far what was accepted by position may miss what was accepted: readings fall between the two counts."""


def acceptance_rate(accepted: float, drafted: float) -> float:
    """Accepted over drafted tokens: rises when fewer are drafted, which is no gain. Unit: 1.

    >>> round(acceptance_rate(3325.0, 5838.0), 3)
    0.57
    """
    return accepted / drafted


def acceptance_length(accepted: float, rounds: float) -> float:
    """τ = 1 + accepted/rounds that drafted: tokens a round emits, the bonus token included. Unit: tokens.

    Source: what the target model adds itself (Leviathan 2023, algorithm 1).

    >>> round(acceptance_length(3325.0, 1954.0), 3)
    2.702
    """
    return 1.0 + accepted / rounds


def figures(q: Quantities) -> dict[str, Figure]:
    """Acceptance rate and length of the rounds that drafted, tokens a round over all of them, and the share of rounds that drafted."""
    sure, drafted, accepted, rounds = counted(q)
    names = q.metrics("accepted_tokens", "draft_tokens", "drafts")
    found = {
        "acceptance_rate": figure(ratio(accepted, drafted), sure, "observed.how_acceptance_rate", names) or _gauge(q, "accept_rate_gauge"),
        "acceptance_length": figure(
            None if accepted is None or not rounds else acceptance_length(accepted, rounds), sure, "observed.how_acceptance_length", names
        )
        or _gauge(q, "accept_length_gauge"),
        "draft_tokens_per_round": figure(ratio(drafted, rounds), sure, "observed.how_drafted", names),
        "tokens_per_round": _over_all(q),
        "drafted_share": _drafted_share(q),
    }
    return {name: one for name, one in found.items() if one is not None}


def counted(q: Quantities) -> tuple[Sure, float | None, float | None, float | None]:
    """Drafted and accepted tokens and rounds of the window; where none was drafted in it, since the engine started: never a mixture."""
    if q.moved("draft_tokens") is not None or q.moved("drafts") is not None:
        return "counted", q.rise("draft_tokens"), q.rise("accepted_tokens"), q.rise("drafts")
    return "since_start", q.total("draft_tokens"), q.total("accepted_tokens"), q.total("drafts")


def cumulative(q: Quantities) -> tuple[float, ...]:
    """p_i: share of the rounds that drafted in which position i was accepted, and so all before it; empty where not told."""
    sure, _, _, rounds = counted(q)
    at = q.by_split("accepted_at", since_start=sure == "since_start")
    if not rounds:
        return ()
    positions = sorted((int(position), value) for position, value in at.items() if position.isdecimal())
    return tuple(value / rounds for _, value in positions)


def _gauge(q: Quantities, quantity: str) -> Figure | None:
    level = q.level(quantity, "mean")
    return None if level is None or level.mean <= 0.0 else figure(level.mean, "sampled", "observed.how_acceptance_gauge", level.metrics)


def _over_all(q: Quantities) -> Figure | None:
    return figure(rounds.tokens_per_round(q), "counted", "observed.how_tokens_per_round", q.metrics("output_tokens", "itl"))


def _drafted_share(q: Quantities) -> Figure | None:
    """Rounds that drafted over all rounds of sequences: n-gram drafting often finds nothing to propose."""
    share = ratio(q.moved("drafts"), rounds.sequence_rounds(q))
    return figure(None if share is None else min(share, 1.0), "counted", "observed.how_drafted_share", q.metrics("drafts", "itl"))


def warnings(q: Quantities) -> tuple[Said, ...]:
    """Accepted tokens by position that do not add up to those accepted."""
    sure, _, accepted, _ = counted(q)
    by_position = sum(q.by_split("accepted_at", since_start=sure == "since_start").values())
    if not accepted or not by_position or abs(by_position - accepted) <= max(ADDS_UP * accepted, 1.0):
        return ()
    return (Said(key="observed.warn_positions", values={"positions": by_position, "accepted": accepted}),)
