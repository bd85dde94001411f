"""What is asked of the engine: lengths, arrivals or concurrency, reuse, acceptance, and what was promised."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.stats import Value

TASKS = ("chat", "code", "math", "summarization", "qa")
"""What acceptance priors are known for."""
ARRIVALS = ("request_rate", "concurrency", "batch")
ACCEPTANCE_FORMS = ("cumulative", "conditional", "length", "rate", "alpha")


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Moments of a trace's prompt (I) and output (O) lengths, in tokens. Absent moments are those of constant lengths."""

    requests: int
    mean_input: float
    mean_output: float
    mean_input_squared: float
    mean_output_squared: float
    mean_input_output: float
    output_quantiles: tuple[float, ...] = ()
    """101 quantiles of O, 0 to 100 %."""


@dataclass(frozen=True, kw_only=True)
class ArrivalRates:
    """How an open loop's rate varies over time: groups of windows of a trace, and what its overloads leave waiting."""

    factors: tuple[float, ...]
    """Each group's rate over the mean rate; their mean by ``weights`` is 1."""
    weights: tuple[float, ...]
    """Each group's share of the time."""
    window_s: float
    windows: int
    spill: tuple[tuple[float, float], ...] = ()
    """λ_max over the mean rate, ascending from 1, and the mean wait of a request for what windows above λ_max leave behind (seconds)."""


@dataclass(frozen=True, kw_only=True)
class ReuseRates:
    """The reuse curve of a trace's prompts: hit rate by the tokens that a prefix cache holds, straight between."""

    capacity_tokens: tuple[float, ...]
    hit_rates: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """Draft acceptance in one of the forms people have. Exactly one of the first five (``ACCEPTANCE_FORMS``) is given."""

    cumulative: tuple[float, ...] | None = None
    conditional: tuple[float, ...] | None = None
    length: Value | None = None
    """Tokens per round, the bonus token included."""
    rate: Value | None = None
    """Accepted over drafted, at the ``k`` in force."""
    alpha: Value | None = None
    """Conditional acceptance, independent of position."""
    k: int | None = None
    """Drafted tokens per round where it was measured; None: those of the setting it is asked for."""
    method: str | None = None
    """The draft method it was measured with, of which alone it tells; None: the deployment's own."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One of ``request_rate`` (open loop), ``concurrency`` (closed loop) or ``batch`` (pinned) is given."""

    input_tokens: Value | None = None
    output_tokens: Value | None = None
    request_rate: Value | None = None
    """Requests per second, over all replicas."""
    concurrency: Value | None = None
    batch: Value | None = None
    """Sequences decoding together, on one replica."""
    context_tokens: Value | None = None
    """Mean cached tokens of a decoding sequence; only with ``batch``."""
    prefix_hit_rate: Value | None = None
    """Share of prompt tokens served from the prefix cache; None: not known."""
    reuse: ReuseRates | None = None
    """What the hit rate is at any capacity: then each arm has that of the capacity its running sequences leave over."""
    acceptance: Acceptance | None = None
    task: str | None = None
    """One of ``TASKS``: which acceptance prior applies; None: any of them."""
    lengths: Lengths | None = None
    arrivals: ArrivalRates | None = None
    """How ``request_rate`` varies over time; None: it does not."""
    trace: str | None = None
    """The path of the trace that the workload was read from; the name alone of one that was handed over as it was read."""


@dataclass(frozen=True, kw_only=True)
class Slo:
    """Service objectives, as means in seconds; tail keys are kept and answered by simulation."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    tails: tuple[str, ...] = ()
    """Keys such as ``ttft_p99_s`` that a mean cannot answer."""
    tail_limits_s: tuple[float, ...] = ()
    """Their limits, in the same order."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a device costs."""

    per_device_hour: float
    currency: str = "USD"
