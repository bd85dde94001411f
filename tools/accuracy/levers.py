"""Gains of levers by fits that have not seen a row's group, or nothing of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp

import numpy as np

from breakeven.calibration.answer import Answer, calibrated
from breakeven.calibration.backtest import Backtest, backtest
from breakeven.calibration.evidence import Values
from breakeven.calibration.lever_errors import misses, source_of
from breakeven.calibration.lever_fit import LeverFit, leave_pairs_out
from breakeven.calibration.sigmas import Miss, factor, sigma_for
from breakeven.calibration.summary import WEAK
from breakeven.efficiencies import FACTOR
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.measured.run import Run
from breakeven.measured.runs import shape_of
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.stats import Q95

GROUP_OF: Mapping[str, Callable[[Pair], str]] = {
    "left_out": lambda pair: pair.group,
    "source_left_out": source_of,
}


def group_of_run(d: Deployment) -> str:
    """The group of serving runs that a deployment would be of."""
    return f"{shape_of(d.model)} | {d.hardware.device.name} | {d.engine.name}"


def is_good(pair: Pair) -> bool:
    """Whether a row may be in a fit."""
    return pair.doubt is None and pair.quality[:1].upper() not in WEAK


class Steps:
    """The step that a pair is evaluated with, by a fit of serving runs that has not seen its own: some pairs are of those very runs."""

    def __init__(self, without: Mapping[str, Values], whole: Values) -> None:
        self.without, self.whole = without, whole

    def __call__(self, pair: Pair) -> Values:
        return self.without.get(group_of_run(pair.off), self.whole)


def level(measured: Measured, fitted: LeverFit, name: str) -> Backtest:
    """All pairs under one of the levels; those that are in no fit by the fit of all, or without their group where it has one."""
    group_of = GROUP_OF[name]
    _, found = leave_pairs_out(fitted, group_of)
    made: dict[tuple[str, str], Calibration] = {}

    def calibration(row: Run | Pair) -> Calibration:
        if isinstance(row, Run):
            raise TypeError(row.where)
        key = (group_of(row), group_of_run(row.off))
        if key not in made:
            made[key] = Calibration(values={**fitted.step(row), **found.get(key[0], fitted.values)})
        return made[key]

    pairs = measured.only(lambda row: isinstance(row, Pair))
    answered = backtest(pairs, calibration, left_out="group")
    return replace(answered, rows=with_intervals(answered, pairs.pairs, calibration, group_of))


def with_intervals(
    found: Backtest, pairs: Sequence[Pair], calibration: Callable[[Pair], Calibration], group_of: Callable[[Pair], str]
) -> tuple[Answer, ...]:
    """Answers of good rows with the intervals that the misses of other groups tell, as the product takes those that are shipped."""
    by_place = {pair.where: pair for pair in pairs if is_good(pair)}
    some = [(answer, by_place[answer.where]) for answer in found.rows if answer.where in by_place and answer.gain is not None]
    under = [replace(pair, off=calibrated(pair.off, calibration(pair)), on=calibrated(pair.on, calibration(pair))) for _, pair in some]
    predicted = np.log([answer.gain.predicted for answer, _ in some if answer.gain is not None])
    left = [replace(each, group=group_of(pair)) for each, pair in zip(misses(under, predicted), under, strict=True)]
    told = {
        answer.where: widened(answer, half_width(each, error)) for (answer, _), each, error in zip(some, left, errors(left), strict=True)
    }
    return tuple(told.get(answer.where, answer) for answer in found.rows)


def half_width(miss: Miss, error: float) -> float:
    """Half of the 90 % interval of ln gain: what is drawn, and the lever's own error of the part that it changes."""
    return float(Q95 * np.sqrt(miss.drawn**2 + miss.floor**2 + (error * miss.share) ** 2))


def errors(left: Sequence[Miss]) -> list[float]:
    """For every row the error that the other groups tell."""
    known: dict[tuple[str, str, str, float], float] = {}
    for miss in left:
        key = (miss.lever, miss.row, miss.group, miss.stated)
        if key not in known:
            others = [other for other in left if other.group != miss.group]
            same = [other for other in others if (other.lever, other.row) == (miss.lever, miss.row)]
            known[key] = miss.stated * factor(same) if miss.row == FACTOR and same else sigma_for(miss, others)
    return [known[miss.lever, miss.row, miss.group, miss.stated] for miss in left]


def widened(answer: Answer, half: float) -> Answer:
    """An answer with an interval of so much of the logarithm either way."""
    if answer.gain is None:
        return answer
    gain = answer.gain
    return replace(answer, gain=replace(gain, low=gain.predicted * exp(-half), high=gain.predicted * exp(half)))
