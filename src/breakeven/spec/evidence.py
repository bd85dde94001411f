"""What was observed of a running engine, as it is kept (schema ``breakeven.evidence/1``): an operating point, and how it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

EVIDENCE_SCHEMA: Final = "breakeven.evidence/1"
Sure = Literal["counted", "derived", "sampled", "since_start"]
"""Counters over the window; counters by a law (Little's); gauges at the moments of reading; counters since the engine started."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number."""

    value: float
    sure: Sure
    how: str
    """Which estimator: a key of ``locale/*/observed.toml``, its area before it."""
    metrics: tuple[str, ...] = ()
    """The metrics it was made of, by their names on the page."""
    low: float | None = None
    high: float | None = None
    """90 % interval, or the range of the estimators that could be made, where more than one could."""


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Latencies from a histogram, straight inside its buckets."""

    mean: float
    count: float
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    """None: beyond the last bucket that is bounded."""
    metric: str = ""
    sense: str = ""
    """What this metric calls by that name: a key of ``locale/*/adapter.toml``."""
    sure: Sure = "counted"
    """``since_start`` where nothing was observed in the window."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """A level over time, of one replica (ranks summed, replicas pooled): values, rising, and the share of the time at each."""

    values: tuple[float, ...]
    shares: tuple[float, ...]
    sure: Sure
    metric: str = ""


@dataclass(frozen=True, kw_only=True)
class Said:
    """A sentence kept as data: its key in the catalogue and its values as text or numbers."""

    key: str
    values: Mapping[str, str | float | int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Windowed:
    """The load over time: equal windows in order, where the observation is long enough."""

    window_s: float
    requests: tuple[float, ...]
    """That arrived in each (that ended, where the engine tells no more), on all replicas."""
    output_tokens: tuple[float, ...]
    """Of each, on all replicas."""
    running: tuple[float, ...] = ()
    """Mean sequences decoding on one replica in each."""
    observed: tuple[float, ...] = ()
    """Share of each between readings that are not too far apart; empty: all of all."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the engine says of itself: every value is measured."""

    engine: str
    version: str = ""
    model: str = ""
    settings: Mapping[str, str | float | int | bool] = field(default_factory=dict)
    """Fields of ``Engine`` by their names, as a deployment file would hold them."""
    speculative: Mapping[str, str | float | int | bool] = field(default_factory=dict)
    kv_tokens: int | None = None
    """Tokens that the cache of one replica (of ranks: of one rank) holds."""
    kv_tokens_local: bool = False
    """Whether that is one device's count, which context parallelism multiplies (vLLM pull request 40895)."""
    device: str = ""
    """Name in the catalogue of devices, where the device could be read."""
    devices: int | None = None
    devices_seen: int | None = None
    """Devices in the machine, where not all of them need be this server's."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Which endpoint or tool told each of them."""
    silent: Mapping[str, Said] = field(default_factory=dict)
    """Endpoint or tool that was asked and told nothing, and why."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """An observation."""

    schema: Literal["breakeven.evidence/1"] = EVIDENCE_SCHEMA
    breakeven: str
    """Version of the program."""
    source: Literal["live", "history"]
    target: str
    """Address of the server, without user, password and query."""
    start: str
    end: str
    """ISO 8601, UTC."""
    seconds: float
    readings: int
    missed: int = 0
    every_s: float
    replicas: int = 1
    ranks: int = 1
    """Of each replica."""
    told: Told
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """The best of each. Of one replica: ``effective_batch`` (mean over time, idle time in it), ``batch_in_step`` (mean over steps),
    ``busy_share``, ``prompt_share`` (of the time, in steps that read prompts), ``step_s`` (of a round, where it drafts), ``tpot_s``,
    ``context_tokens``, ``running``, ``waiting``, ``kv_usage``. Of all replicas: ``output_tokens_per_s``, ``input_tokens_per_s`` (cached
    ones in it), ``computed_tokens_per_s``, ``request_rate_per_s``, ``failed_per_s``, ``preemptions_per_s``, ``in_flight``. Of requests:
    ``input_tokens``, ``output_tokens``, ``ttft_s``, ``e2e_s``, ``queue_s``, ``prefix_hit_rate``. Of rounds: ``acceptance_rate``
    (accepted/drafted), ``acceptance_length`` (bonus included) and ``draft_tokens_per_round`` of those that drafted, ``tokens_per_round``
    of all, ``drafted_share``. Of one device, with a deployment: ``mbu``, ``mfu``, ``mfu_with_prompts`` (over the window), ``kv_share``,
    ``bytes_per_step``, ``flop_per_step``, ``predicted_step_s``; from its own counters ``dram_active``, ``tensor_active``."""
    estimators: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    """All that tell a figure, the best first, where there may be several."""
    acceptance_cumulative: tuple[float, ...] = ()
    """Share of the rounds that drafted in which the position was accepted, and so all before it, from the first."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """What counters rose by in the window, by quantity, histograms as ``<quantity>_count`` and ``<quantity>_sum``: exact."""
    levels: Mapping[str, Levels] = field(default_factory=dict)
    """``running``, ``waiting``, ``kv_usage``."""
    latencies: Mapping[str, Quantiles] = field(default_factory=dict)
    """``ttft``, ``itl``, ``tpot``, ``e2e``, ``queue``."""
    windows: Windowed | None = None
    checks: tuple[Said, ...] = ()
    """Self-checks that were made (Little's law) and how they came out."""
    warnings: tuple[Said, ...] = ()
    """Contradictions, resets, lost readings, aliased gauges, biased counters."""
    missing: tuple[Said, ...] = ()
    """Quantities that this engine does not tell, and what to do instead."""
