"""Draft acceptance as an engine counts it, from a page of its metrics that was saved to a file (Prometheus text)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from breakeven.errors import InputError
from breakeven.spec.workload import Acceptance

SAMPLE = re.compile(r"^([a-zA-Z_][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+([0-9.eE+-]+|NaN|[+-]?Inf)(?:\s+[0-9.-]+)?\s*$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
MOST_BYTES = 64 * 10**6
ENGINES: Mapping[str, str] = {"vllm": "vllm", "llamacpp": "llamacpp", "sglang": "sglang"}
TOKENS: Mapping[str, str] = {"vllm": "generation_tokens", "llamacpp": "tokens_predicted"}
"""Generated tokens, the first of each answer among them."""
PER_POSITION = "spec_decode_num_accepted_tokens_per_pos"


@dataclass(frozen=True, kw_only=True)
class DraftCounters:
    """What an engine counted since it started, over all its ranks."""

    path: str
    engine: str
    accepted_at: tuple[float, ...]
    """Accepted tokens by position, from the first; empty where the page has them in all only."""
    accepted: float
    drafted: float
    drafts: float
    """Rounds that drafted anything: what engines divide by."""
    rounds: float | None
    """All rounds, counted back from the tokens: generated − first tokens − accepted; None where the page does not tell.

    What was accepted past an end is counted and not generated, so that the rounds come out a little few.
    """
    length: float | None = None
    """Tokens a round, the bonus token included, where that is all the page has (SGLang's gauge)."""


def read_draft_counters(path: Path) -> DraftCounters:
    """The counters of speculation on a saved page; a page without any is refused."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError("metrics_too_large", path=str(path))
        page = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("metrics_unreadable", path=str(path)) from error
    samples = list(_samples(page))
    engine = next((name for name in ENGINES if any(metric.startswith((f"{name}:", f"{name}_")) for metric, _, _ in samples)), None)
    if engine is None:
        raise InputError("metrics_unknown", path=str(path), known=", ".join(ENGINES))
    models = sorted({labels["model_name"] for _, labels, _ in samples if "model_name" in labels})
    if len(models) > 1:
        raise InputError("metrics_models", path=str(path), models=", ".join(models))
    return _counters(str(path), engine, [(re.sub(rf"^{engine}[:_]|_total$", "", name), labels, value) for name, labels, value in samples])


def _counters(path: str, engine: str, samples: list[tuple[str, dict[str, str], float]]) -> DraftCounters:
    drafts, accepted = (_sum(samples, f"spec_decode_num_{name}") for name in ("drafts", "accepted_tokens"))
    if not drafts:
        gauges = [value for name, _, value in samples if name == "spec_accept_length" and value >= 1]
        if not gauges:
            raise InputError("metrics_no_drafts", path=path)
        mean = sum(gauges) / len(gauges)
        return DraftCounters(path=path, engine=engine, accepted_at=(), accepted=0, drafted=0, drafts=0, rounds=None, length=mean)
    per_position = [
        (int(labels["position"]), value) for name, labels, value in samples if name == "spec_decode_num_accepted_tokens_per_pos"
    ]
    positions = range(max((position for position, _ in per_position), default=-1) + 1)
    tokens, answers = _sum(samples, TOKENS.get(engine, "")), _sum(samples, "request_generation_tokens_count")
    rounds = None if tokens is None or answers is None else tokens - answers - (accepted or 0.0)
    return DraftCounters(
        path=path,
        engine=engine,
        accepted_at=tuple(sum(value for at, value in per_position if at == position) for position in positions),
        accepted=accepted or 0.0,
        drafted=_sum(samples, "spec_decode_num_draft_tokens") or 0.0,
        drafts=drafts,
        rounds=rounds if rounds is not None and rounds >= drafts else None,
    )


def acceptance_of(counters: DraftCounters, method: str | None) -> Acceptance:
    """What the counters give, by position where they have it: over all rounds where the page tells them, else over drafts."""
    of = counters.rounds or counters.drafts
    if counters.length is not None:
        return Acceptance(length=counters.length, method=method)
    if counters.accepted_at:
        found = tuple(value / of for value in counters.accepted_at)
        return Acceptance(cumulative=found, k=len(found), method=method)
    return Acceptance(length=1.0 + counters.accepted / of, method=method)


def _sum(samples: list[tuple[str, dict[str, str], float]], name: str) -> float | None:
    """A counter over all its series; None where there is none."""
    values = [value for found, _, value in samples if found == name]
    return sum(values) if values else None


def _samples(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in page.splitlines():
        found = SAMPLE.match(line)
        if found is not None:
            yield found[1], dict(LABEL.findall(found[2] or "")), float(found[3])
