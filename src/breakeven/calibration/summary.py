"""Answers counted: errors, signs and coverage per lever × hardware × engine, per lever, and per level of knowledge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.calibration.answer import Answer, Estimate
from breakeven.calibration.coverage import Coverage, coverage
from breakeven.stats import Array

WEAK = ("C", "D")
NAMES = {"grade": "quality"}
Of = Callable[[Answer], Estimate | None]


@dataclass(frozen=True, kw_only=True)
class Score:
    """How well the rows of one kind are predicted. Errors are |ln(measured/predicted)|."""

    lever: str
    """The lever's name; ``serving`` (time per token) or ``serving_ttft`` for absolute rows."""
    hardware: str | None = None
    engine: str | None = None
    knowledge: str | None = None
    quality: str | None = None
    rows: int
    groups: int
    median_error: float
    p90_error: float
    group_median_error: float
    """The median over groups of each group's median error: every group counts once."""
    group_p90_error: float
    """The 90th percentile over rows with every group counted once."""
    bias: float
    """Median of ln(measured/predicted)."""
    signed: int
    """Rows whose measured gain is outside 0.95–1.05."""
    sign_agreement: float | None
    coverage: Coverage
    group_coverage: float
    """The mean over groups of each group's coverage."""


def tpot_or_gain(answer: Answer) -> Estimate | None:
    """What a row is scored by first."""
    return answer.main


def ttft(answer: Answer) -> Estimate | None:
    """The time to the first token of an absolute row."""
    return answer.ttft


def score(answers: Sequence[Answer], named: Mapping[str, str], of: Of = tpot_or_gain) -> Score | None:
    """The score of some answers; None where none of them has the quantity."""
    found = [(answer, value) for answer in answers if (value := of(answer)) is not None]
    if not found:
        return None
    errors = np.array([value.log_error for _, value in found])
    sizes, inside = np.abs(errors), np.array([value.inside for _, value in found])
    groups, which = np.unique([answer.group for answer, _ in found], return_inverse=True)
    counts = np.bincount(which)
    signs = [answer.sign for answer, _ in found if answer.sign is not None]
    return Score(
        **named,
        rows=len(found),
        groups=len(groups),
        median_error=float(np.median(sizes)),
        p90_error=float(np.quantile(sizes, 0.9)),
        group_median_error=float(np.median([np.median(sizes[which == group]) for group in range(len(groups))])),
        group_p90_error=_weighted_quantile(sizes, 1.0 / counts[which], 0.9),
        bias=float(np.median(errors)),
        signed=len(signs),
        sign_agreement=sum(signs) / len(signs) if signs else None,
        coverage=coverage(int(inside.sum()), len(found)),
        group_coverage=float(np.mean([np.mean(inside[which == group]) for group in range(len(groups))])),
    )


def _weighted_quantile(values: Array, weights: Array, q: float) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][int(np.searchsorted(reached, q))])


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Scores, finest last. Rows whose own quality says that they are weak or confounded (C, D) are told apart."""

    levers: tuple[Score, ...]
    knowledge: tuple[Score, ...]
    cells: tuple[Score, ...]
    """Lever × hardware × engine."""
    apart: tuple[Score, ...]
    """Lever × quality, of C and D."""


def summarise(answers: Iterable[Answer]) -> Summary:
    """The scores of all answered rows."""
    told = [answer for answer in answers if answer.main is not None]
    good = [answer for answer in told if answer.grade not in WEAK]
    return Summary(
        levers=_scores(good, ()),
        knowledge=_scores(good, ("knowledge",)),
        cells=_scores(good, ("hardware", "engine")),
        apart=_scores([answer for answer in told if answer.grade in WEAK], ("grade",)),
    )


def _scores(answers: Sequence[Answer], names: tuple[str, ...]) -> tuple[Score, ...]:
    by: dict[tuple[str, ...], list[Answer]] = {}
    for answer in answers:
        by.setdefault((answer.lever, *(getattr(answer, name) for name in names)), []).append(answer)
    found: list[Score | None] = []
    for (lever, *values), some in sorted(by.items()):
        shared = {NAMES.get(name, name): value for name, value in zip(names, values, strict=True)}
        found += [score(some, {"lever": lever} | shared), score(some, {"lever": f"{lever}_ttft"} | shared, ttft)]
    return tuple(each for each in found if each is not None)
