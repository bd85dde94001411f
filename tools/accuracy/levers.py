"""Gains of levers by fits that have not seen a row's group, or nothing of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from breakeven.calibration.answer import Answer, calibrated, sigma
from breakeven.calibration.backtest import Backtest, backtest
from breakeven.calibration.evidence import Values
from breakeven.calibration.lever_fit import LeverFit, leave_pairs_out
from breakeven.calibration.sigmas import Miss, drawn, left_out_sigmas
from breakeven.calibration.summary import WEAK
from breakeven.draws import Draws
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.measured.run import Run
from breakeven.measured.runs import shape_of
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.stats import Q95

GROUP_OF: Mapping[str, Callable[[Pair], str]] = {
    "left_out": lambda pair: pair.group,
    "source_left_out": lambda pair: pair.group.split("::")[0],
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
    """Answers of good rows with the intervals that the misses of other groups tell."""
    by_place = {pair.where: pair for pair in pairs if is_good(pair)}
    some = [(answer, by_place[answer.where]) for answer in found.rows if answer.where in by_place and answer.gain is not None]
    draws = Draws(found.draws, found.seed)
    misses = [miss(answer, pair, calibration(pair), group_of(pair), draws) for answer, pair in some]
    half = Q95 * np.hypot([each.drawn for each in misses], left_out_sigmas(misses))
    told = {answer.where: widened(answer, float(np.exp(each))) for (answer, _), each in zip(some, half, strict=True)}
    return tuple(told.get(answer.where, answer) for answer in found.rows)


def miss(answer: Answer, pair: Pair, calibration: Calibration, group: str, draws: Draws) -> Miss:
    """What a left-out row tells of its lever's own error."""
    under = replace(pair, off=calibrated(pair.off, calibration), on=calibrated(pair.on, calibration))
    error = 0.0 if answer.gain is None else answer.gain.log_error
    row = pair.sigma_row or pair.regime
    return Miss(lever=pair.lever, row=row, group=group, error=error, drawn=drawn(under, draws), stated=float(sigma(under).step))


def widened(answer: Answer, factor: float) -> Answer:
    """An answer with its interval a factor either way."""
    if answer.gain is None:
        return answer
    gain = answer.gain
    return replace(answer, gain=replace(gain, low=gain.predicted / factor, high=gain.predicted * factor))
