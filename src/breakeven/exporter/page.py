"""The page of metrics: what was observed and what is advised, under names of our own; some hundred series at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import isfinite
from typing import TYPE_CHECKING, get_args

from breakeven.advice import Advice, Gain, Verdict
from breakeven.messages import printable, say
from breakeven.spec.evidence import Evidence, Figure

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

FIGURES: Mapping[str, str] = {
    "effective_batch": "breakeven_effective_batch",
    "mbu": "breakeven_bandwidth_utilization_ratio",
    "mfu": "breakeven_compute_utilization_ratio",
    "kv_share": "breakeven_kv_share_ratio",
    "kv_usage": "breakeven_kv_usage_ratio",
    "prefix_hit_rate": "breakeven_prefix_hit_ratio",
    "acceptance_length": "breakeven_acceptance_length_tokens",
    "acceptance_rate": "breakeven_acceptance_ratio",
    "step_s": "breakeven_step_seconds",
    "tpot_s": "breakeven_tpot_seconds",
    "ttft_s": "breakeven_ttft_seconds",
    "output_tokens_per_s": "breakeven_output_tokens_per_second",
    "input_tokens_per_s": "breakeven_input_tokens_per_second",
    "request_rate_per_s": "breakeven_requests_per_second",
    "context_tokens": "breakeven_context_tokens",
}
"""Figures of an observation, and their metrics: each with ``_low`` and ``_high`` where it has an interval."""
BOUNDS = ("", "_low", "_high")
LONGEST = 120
MOST_TARGETS = 64


@dataclass(frozen=True, kw_only=True)
class State:
    """What there is to be shown."""

    up: Mapping[str, bool] = field(default_factory=dict)
    """Whether a server's last reading came back."""
    read_s: Mapping[str, float] = field(default_factory=dict)
    """Unix seconds of the last that did."""
    evidence: Evidence | None = None
    advice: Advice | None = None
    advised_s: float | None = None


def names() -> tuple[str, ...]:
    """Every metric that the page may have."""
    told = [f"{name}{bound}" for name in FIGURES.values() for bound in BOUNDS]
    fixed = ("up", "build_info", "last_success_timestamp_seconds", "last_advice_timestamp_seconds", "observed_seconds", "replicas")
    gains = [f"breakeven_{what}_gain{bound}_ratio" for what in ("lever", "best") for bound in BOUNDS]
    info = ("lever_verdict", "lever_info", "best_info")
    return tuple(sorted([*told, *(f"breakeven_{name}" for name in (*fixed, *info)), *gains]))


def exposition(state: State, language: str = "en") -> bytes:
    """The page in the text format."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class Shown(Collector):
        def collect(self) -> Iterator[GaugeMetricFamily]:
            return _families(state, language)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Shown())
    return generate_latest(registry)


def _families(state: State, language: str) -> Iterator[GaugeMetricFamily]:
    yield _family("build_info", language, ["version"], [([version("breakeven")], 1.0)])
    targets = list(state.up)[:MOST_TARGETS]
    yield _family("up", language, ["target"], [([one], float(state.up[one])) for one in targets])
    read = [([one], state.read_s[one]) for one in targets if one in state.read_s]
    yield _family("last_success_timestamp_seconds", language, ["target"], read)
    if state.evidence is not None:
        yield from _observed(state.evidence, language)
    if state.advice is not None:
        yield from _advised(state.advice, language)
    if state.advised_s is not None:
        yield _family("last_advice_timestamp_seconds", language, [], [([], state.advised_s)])


def _observed(evidence: Evidence, language: str) -> Iterator[GaugeMetricFamily]:
    yield _family("observed_seconds", language, [], [([], evidence.seconds)])
    yield _family("replicas", language, [], [([], float(evidence.replicas))])
    for key, name in FIGURES.items():
        figure = evidence.figures.get(key)
        if figure is not None:
            for bound, value in zip(BOUNDS, _bounds(figure), strict=True):
                if value is not None:
                    yield _family(f"{name.removeprefix('breakeven_')}{bound}", language, [], [([], value)])


def _bounds(figure: Figure) -> tuple[float | None, ...]:
    return figure.value, figure.low, figure.high


def _advised(advice: Advice, language: str) -> Iterator[GaugeMetricFamily]:
    levers = advice.levers.values()
    verdicts = [([one.lever, verdict], float(one.verdict == verdict)) for one in levers for verdict in get_args(Verdict)]
    yield _family("lever_verdict", language, ["lever", "verdict"], verdicts)
    yield _family("lever_info", language, ["lever", "state", "setting"], [([one.lever, one.state, one.setting], 1.0) for one in levers])
    gains = [([one.lever, metric], gain) for one in levers for metric, gain in one.metrics.items()]
    for bound, pick in zip(BOUNDS, (_value, _low, _high), strict=True):
        found = [(labels, value) for labels, gain in gains if (value := pick(gain)) is not None]
        yield _family(f"lever_gain{bound}_ratio", language, ["lever", "metric"], found)
    if advice.best is None:
        return
    combination = advice.best.combination
    yield _family("best_info", language, ["levers"], [(["+".join(combination.levers)], 1.0)])
    for bound, name in zip(BOUNDS, ("median", "low", "high"), strict=True):
        best = [([metric], getattr(interval, name)) for metric, interval in combination.metrics.items()]
        yield _family(f"best_gain{bound}_ratio", language, ["metric"], best)


def _value(gain: Gain) -> float | None:
    return gain.gain


def _low(gain: Gain) -> float | None:
    return gain.low


def _high(gain: Gain) -> float | None:
    return gain.high


def _family(name: str, language: str, labels: list[str], samples: Sequence[tuple[Sequence[str], float | None]]) -> GaugeMetricFamily:
    """One metric with its help; what is unbounded or unknown has no sample."""
    from prometheus_client.core import GaugeMetricFamily

    bare = name.removesuffix("_low").removesuffix("_high").replace("_low_", "_").replace("_high_", "_")
    said = say(f"export.help_{bare}", language)
    bound = "low" if "_low" in name else "high" if "_high" in name else ""
    family = GaugeMetricFamily(f"breakeven_{name}", say(f"export.{bound}", language, what=said) if bound else said, labels=labels)
    for values, value in samples:
        if value is not None and isfinite(value):
            family.add_metric([printable(one)[:LONGEST] for one in values], value)
    return family
