"""What a report is: frozen data, versioned, with every sentence already in the reader's language.

A field is never renamed or removed without raising ``SCHEMA``; fields may be added. ``None`` means unbounded or not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from breakeven.advice import Axis, LimitedBy, Verdict
from breakeven.backtest_document import BACKTEST_SCHEMA, BacktestDocument
from breakeven.calibrate_document import CALIBRATE_SCHEMA, CalibrateDocument
from breakeven.catalog_document import CATALOG_SCHEMA, CatalogDocument
from breakeven.observed_document import Observed
from breakeven.probe_document import PROBE_SCHEMA, ProbeDocument
from breakeven.profile_document import PROFILE_SCHEMA, ProfileDocument
from breakeven.simulate_document import SIMULATION_SCHEMA, SimulationDocument
from breakeven.spec.evidence import EVIDENCE_SCHEMA, Evidence

SCHEMA: Final = "breakeven.advice/1"
EXPLANATION_SCHEMA: Final = "breakeven.explanation/1"


class Interval(Struct, frozen=True, kw_only=True):
    """A median and its 90 % interval."""

    median: float | None
    low: float | None
    high: float | None


class Title(Struct, frozen=True, kw_only=True):
    """What the report is about, in words."""

    deployment: str
    workload: str


class Input(Struct, frozen=True, kw_only=True):
    """One input as it was taken, and where it came from."""

    path: str
    value: Any
    provenance: str


class PrefillPool(Struct, frozen=True, kw_only=True):
    """What prompts have of their own: all replicas of the pool together."""

    devices: int
    replicas: int
    use: float | None
    prompt_s: float
    wait_s: float | None
    transfer_bytes: float
    transfer_s: float
    exposed_s: float
    max_request_rate_per_s: float


class BatchOverTime(Struct, frozen=True, kw_only=True):
    """Sequences decoding together on one replica, as a distribution over time: where a trace's rate varies."""

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
    sentence: str


class OperatingPoint(Struct, frozen=True, kw_only=True):
    """Where the deployment stands: times of one replica, rates of all replicas. What does not fit has no times and no rates."""

    effective_batch: float | None
    limited_by: LimitedBy
    saturated: bool
    request_rate_per_s: float | None
    max_request_rate_per_s: float | None
    output_tokens_per_s: float | None
    step_s: float | None
    tpot_s: float | None
    amortised_s_per_token: float | None
    ttft_s: float | None
    e2e_s: float | None
    prefill_share: float | None
    mean_context_tokens: float | None
    tokens_per_round: float | None
    replicas: int
    prefill_pool: PrefillPool | None
    """Of disaggregated serving; the rest of the document is then of the decode pool."""
    intervals: dict[str, Interval]
    sentence: str
    batch_over_time: BatchOverTime | UnsetType = UNSET
    """Absent where the rate does not vary."""


class Memory(Struct, frozen=True, kw_only=True):
    """Bytes held on one device."""

    capacity_bytes: float
    usable_bytes: float
    weight_bytes: float
    draft_weight_bytes: float
    reserve_bytes: float
    kv_pool_bytes: float
    kv_bytes_per_token: float
    state_bytes_per_sequence: float
    kv_pool_tokens: float
    sequence_bytes: float
    kv_in_use_bytes: float
    kv_share: float | None
    pool_use: float | None
    sequences_that_fit: float | None
    fits: bool


class Bandwidth(Struct, frozen=True, kw_only=True):
    """Bytes read by one device in a decode step."""

    bytes_per_step: float
    weight_bytes: float
    expert_bytes: float
    expert_coverage: float | None
    kv_bytes: float
    state_bytes: float
    kv_share: float | None
    mbu: float | None


class Compute(Struct, frozen=True, kw_only=True):
    """FLOP done by one device in a decode step."""

    flop_per_step: float
    linear_flop: float
    attention_flop: float
    mfu: float | None
    ridge_rows: float | None
    ridge_batch: float | None


class Interconnect(Struct, frozen=True, kw_only=True):
    """Bytes sent by one device in a decode step."""

    bytes_per_step: float
    share_of_step: float | None
    by_kind: dict[str, float]
    """``all_reduce``, ``all_to_all``, ``context``, ``pipeline``: parts of ``bytes_per_step``."""


class Ledgers(Struct, frozen=True, kw_only=True):
    """The books of one device."""

    memory: Memory
    bandwidth: Bandwidth
    compute: Compute
    interconnect: Interconnect
    step_parts_s: dict[str, float]
    devices_per_replica: int


class Gain(Struct, frozen=True, kw_only=True):
    """How much better a metric is, above 1 better: off/on for times, on/off for rates."""

    gain: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    note: str | None = None


class BreakEven(Struct, frozen=True, kw_only=True):
    """Where the gain is 1."""

    value: float
    low: float | None
    high: float | None


class Boundary(Struct, frozen=True, kw_only=True):
    """A lever along one axis: where its gain is 1, and where its median gain reaches the threshold.

    ``null`` ends are the open ends of the range looked at.
    """

    axis: Axis
    metric: str
    break_even: list[BreakEven]
    pays_on: list[tuple[float | None, float | None]]
    looked_at: tuple[float, float]
    here: float
    sentence: str


