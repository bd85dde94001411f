"""What a simulation tells: counts, times in percentiles, rates, the device's time, and what levers change. Frozen; seconds and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from breakeven.lever import Sigma
from breakeven.messages import Message
from breakeven.simulation.arrays import Floats, Load, Outcome
from breakeven.spec.deployment import Deployment

Time = Literal["ttft", "tpot", "e2e", "queue"]
TIMES: tuple[Time, ...] = ("ttft", "tpot", "e2e", "queue")
Gained = Literal["ttft", "tpot", "e2e", "throughput"]
GAINED: tuple[Gained, ...] = ("ttft", "tpot", "e2e", "throughput")
"""What two runs are compared by; throughput (of the times between beginnings) in a closed loop alone: an open loop serves what arrives."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Where the requests stand at the end: offered = done + waiting + running + rejected."""

    offered: int
    done: int
    waiting: int
    running: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class Percentiles:
    """A time over the requests that are done, in seconds; ``n`` of them have it (a single token has no TPOT)."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A key of the objectives, and whether it was kept."""

    key: str
    limit_s: float
    value_s: float | None
    met: bool | None
    """None where the simulation cannot tell."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Sequences that decode together, of one replica."""

    mean: float
    """Over time: the effective batch."""
    by_tokens: float
    """In which the mean token of decoding is made; full steps take longer, so it is no more than E[N²]/E[N]."""
    quantiles: Mapping[str, float]
    """Over time while any sequence decodes: ``p5`` … ``p95``."""
    most: int
    share_idle: float
    """Of the time, none decodes."""


@dataclass(frozen=True, kw_only=True)
class DeviceTime:
    """Seconds of all replicas; the four add up to the run's length times its replicas."""

    prefill_s: float
    decode_s: float
    speculation_s: float
    idle_s: float


@dataclass(frozen=True, kw_only=True)
class Energy:
    """An upper figure: busy devices at their sheet's power, idle ones at none."""

    watts: float
    """Of one device: its TDP."""
    joules: float
    joules_per_output_token: float | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One run in figures."""

    counts: Counts
    times: Mapping[Time, Percentiles]
    promises: tuple[Promise, ...]
    good: int | None
    """Requests within every limit of the objectives' means; None where there are none."""
    goodput_per_s: float | None
    requests_per_s: float
    output_tokens_per_s: float
    batch: Batch
    preemptions: int
    preempted: int
    """Requests that were preempted at least once."""
    lookup_tokens: int
    hit_tokens: int
    device: DeviceTime
    energy: Energy | None
    saturated: bool
    """The queue grew over all of the arrivals."""
    end_s: float
    steps: int

    @property
    def hit_rate(self) -> float | None:
        """Prompt tokens found in the prefix cache over those looked up."""
        return self.hit_tokens / self.lookup_tokens if self.lookup_tokens else None


@dataclass(frozen=True, kw_only=True)
class GroupFigures:
    """The requests of one group of the trace; its times are of those that are done."""

    name: str
    """Empty for requests that name none."""
    offered: int
    done: int
    times: Mapping[Time, Percentiles]


@dataclass(frozen=True, kw_only=True)
class Series:
    """Means over each bin of the run; shares of the KV pool."""

    bin_s: float
    running: Floats
    waiting: Floats
    kv: Floats
    cached: Floats


@dataclass(frozen=True, kw_only=True)
class Paired:
    """How two runs of the same arrivals differ: ratio of means, above 1 better, with the 90 % interval of sampling alone."""

    gain: float
    low: float | None
    high: float | None
    difference: float
    """Mean of the pairs' differences, of the run at hand less the one it is held against, in seconds."""
    difference_low: float | None
    difference_high: float | None
    pairs: int
    batches: int


@dataclass(frozen=True, kw_only=True)
class Combination:
    """One set of levers, on the same arrivals and luck as the others."""

    levers: tuple[str, ...]
    """``lever:setting`` of those that are on."""
    as_it_stands: bool
    summary: Summary | None
    """None where it does not fit."""
    gains: Mapping[Gained, Paired]
    """Against the deployment as it stands."""


@dataclass(frozen=True, kw_only=True)
class LeverGain:
    """A lever on against off, the others as they stand."""

    lever: str
    setting: str
    on_now: bool
    gains: Mapping[Gained, Paired]
    fits: bool
    sigma: Sigma
    """The model's own error of this lever (of ln gain), which no simulation makes smaller."""


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """All combinations of the levers."""

    combinations: tuple[Combination, ...]
    levers: tuple[LeverGain, ...]
    left_out: Mapping[str, Message]


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The answer of ``simulate``."""

    deployment: Deployment
    source: str
    """The trace, or nothing where the requests were made up."""
    load: Load
    static_batch: bool
    policy: str
    outcome: Outcome
    summary: Summary
    series: Series
    groups: tuple[GroupFigures, ...]
    """In the order of their names, which is that of their priority; nothing where the trace has none."""
    lattice: Lattice | None
    notes: tuple[Message, ...]
    seed: int
