"""What was asked for, figure by figure, and what is reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accuracy.kinds import LEVERS

FEW_GROUPS = 8
COVERED = (0.85, 0.95)
Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One figure against its bound; ``found`` is None where it could not be made."""

    name: str
    bound: str
    found: float | None
    met: bool


def at_least(name: str, found: float | None, bound: float) -> Target:
    """A share that has to be reached."""
    return Target(name=name, bound=f"≥ {bound:g}", found=found, met=found is not None and found >= bound)


def at_most(name: str, found: float | None, bound: float) -> Target:
    """An error that must not be passed."""
    return Target(name=name, bound=f"≤ {bound:g}", found=found, met=found is not None and found <= bound)


def between(name: str, found: float | None, low: float, high: float) -> Target:
    """A share that honest intervals have."""
    return Target(name=name, bound=f"{low:g}–{high:g}", found=found, met=found is not None and low <= found <= high)


def figure(document: Document, *path: str) -> float | None:
    """A number of the document by its path; None where there is none."""
    found: Any = document
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found if isinstance(found, (int, float)) else None


def targets(document: Document) -> list[Target]:
    """Every target of the issue, in its order."""
    return [*_levers(document), *_serving(document), *_coverage(document), *_cases(document)]


def _levers(document: Document) -> Iterator[Target]:
    overall = ("overall", "left_out")
    yield at_least("levers: sign, all", figure(document, *overall, "sign_agreement"), 0.92)
    for lever in LEVERS:
        yield at_least(f"levers: sign, {lever}", figure(document, "levels", "left_out", lever, "core", "sign_agreement"), 0.85)
    yield at_most("levers: median over groups, all", figure(document, *overall, "group_median_error"), 0.12)
    for lever in LEVERS:
        name = f"levers: median over groups, {lever}"
        yield at_most(name, figure(document, "levels", "left_out", lever, "core", "group_median_error"), 0.18)


def _serving(document: Document) -> Iterator[Target]:
    def of(level: str, kind: str, name: str) -> float | None:
        return figure(document, "levels", level, kind, "core", name)

    for level, median, most in (("left_out", 13.0, 40.0), ("rows_3", 10.0, 30.0), ("calibrated", 6.0, 22.0)):
        yield at_most(f"TPOT, {level}: median %", of(level, "tpot", "median_percent"), median)
        yield at_most(f"TPOT, {level}: 90th percentile %", of(level, "tpot", "p90_percent"), most)
        yield at_most(f"TPOT, {level}: median over groups %", of(level, "tpot", "group_median_percent"), median)
    yield at_most("serving rows that state their load, without an answer", figure(document, "serving_unanswered"), 0.0)
    for level, median in (("left_out", 30.0), ("calibrated", 18.0)):
        yield at_most(f"TTFT, {level}: median %", of(level, "ttft", "median_percent"), median)
        yield at_most(f"TTFT, {level}: median over groups %", of(level, "ttft", "group_median_percent"), median)


def _coverage(document: Document) -> Iterator[Target]:
    # What is shipped has seen these very rows: its intervals are shown, and prove nothing.
    for level, scores in ((level, scores) for level, scores in document["levels"].items() if level != "shipped"):
        for kind, both in scores.items():
            if both["core"]["groups"] >= FEW_GROUPS:
                yield between(f"coverage, {kind}, {level}", both["core"]["coverage"]["share"], *COVERED)


def _cases(document: Document) -> Iterator[Target]:
    yield at_least("cases: right class", figure(document, "cases", "share"), 0.85)
