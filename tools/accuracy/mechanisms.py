"""Why a row is far off, told from its fields by rules; no row and no case is named."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatch
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

from accuracy.kinds import Kind, Source, regime_of
from breakeven.calibration.answer import Answer
from breakeven.efficiencies import is_eager
from breakeven.measured.pair import Pair
from breakeven.spec.deployment import Deployment

RULES = Path(__file__).parent / "mechanisms.toml"
UNKNOWN = "not explained"


@cache
def rules() -> tuple[Mapping[str, Any], ...]:
    """The rules in order: the first whose every field fits tells."""
    return tuple(tomllib.loads(RULES.read_text(encoding="utf-8"))["mechanism"])


def facts(answer: Answer, row: Source, kind: Kind) -> dict[str, str | float]:
    """What a rule may look at: words and numbers of the row's own two arms."""
    arms = (row.off, row.on) if isinstance(row, Pair) else (row.deployment, row.deployment)
    off, on = arms
    estimate = kind.estimate(answer)
    return {
        "kind": kind.name,
        "regime": regime_of(row),
        "engine": on.engine.name,
        "era": "eager" if is_eager(on.engine) else "graphs",
        "family": on.hardware.device.family,
        "mixture": "yes" if on.model.experts is not None else "no",
        "attention": "latent" if any(group.kind == "mla" for group in on.model.attention) else "heads",
        "weights": on.engine.quantization or "as stored",
        "weights_off": off.engine.quantization or "as stored",
        "said": "too much" if estimate.predicted > estimate.measured else "too little",
        "devices": float(on.hardware.count),
        "parameters": float(on.model.parameters.total),
        "clients": clients_of(on),
        "prompt": number(on.workload.input_tokens),
        "hits": number(on.workload.prefix_hit_rate),
        "output": number(on.workload.output_tokens),
        "head_width": float(min((group.k_dim for group in on.model.attention), default=0)),
        "gain": estimate.measured,
        "off": exp(abs(estimate.log_error)),
    }


def clients_of(d: Deployment) -> float:
    """Sequences that are asked for; 0 in an open loop."""
    return number(d.workload.concurrency if d.workload.batch is None else d.workload.batch)


def number(value: object) -> float:
    """A field that is a plain number; 0 of anything else."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def mechanism(answer: Answer, row: Source, kind: Kind) -> str:
    """The text of the first rule that fits."""
    known = facts(answer, row, kind)
    return next((rule["text"] for rule in rules() if all(_fits(known, name, wanted) for name, wanted in rule["when"].items())), UNKNOWN)


def _fits(known: Mapping[str, str | float], name: str, wanted: object) -> bool:
    if name.startswith(("least_", "most_")):
        bound, _, field = name.partition("_")
        value, limit = float(known[field]), float(wanted)  # type: ignore[arg-type]
        return value >= limit if bound == "least" else value <= limit
    patterns = wanted if isinstance(wanted, list) else [wanted]
    return any(fnmatch(str(known[name]), str(pattern)) for pattern in patterns)


def why(target: str) -> str:
    """Why a figure that was asked for is not reached; the first text whose pattern fits the figure's name."""
    told = tomllib.loads(RULES.read_text(encoding="utf-8")).get("missed", [])
    return next((each["text"] for each in told if fnmatch(target, each["target"])), UNKNOWN)
