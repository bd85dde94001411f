"""What a replay found: rounds, drafts and accepted tokens, counted exactly, for every k and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Drafting:
    """One group's rounds at one k: counts of the log, and what follows from them."""

    k: int
    """The most tokens a round drafts (``num_speculative_tokens``); 0 is plain decoding."""
    requests: int
    rounds: int
    """Decode rounds: a prompt's own pass gives the first token, a round the rest."""
    emitted: int
    """Tokens that rounds gave: all of the outputs but their first tokens."""
    drafts_at: tuple[int, ...]
    """Rounds that drafted at least i tokens, i = 1 … k."""
    accepted_at: tuple[int, ...]
    """Rounds in which the token drafted at position i was accepted, i = 1 … k."""
    asked_at: tuple[int, ...]
    """Rounds that drafted position i within the log and accepted all before it, i = 1 … k."""
    past_end: int
    """Drafted tokens that lie past the end of a logged output: counted as drafted and not as accepted, since the log cannot tell."""
    cut_short: int
    """Rounds at the end of an output whose drafted tokens reached it, so that no bonus token followed."""
    length_interval: Interval | None = None
    """90 % of ``acceptance_length``, by resampling requests; None for a single request."""
    cumulative_intervals: tuple[Interval, ...] | None = None
    """90 % of each of ``cumulative``, by resampling requests."""

    @property
    def drafted(self) -> int:
        """Tokens drafted."""
        return sum(self.drafts_at)

    @property
    def accepted(self) -> int:
        """Drafted tokens accepted."""
        return sum(self.accepted_at)

    @property
    def drafted_rounds(self) -> int:
        """Rounds that drafted anything."""
        return self.drafts_at[0] if self.drafts_at else 0

    @property
    def drafted_share(self) -> float:
        """Share of rounds that drafted anything."""
        return self.drafted_rounds / self.rounds if self.rounds else 0.0

    @property
    def cumulative(self) -> tuple[float, ...]:
        """p_i over all rounds: those in which position i was accepted; never rises with i."""
        return tuple(n / self.rounds if self.rounds else 0.0 for n in self.accepted_at)

    @property
    def conditional(self) -> tuple[float | None, ...]:
        """α_i: accepted at position i, of the rounds asked for it; None where there is none.

        A round accepted to its last drafted token was not asked for the next.
        """
        return tuple(n / of if of else None for n, of in zip(self.accepted_at, self.asked_at, strict=True))

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over drafted; None where nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def acceptance_length(self) -> float:
        """τ = 1 + Σ p_i over all rounds, the bonus token included; a round without a draft counts 1."""
        return 1.0 + (self.accepted / self.rounds if self.rounds else 0.0)

    @property
    def tokens_per_round(self) -> float:
        """Tokens of the log over rounds: τ less the bonus tokens that ends of outputs cut off."""
        return self.emitted / self.rounds if self.rounds else 1.0


def per_draft(drafting: Drafting) -> tuple[float, ...]:
    """p_i over the rounds that drafted, as engines count it (accepted tokens per position over drafts)."""
    return tuple(n / drafting.drafted_rounds if drafting.drafted_rounds else 0.0 for n in drafting.accepted_at)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A drafter replayed on a log: every k over all requests, and in each group."""

    method: str
    """``ngram`` or ``suffix``."""
    settings: Mapping[str, float | int | None]
    """The drafter's settings, by the engine's names."""
    rule: str
    """Whose rule it is, with its version."""
    total: tuple[Drafting, ...]
    """One entry a k, ascending."""
    groups: Mapping[str | None, tuple[Drafting, ...]]
    """The same in each of the largest groups (route, model …), all others together under None; empty where the log names none."""
    without_output: int
    """Requests with fewer than two logged output tokens: they have no round."""
    other_groups: int = 0
    """How many those under None are."""
    approximate: bool = False
    """Whether tokens are approximate pieces of text: then nothing holds of a position, and figures are rough."""

    @property
    def ks(self) -> tuple[int, ...]:
        """The k that were replayed."""
        return tuple(drafting.k for drafting in self.total)
