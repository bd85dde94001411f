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
    damaged_records: list[int]
    """Which elements of the file they are, where its records are no lines; else empty."""
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


class ProfileOccupancy(Struct, frozen=True, kw_only=True):
    """Sequences decoding together on one replica, over time."""

    mean: float
    p5: float
    p10: float
    p50: float
    p90: float
    p95: float
    p99: float
    seen_by_a_token: float
    """The batch in which the mean token is made."""
    seen_by_a_sequence: float
    """E[N²]/E[N]: the batch that a sequence is in at a random moment of its decoding."""
    share_below_four: float
    share_idle: float
    saturated_share: float
    """Share of time in windows that ask for more than can be served."""


class ProfileSchedule(Struct, frozen=True, kw_only=True):
    """Drafted tokens by batch: up to ``to`` sequences ``k``; 0 is off."""

    k: int
    first: int
    to: int
    to_low: float | None
    to_high: float | None
    """The 90 % interval of the border; null where it leaves the range looked at, and for the last."""


class ProfileBatches(Struct, frozen=True, kw_only=True):
    """The effective batch over time on the deployment."""

    deployment: str
    replicas: int
    by_windows: ProfileOccupancy
    """Each window in a steady state of its own."""
    by_simulation: ProfileOccupancy | None
    """Every request followed; null where the simulation cannot run."""
    window_s: float
    batches: list[float]
    """Mean of each window, in order."""
    tpot_s: float | None
    ttft_s: float | None
    """Means over requests; null where the queue grows without bound."""
    speculation: str | None
    """What drafts by the schedule; null where nothing can."""
    schedule: list[ProfileSchedule]
    schedule_setting: str | None
    """The schedule as the engine takes it; null where it takes none."""
    sentence: str


class ProfileCapacity(Struct, frozen=True, kw_only=True):
    """The reuse of a prefix cache of so many tokens."""

    tokens: float
    hit_rate: float
    """Share of prompt tokens."""
    touched: float | None
    """Share of requests with a hit; null for a sample."""
    cache_bytes: float | None
    """On the deployment, all devices of a replica; null without one."""


class ProfileSplit(Struct, frozen=True, kw_only=True):
    """Where prompts that begin alike part."""

    position_tokens: int
    requests: int
    continuations: int
    share: float
    """Of all prompt tokens, computed again because of it."""


class ProfileReuse(Struct, frozen=True, kw_only=True):
    """Repeated prefixes."""

    block_tokens: int
    partial: bool
    """Whether last partial blocks are counted, which no engine reuses."""
    blocks: int
    unique_blocks: int
    unbounded_hit_rate: float
    unbounded_block_hit_rate: float
    sampling_error: float
    """Half-width of the 95 % interval of the hit rates; 0 where they are exact."""
    capacities: list[ProfileCapacity]
    left_over_tokens: float | None
    """What running sequences leave of the pool of one rank, on the deployment."""
    prompt_room_tokens: float | None
    """What of it holds prompts, those that run included."""
    left_over_hit_rate: float | None
    """The hit rate in that."""
    over_time_hit_rate: float | None
    """The same over the distribution of the batch."""
    quantised_setting: str | None
    """A smaller format of the cache …"""
    quantised_hit_rate: float | None
    """… and the hit rate with it, in the larger room it leaves."""
    ceiling_tokens: float | None
    """What a cache without end would save: share of the prompt tokens …"""
    ceiling_prefill: float | None
    """… of the FLOP of prompts …"""
    ceiling_total: float | None
    """… and of the FLOP of prompts and outputs; null without a deployment."""
    diverged_share: float | None
    """Share of prompt tokens after a place where an equal prefix had gone on otherwise."""
    extended_share: float | None
    splits: list[ProfileSplit]
    notes: list[str]


class ProfileDrafting(Struct, frozen=True, kw_only=True):
    """A drafter at one k."""

    k: int
    acceptance_length: float
    """Over all rounds, bonus token included."""
    low: float | None
    high: float | None
    """Its 90 % interval, by resampling requests."""
    acceptance_rate: float | None
    """Accepted over drafted."""
    cumulative: list[float]
    """By position, over all rounds; empty, as all by position, where the log's tokens are approximate."""
    per_draft: list[float]
    """By position, over the rounds that drafted, as engines count it."""
    conditional: list[float | None]
    """By position, of the rounds that reached it."""
    drafted_share: float
    """Share of rounds that drafted anything."""
    rounds: int
    drafted: int
    accepted: int


class ProfileBestK(Struct, frozen=True, kw_only=True):
    """The k of the least time per token with so many sequences decoding; 0 is off."""

    batch: int
    k: int
    gain: float
    """Time per token without drafting over the time with it; 1 where off is best."""


class ProfileDrafts(Struct, frozen=True, kw_only=True):
    """Drafting replayed on the logged tokens."""

    method: str
    rule: str
    settings: dict[str, float | int | None]
    approximate: bool
    by_k: list[ProfileDrafting]
    groups: dict[str, list[ProfileDrafting]]
    best_k: int | None
    k_range: list[int] | None
    """On the deployment: the k of the least time per token, and those within a hundredth of it; 0 is off."""
    batch: int | None
    """The batch that it is for."""
    gain: float | None
    by_batch: list[ProfileBestK]
    group_k: dict[str, int]
    """The best k of each group alone."""
    notes: list[str]


class ProfileAcceptance(Struct, frozen=True, kw_only=True):
    """What is known of the acceptance of the draft method in force, or that would be meant."""

    method: str
    k: int
    cumulative: list[float]
    low: list[float] | None
    high: list[float] | None
    """90 % interval."""
    source: str
    """``metrics``, ``declared``, ``trace``, ``replay`` or ``prior``."""
    provenance: str


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
    batches: ProfileBatches | None
    """On the deployment that was given."""
    reuse: ProfileReuse | None
    drafts: ProfileDrafts | None
    acceptance: ProfileAcceptance | None
    """On the deployment: of its draft method, from counters, the file, the replay or the prior."""
    unanswered: list[ProfileUnanswered]
    warnings: list[str]
    seed: int
