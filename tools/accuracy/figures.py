"""The figures of the page as plain data: what is written to accuracy.json, and what the page and its tests read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from math import exp, inf, isfinite, log
from typing import Any

import numpy as np

from accuracy.kinds import KINDS, TIMES, Kind, Source, aggregated, chosen, over_pools, regime_of
from breakeven.calibration.answer import SAME_HIGH, SAME_LOW, Answer
from breakeven.calibration.backtest import Backtest
from breakeven.calibration.coverage import coverage
from breakeven.calibration.summary import score

DIGITS = 4
WORST = 10
FEW_GROUPS = 8
Figures = dict[str, Any]
Values = Mapping[str, Mapping[str, float]]
"""Place of a row, and kind, to what somebody says of it."""


def rounded(value: object) -> object:
    """Numbers to four figures, endless ones as nothing, so that the file is the same wherever it is made."""
    if isinstance(value, bool) or not isinstance(value, (float, dict, list, tuple)):
        return value
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if isfinite(value) else None
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value]


def figures_of(answers: Sequence[Answer], kind: Kind) -> Figures | None:
    """The score of some answers of a kind, by the product's own count; times also as percentages of exp(|ln|) − 1.

    A row that is answered in several rounds is one row; its rounds weigh in the quantiles, and make no interval narrower.
    """
    found = score(answers, {"lever": kind.name}, kind.of)
    if found is None:
        return None
    distinct = len({each.where for each in answers})
    inside = coverage(round(found.coverage.share * distinct), distinct)
    told = {
        name: value
        for name, value in asdict(replace(found, rows=distinct, coverage=inside)).items()
        if value is not None and name != "lever"
    }
    return told | {
        "median_percent": percent(found.median_error),
        "p90_percent": percent(found.p90_error),
        "group_median_percent": percent(found.group_median_error),
    }


def percent(log_error: float) -> float:
    """100·(exp(e) − 1), as errors of times are commonly told."""
    return 100.0 * (exp(log_error) - 1.0)


def level(found: Backtest, rows: Mapping[str, Source]) -> Figures:
    """All kinds under one level of knowledge: the rows without a doubt, and beside them all."""
    answers = aggregated(found.rows, rows)
    scores = {}
    for kind in KINDS:
        core, whole = chosen(answers, kind), chosen(answers, kind, doubtful=True)
        if core:
            scores[kind.name] = {"core": figures_of(core, kind), "with_doubtful": figures_of(whole, kind)}
    return scores


def split(found: Backtest, rows: Mapping[str, Source], by: Callable[[Answer], str], kinds: Iterable[Kind] = KINDS) -> Figures:
    """Every kind by a word of its answers."""
    told: Figures = {}
    for kind in kinds:
        parts: dict[str, list[Answer]] = {}
        for each in chosen(found.rows, kind):
            parts.setdefault(by(each), []).append(each)
        told[kind.name] = {word: figures_of(parts[word], kind) for word in sorted(parts)}
    return {name: words for name, words in told.items() if words}


def by_regime(found: Backtest, rows: Mapping[str, Source]) -> Figures:
    """Every kind by regime."""
    return split(found, rows, lambda each: regime_of(rows[each.where]))


def by_device(found: Backtest, rows: Mapping[str, Source]) -> Figures:
    """Every kind by engine and device."""
    return split(found, rows, lambda each: f"{each.engine} on {each.hardware}")


def apart(found: Backtest, rows: Mapping[str, Source]) -> Figures:
    """What is answered and not in the score: rows whose collector calls them weak (C) or suspect (D), and runs over two pools."""
    told: Figures = {}
    for kind in KINDS:
        own = [each for each in found.answered if each.lever == kind.lever and kind.of(each) is not None]
        grades = sorted({each.grade for each in own} - {"A", "B", ""})
        told[kind.name] = {f"quality {grade}": figures_of([each for each in own if each.grade == grade], kind) for grade in grades}
        pools = [each for each in own if over_pools(rows[each.where])]
        if pools:
            told[kind.name]["two pools"] = figures_of(pools, kind)
    return {name: words for name, words in told.items() if words}


def sizes(pairs: Sequence[tuple[str, float, float]], *, signed: bool) -> Figures:
    """Direction and size of (group, measured, predicted); what is predicted without bound is as wrong as can be."""
    groups: dict[str, list[float]] = {}
    right: list[bool] = []
    for group, measured, predicted in pairs:
        groups.setdefault(group, []).append(abs(log(predicted / measured)) if 0 < predicted < inf else inf)
        if signed and not SAME_LOW <= measured <= SAME_HIGH:
            right.append((predicted > 1.0) == (measured > 1.0))
    errors = np.array([error for each in groups.values() for error in each])
    middle, most = (float(np.quantile(errors, q, method="higher")) for q in (0.5, 0.9))
    return {
        "rows": len(errors),
        "groups": len(groups),
        "sign_agreement": sum(right) / len(right) if right else None,
        "median_error": middle,
        "p90_error": most,
        "group_median_error": float(np.median([np.median(each) for each in groups.values()])),
    }


def compared(found: Backtest, rows: Mapping[str, Source], values: Values) -> Figures:
    """The same rows as the score's, predicted by something else: place of a row to what it says of each kind."""
    told = {}
    for kind in KINDS:
        answers = [each for each in chosen(aggregated(found.rows, rows), kind) if kind.name in values.get(each.where, {})]
        pairs = [(each.group, kind.estimate(each).measured, values[each.where][kind.name]) for each in answers]
        if pairs:
            told[kind.name] = sizes(pairs, signed=kind.name not in TIMES)
    return told


def worst(found: Backtest, rows: Mapping[str, Source], why: Callable[[Answer, Source, Kind], str]) -> Figures:
    """The rows furthest off, each with its mechanism."""
    told = {}
    for kind in KINDS:
        some = sorted(chosen(aggregated(found.rows, rows), kind), key=lambda each: -abs(kind.estimate(each).log_error))[:WORST]
        told[kind.name] = [_row(each, kind) | {"mechanism": why(each, rows[each.where], kind)} for each in some]
    return told


def _row(each: Answer, kind: Kind) -> Figures:
    value = kind.estimate(each)
    return {
        "id": each.id,
        "engine": each.engine,
        "hardware": each.hardware,
        "model": each.model,
        "regime": each.regime,
        "measured": value.measured,
        "predicted": value.predicted,
        "low": value.low,
        "high": value.high,
    }