class MeasureNext(Struct, frozen=True, kw_only=True):
    """The one measurement that would shrink the interval most."""

    quantity: str
    sentence: str
    command: str
    settles: list[Verdict]
    interval_after: tuple[float, float]


class Alternative(Struct, frozen=True, kw_only=True):
    """Another setting of the same lever."""

    setting: str
    verdict: Verdict
    metrics: dict[str, Gain]
    because: list[str]
    source: str = ""
    """Where it was read that the setting is not supported."""


class RuleOfThumb(Struct, frozen=True, kw_only=True):
    """A rule people use, its figure here, and where it breaks."""

    id: str
    value: float | None
    says: str
    breaks: str
    agrees: bool | None


class Lever(Struct, frozen=True, kw_only=True):
    """One lever at its best supported setting."""

    lever: str
    title: str
    state: Literal["off", "on"]
    setting: str
    verdict: Verdict
    metrics: dict[str, Gain]
    against: list[str]
    """Metrics that move against the verdict."""
    boundaries: list[Boundary]
    pays_where: str
    """The nearest places where the median gain reaches the threshold; the verdict asks for more, nine chances in ten."""
    ledger: str
    because: list[str]
    source: str = ""
    """Where it was read that the lever is not supported."""
    notes: list[str]
    """Side comparisons: the range of k and its schedule, static batching, the next devices."""
    alternatives: list[Alternative]
    set: dict[str, str]
    """Engine to what is typed to turn it on; empty where ``set_notes`` says all there is to do."""
    unset: dict[str, str]
    set_notes: dict[str, str]
    """Engine to what is to be done beside the flag."""
    unset_notes: dict[str, str]
    lossy: bool
    """Whether it changes what the model computes."""
    accuracy: str
    rules_of_thumb: list[str]
    """Ids of the document's rules that speak of this lever."""
    measure_next: MeasureNext | None
    schedule: str | None
    extra: dict[str, Any]


class Combination(Struct, frozen=True, kw_only=True):
    """A set of levers evaluated together, against the deployment as it is."""

    levers: list[str]
    metrics: dict[str, Interval]
    meets_slo: bool | None
    fits: bool


class Best(Struct, frozen=True, kw_only=True):
    """The set with the best objective under the SLO."""

    levers: list[str]
    titles: list[str]
    """What changes; the levers that are not named stay as they are."""
    metrics: dict[str, Interval]
    meets_slo: bool | None
    fits: bool
    set: dict[str, str]
    notes: list[str]
    """What is to be done beside the flags."""
    undecided: list[str]
    """Undecided levers that the set changes all the same, since no other set keeps the SLO."""
    all: list[Combination]


class CheckItem(Struct, frozen=True, kw_only=True):
    """One of the five things a trustworthy decision needs."""

    id: str
    title: str
    status: Literal["done", "missing", "failed"]
    evidence: str
    how: str


class Document(Struct, frozen=True, kw_only=True):
    """The answer of ``advise``."""

    schema: Literal["breakeven.advice/1"] = SCHEMA
    language: Literal["en", "zh"]
    title: Title
    deployment: dict[str, Any]
    provenance: dict[str, str]
    inputs: list[Input]
    operating_point: OperatingPoint
    ledgers: Ledgers
    objective: str
    objective_metric: str
    objective_reason: str
    threshold: float
    levers: list[Lever]
    best: Best
    checklist: list[CheckItem]
    rules_of_thumb: list[RuleOfThumb]
    how_sure: str
    warnings: list[str]
    draws: int
    seed: int
    observed: Observed | UnsetType = UNSET
    """Absent where nothing was."""


class Line(Struct, frozen=True, kw_only=True):
    """One line of arithmetic."""

    symbol: str
    formula: str
    substituted: str
    value: float | None
    unit: str
    name: str
    source: str


class ExplanationDocument(Struct, frozen=True, kw_only=True):
    """The arithmetic of one lever, off and on."""

    schema: Literal["breakeven.explanation/1"] = EXPLANATION_SCHEMA
    language: Literal["en", "zh"]
    lever: str
    title: str
    setting: str
    off: list[Line]
    on: list[Line]
    result: list[Line]


PUBLISHED: Mapping[str, tuple[str, type[Any]]] = {
    "advice-1.schema.json": (SCHEMA, Document),
    "explanation-1.schema.json": (EXPLANATION_SCHEMA, ExplanationDocument),
    "catalog-1.schema.json": (CATALOG_SCHEMA, CatalogDocument),
    "backtest-1.schema.json": (BACKTEST_SCHEMA, BacktestDocument),
    "calibrate-1.schema.json": (CALIBRATE_SCHEMA, CalibrateDocument),
    "evidence-1.schema.json": (EVIDENCE_SCHEMA, Evidence),
    "probe-1.schema.json": (PROBE_SCHEMA, ProbeDocument),
    "profile-1.schema.json": (PROFILE_SCHEMA, ProfileDocument),
    "simulation-1.schema.json": (SIMULATION_SCHEMA, SimulationDocument),
}
"""File of ``docs/reference`` to the document whose schema it holds."""


def json_schema(name: str = "advice-1.schema.json") -> dict[str, Any]:
    """The JSON schema of a document, as published in ``docs/reference`` under that name."""
    title, document = PUBLISHED[name]
    # Defaults of data classes are tuples, which JSON does not know: what is given back is what is written.
    schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(document)))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
