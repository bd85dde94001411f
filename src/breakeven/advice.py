"""What an advice is: frozen numbers and messages, before any words or layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breakeven.messages import Message
from breakeven.spec.deployment import Deployment

Verdict = Literal["pays", "does_not_pay", "hurts", "undecided", "not_supported", "does_not_fit"]
Metric = Literal["tpot", "ttft", "e2e", "throughput", "capacity", "cost"]
METRICS: tuple[Metric, ...] = ("tpot", "ttft", "e2e", "throughput", "capacity", "cost")
Axis = Literal["batch", "context_tokens", "acceptance_length", "prefix_hit_rate", "request_rate", "draft_tokens", "output_tokens"]
AXES: tuple[Axis, ...] = (
    "batch",
    "context_tokens",
    "acceptance_length",
    "prefix_hit_rate",
    "request_rate",
    "draft_tokens",
    "output_tokens",
)
LimitedBy = Literal["demand", "max_num_seqs", "kv_pool", "concurrency", "pinned", "prefill_pool"]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A median with its 90 % interval; ``median`` is None where the quantity is unbounded or undefined."""

    median: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class PrefillPool:
    """What prompts have of their own: medians, all replicas of the pool together."""

    devices: int
    replicas: int
    use: float | None
    """Share of its time that it computes prompts; None where no rate is known."""
    prompt_s: float
    wait_s: float | None
    """Mean wait of a prompt for a place, in an open loop; None when it is without bound, or in the first token's time already."""
    transfer_bytes: float
    transfer_s: float
    exposed_s: float
    """What of the transfer the first token waits for."""
    max_request_rate_per_s: float


@dataclass(frozen=True, kw_only=True)
class BatchOverTime:
    """Sequences decoding together on one replica, as a distribution over time: of an open loop whose rate varies."""

    p10: float
    p50: float
    p90: float
    seen_by_a_token: float
    """The batch in which the mean token is made: by tokens, not by time."""
    share_below_four: float
    saturated_share: float
    """Share of time in windows that ask for more than can be served."""
    windows: int
    window_s: float
    groups: int
    """Groups of windows over which figures and gains are averaged."""


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """Where the deployment stands: medians, per replica unless said otherwise."""

    effective_batch: float
    effective_batch_interval: Interval
    limited_by: LimitedBy
    saturated: bool
    request_rate_per_s: float | None
    """All replicas together."""
    max_request_rate_per_s: float | None
    output_tokens_per_s: float | None
    """All replicas together."""
    step_s: float | None
    tpot_s: float | None
    tpot_interval: Interval
    amortised_s_per_token: float | None
    ttft_s: float | None
    """None when saturated (unbounded) or when the workload states no prompt."""
    ttft_interval: Interval
    e2e_s: float | None
    prefill_share: float | None
    """None where the load has no prompts: a batch and a context."""
    mean_context_tokens: float
    tokens_per_round: float
    replicas: int
    prefill_pool: PrefillPool | None = None
    batch_over_time: BatchOverTime | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryLedger:
    """Bytes of one device."""

    capacity_bytes: float
    usable_bytes: float
    weight_bytes: float
    draft_weight_bytes: float
    reserve_bytes: float
    kv_pool_bytes: float
    kv_pool_tokens: float
    kv_bytes_per_token: float
    """κ: cache bytes a token adds on this device, window layers counted in full."""
    state_bytes_per_sequence: float
    """Bytes of constant state a sequence keeps on this device, however long it is (linear and state-space layers)."""
    sequence_bytes: float
    """What one sequence of the mean length keeps: its cache and its states."""
    kv_in_use_bytes: float
    kv_share: float
    """KV in use over the capacity: share of memory, not of traffic."""
    pool_use: float
    """KV in use over the pool."""
    sequences_that_fit: float
    fits: bool


@dataclass(frozen=True, kw_only=True)
class BandwidthLedger:
    """Bytes one device reads in a decode step."""

    bytes_per_step: float
    weight_bytes: float
    expert_bytes: float
    """Part of ``weight_bytes``."""
    expert_coverage: float | None
    kv_bytes: float
    """Cache read, and constant states read and written."""
    state_bytes: float
    """Part of ``kv_bytes``."""
    kv_share: float
    mbu: float


@dataclass(frozen=True, kw_only=True)
class ComputeLedger:
    """FLOP one device does in a decode step."""

    flop_per_step: float
    linear_flop: float
    attention_flop: float
    mfu: float
    ridge_rows: float
    ridge_batch: float


@dataclass(frozen=True, kw_only=True)
class InterconnectLedger:
    """Bytes one device sends in a decode step."""

    bytes_per_step: float
    share_of_step: float
    by_kind: Mapping[str, float] = field(default_factory=dict)
    """``all_reduce``, ``all_to_all``, ``context``, ``pipeline``: parts of ``bytes_per_step``."""


