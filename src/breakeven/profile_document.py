"""What ``profile`` tells of a trace: arrivals, lengths, the effective batch, reuse, drafts. Frozen data, a versioned schema."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

PROFILE_SCHEMA: Final = "breakeven.profile/1"


class ProfileFile(Struct, frozen=True, kw_only=True):
    """The file as it was read."""

    name: str
    form: str
    requests: int
    span_s: float | None
    """Null where the file has no times."""
    damaged: int
    damaged_lines: list[int]
    """The numbers of the first of them, from 1."""
    notes: list[str]


class ProfileDistribution(Struct, frozen=True, kw_only=True):
    """A quantity over those requests of which it is known."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    least: float
    most: float
    variation: float
    """Standard deviation over mean."""


class ProfileDispersion(Struct, frozen=True, kw_only=True):
    """Variance over mean of the counts in windows of one length: 1 for Poisson arrivals."""

    window_s: float
    windows: int
    index: float
    low: float
    high: float
    """Poisson arrivals give an index between these in 95 % of such counts."""
    kind: Literal["regular", "poisson", "bursty"]


class ProfileArrivals(Struct, frozen=True, kw_only=True):
    """When requests arrive: rates in requests a second."""

    rate_per_s: float
    window_s: float
    rates_per_s: list[float]
    """Of each whole window, in order."""
    peak_rate_per_s: float
    peak_at_s: float
    """When the busiest window begins."""
    quiet_rate_per_s: float
    quiet_at_s: float
    variation: float | None
    """Standard deviation of the times between arrivals over their mean: 1 for Poisson."""
    at_once: float
    """Share of requests that arrive at the very time of the one before."""
    dispersions: list[ProfileDispersion]
    sentence: str


class ProfileLengths(Struct, frozen=True, kw_only=True):
    """Tokens of prompts and outputs; what the file does not tell is null."""

    input_tokens: ProfileDistribution
    output_tokens: ProfileDistribution | None
    correlation: float | None
    cached_share: float | None
    """Share of the prompt tokens that the engine says it took from its prefix cache."""


class ProfileSessions(Struct, frozen=True, kw_only=True):
    """Conversations, where the file tells them apart."""

    sessions: int
    requests: ProfileDistribution
    pause_s: ProfileDistribution | None


class ProfileUnanswered(Struct, frozen=True, kw_only=True):
    """A question for which there is not enough information, and what would answer it."""

    question: str
    reason: str
    how: str


class ProfileDocument(Struct, frozen=True, kw_only=True):
    """The answer of ``profile``: a part that the trace does not tell is null, and named under ``unanswered``."""

    schema: Literal["breakeven.profile/1"] = PROFILE_SCHEMA
    language: Literal["en", "zh"]
    file: ProfileFile
    arrivals: ProfileArrivals | None
    lengths: ProfileLengths
    sessions: ProfileSessions | None
    ttft_s: ProfileDistribution | None
    """As the file has it measured."""
    e2e_s: ProfileDistribution | None
    unanswered: list[ProfileUnanswered]
    warnings: list[str]
    seed: int
