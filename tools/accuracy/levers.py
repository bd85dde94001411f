"""Gains of levers by fits that have not seen a row's group, or nothing of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from breakeven.calibration.backtest import Backtest, backtest
from breakeven.calibration.evidence import Values
from breakeven.calibration.lever_fit import LeverFit, fit_pairs, leave_pairs_out
from breakeven.calibration.summary import WEAK
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.measured.run import Run
from breakeven.measured.runs import shape_of
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment

LEVELS: Mapping[str, Callable[[Pair], str]] = {
    "left_out": lambda pair: pair.group,
    "source_left_out": lambda pair: pair.group.split("::")[0],
}


def group_of_run(d: Deployment) -> str:
    """The group of serving runs that a deployment would be of."""
    return f"{shape_of(d.model)} | {d.hardware.device.name} | {d.engine.name}"


def levels(measured: Measured, without: Mapping[str, Values], whole: Values) -> dict[str, Backtest]:
    """Both levels; ``without`` holds the fit of serving runs that has not seen a group of them, since some pairs are of those very runs."""

    def step(pair: Pair) -> Values:
        return without.get(group_of_run(pair.off), whole)

    pairs = measured.only(lambda row: isinstance(row, Pair))
    fitted = fit_pairs([pair for pair in pairs.pairs if pair.doubt is None and pair.quality[:1] not in WEAK], step)
    return {name: _level(pairs, fitted, step, group_of) for name, group_of in LEVELS.items()}


def _level(pairs: Measured, fitted: LeverFit, step: Callable[[Pair], Values], group_of: Callable[[Pair], str]) -> Backtest:
    _, found = leave_pairs_out(fitted, group_of)
    made: dict[tuple[str, str], Calibration] = {}

    def calibration(row: Run | Pair) -> Calibration:
        if isinstance(row, Run):
            raise TypeError(row.where)
        key = (group_of(row), group_of_run(row.off))
        if key not in made:
            made[key] = Calibration(values={**step(row), **found.get(key[0], fitted.values)})
        return made[key]

    return backtest(pairs, calibration, left_out="group")