@dataclass(frozen=True, kw_only=True)
class Ledgers:
    """The books of one device."""

    memory: MemoryLedger
    bandwidth: BandwidthLedger
    compute: ComputeLedger
    interconnect: InterconnectLedger
    step_parts_s: Mapping[str, float]
    """Step time by part: ``dense``, ``experts``, ``attention``, ``communication``, ``fixed``, ``speculation``."""


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A metric's gain, above 1 better: off/on for times, on/off for rates, and its verdict.

    ``gain`` None: unbounded or undefined; ``note`` says which.
    """

    gain: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    note: Message | None = None


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """Where gain = 1 along an axis."""

    value: float
    low: float | None
    high: float | None
    """None: the crossing leaves the axis' range on that side within the 90 % interval."""


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """A lever along one axis. ``pays_on`` are intervals with gain ≥ 1 + threshold; None: open end of the range looked at."""

    axis: Axis
    metric: Metric
    break_even: tuple[BreakEven, ...]
    pays_on: tuple[tuple[float | None, float | None], ...]
    looked_at: tuple[float, float]
    here: float
    """Where the deployment stands on this axis."""


@dataclass(frozen=True, kw_only=True)
class MeasureNext:
    """The one measurement that would shrink the interval most."""

    quantity: str
    """``acceptance_length``, ``prefix_hit_rate``, ``two_points``, ``one_round``, ``lengths``, ``kernel`` …"""
    sentence: Message
    command: str
    settles: tuple[Verdict, ...]
    interval_after: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """Another setting of the same lever."""

    setting: str
    metrics: Mapping[Metric, Gain]
    verdict: Verdict
    because: tuple[Message, ...] = ()
    source: str = ""
    """Where it was read that a setting is not supported."""


@dataclass(frozen=True, kw_only=True)
class LeverAdvice:
    """One lever at its best supported setting."""

    lever: str
    state: Literal["off", "on"]
    setting: str
    verdict: Verdict
    """For the objective."""
    metrics: Mapping[Metric, Gain]
    boundaries: tuple[Boundary, ...]
    ledger: str
    because: tuple[Message, ...]
    alternatives: tuple[Alternative, ...]
    set: Mapping[str, str]
    """Engine to the flag that turns it on."""
    unset: Mapping[str, str]
    """Engine to the flag that turns it off."""
    accuracy: Message
    measure_next: MeasureNext | None
    source: str = ""
    """Where it was read that the lever is not supported."""
    notes: tuple[Message, ...] = ()
    """What else only this lever has to say: its side comparison, the range of k."""
    schedule: str | None = None
    """vLLM's schedule of k by batch size (JSON), where the lever is speculation."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """What only this lever has: best k range, static-batching comparison, next devices."""

    def gain(self, metric: Metric) -> Gain:
        """The gain in a metric; a KeyError names a metric that the workload does not define."""
        return self.metrics[metric]


@dataclass(frozen=True, kw_only=True)
class RuleOfThumb:
    """A rule people use, its figure here, and where it breaks."""

    id: str
    value: float
    says: Message
    breaks: Message
    agrees: bool | None
    """Whether the model comes to the same here; None: the rule is a figure, nothing is compared."""


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A set of levers, evaluated together."""

    levers: tuple[str, ...]
    """``lever:setting`` for those on."""
    metrics: Mapping[Metric, Interval]
    meets_slo: bool | None
    fits: bool


@dataclass(frozen=True, kw_only=True)
class Best:
    """The composition with the best objective under the SLO, against the deployment as it is."""

    combination: Combination
    set: Mapping[str, str]
    """Engine to the whole change of flags."""
    all: tuple[Combination, ...]
    """Every combination, best first."""
    max_request_rate_per_s: float | None = None
    """Requests a second the set sustains, all replicas; None where the workload states no requests, or the set does not fit."""
    undecided: tuple[str, ...] = ()
    """Undecided levers that the set changes all the same, since no other set keeps the SLO."""


@dataclass(frozen=True, kw_only=True)
class CheckItem:
    """One of the five things a trustworthy decision needs."""

    id: str
    status: Literal["done", "missing", "failed"]
    evidence: Message
    how: Message


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of arithmetic in an explanation."""

    symbol: str
    formula: str
    substituted: str
    value: float
    unit: str
    """A format of :mod:`breakeven.units` (``bytes``, ``time``, ``number``, ``percent``, ``gain``, ``tokens``) or plain text."""
    name: Message
    source: str


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The arithmetic of one lever, off and on, line by line."""

    lever: str
    setting: str
    off: tuple[Line, ...]
    on: tuple[Line, ...]
    result: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The whole answer."""

    deployment: Deployment
    objective: str
    objective_reason: Message
    threshold: float
    operating_point: OperatingPoint
    ledgers: Ledgers
    levers: Mapping[str, LeverAdvice]
    best: Best
    checklist: tuple[CheckItem, ...]
    rules: tuple[RuleOfThumb, ...]
    warnings: tuple[Message, ...]
    how_sure: Message
    draws: int
    seed: int
