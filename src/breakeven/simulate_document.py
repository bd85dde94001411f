"""What ``simulate`` tells: percentiles, rates, batch and cache over time, the device's time, levers. Frozen data, versioned."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

SIMULATION_SCHEMA: Final = "breakeven.simulation/1"


class SimulationTitle(Struct, frozen=True, kw_only=True):
    """What was simulated, in words."""

    deployment: str
    workload: str


class SimulationLoad(Struct, frozen=True, kw_only=True):
    """How the requests came."""

    trace: str | None
    """Null where the requests were made up."""
    arrivals: Literal["open", "closed"]
    clients: int | None
    replicas: int
    router: str
    policy: str
    static_batch: bool
    duration_s: float | None
    acceptance_cumulative: list[float]


class SimulationCounts(Struct, frozen=True, kw_only=True):
    """Where the requests stand at the end: offered = done + waiting + running + rejected."""

    offered: int
    done: int
    waiting: int
    running: int
    rejected: int


class SimulationPercentiles(Struct, frozen=True, kw_only=True):
    """A time over the requests that are done, in seconds."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class SimulationPromise(Struct, frozen=True, kw_only=True):
    """A key of the objectives, and whether it was kept; null where it cannot be told."""

    key: str
    limit_s: float
    value_s: float | None
    met: bool | None


class SimulationBatch(Struct, frozen=True, kw_only=True):
    """Sequences that decode together, of one replica."""

    mean: float
    """Over time: the effective batch."""
    by_tokens: float
    """As tokens see it: E[N²]/E[N]."""
    quantiles: dict[str, float]
    """Over the time in which any decodes."""
    most: int
    share_idle: float
    """Of the time, none decodes."""
    seconds_by_size: list[float]
    """Seconds, all replicas, in which b sequences decode: entry b."""


class SimulationDeviceTime(Struct, frozen=True, kw_only=True):
    """Seconds of all replicas, and what share of them."""

    prefill_s: float
    decode_s: float
    speculation_s: float
    idle_s: float
    prefill_share: float
    decode_share: float
    speculation_share: float
    idle_share: float


class SimulationEnergy(Struct, frozen=True, kw_only=True):
    """An upper figure: devices at their TDP while busy; what they draw while idle is not counted."""

    device_watts: float
    joules: float
    joules_per_output_token: float | None


class SimulationPrefix(Struct, frozen=True, kw_only=True):
    """Prompt tokens looked up in the prefix cache, and found."""

    lookup_tokens: int
    hit_tokens: int
    hit_rate: float | None


class SimulationFigures(Struct, frozen=True, kw_only=True):
    """One run."""

    counts: SimulationCounts
    times: dict[str, SimulationPercentiles]
    """``ttft``, ``tpot``, ``e2e``, ``queue``."""
    promises: list[SimulationPromise]
    good: int | None
    """Requests within every limit of the objectives' means; null where there are none."""
    goodput_per_s: float | None
    requests_per_s: float
    output_tokens_per_s: float
    batch: SimulationBatch
    preemptions: int
    preempted_requests: int
    prefix: SimulationPrefix
    device: SimulationDeviceTime
    energy: SimulationEnergy | None
    saturated: bool
    end_s: float
    steps: int


class SimulationSeries(Struct, frozen=True, kw_only=True):
    """Means over bins of the run, all replicas; the cache in shares of the pool."""

    bin_s: float
    running: list[float]
    waiting: list[float]
    kv_share: list[float]
    cached_share: list[float]


class SimulationGroup(Struct, frozen=True, kw_only=True):
    """The requests of one group of the trace; times, in seconds, of those that are done, null where none is."""

    name: str
    """Empty for requests that name none."""
    offered: int
    done: int
    ttft_p50_s: float | None
    ttft_p99_s: float | None
    tpot_mean_s: float | None
    e2e_mean_s: float | None


class SimulationGain(Struct, frozen=True, kw_only=True):
    """How two runs of the same arrivals differ, above 1 better, with the 90 % interval of sampling alone."""

    gain: float | None
    low: float | None
    high: float | None
    difference_s: float
    difference_low_s: float | None
    difference_high_s: float | None
    pairs: int
    batches: int


class SimulationCombination(Struct, frozen=True, kw_only=True):
    """A set of levers against the deployment as it stands."""

    levers: list[str]
    title: str
    as_it_stands: bool
    fits: bool
    gains: dict[str, SimulationGain]
    figures: SimulationFigures | None


class SimulationLever(Struct, frozen=True, kw_only=True):
    """A lever on against off, the others as they stand."""

    lever: str
    title: str
    setting: str
    state: Literal["off", "on"]
    fits: bool
    gains: dict[str, SimulationGain]
    model_sigma_step: float
    """The model's own error of ln gain over a step, which is not in the intervals."""
    model_sigma_prefill: float


class SimulationLeftOut(Struct, frozen=True, kw_only=True):
    """A lever that was not turned, and why."""

    lever: str
    title: str
    reason: str


class SimulationLattice(Struct, frozen=True, kw_only=True):
    """All combinations of the levers."""

    levers: list[SimulationLever]
    combinations: list[SimulationCombination]
    left_out: list[SimulationLeftOut]
    interval: str
    """What the intervals are of."""


class SimulationDocument(Struct, frozen=True, kw_only=True):
    """The answer of ``simulate``."""

    schema: Literal["breakeven.simulation/1"] = SIMULATION_SCHEMA
    language: Literal["en", "zh"]
    title: SimulationTitle
    headline: str
    load: SimulationLoad
    figures: SimulationFigures
    series: SimulationSeries
    groups: list[SimulationGroup]
    """In the order of their names, which is that of their priority; empty where the trace has none."""
    lattice: SimulationLattice | None
    notes: list[str]
    seed: int
