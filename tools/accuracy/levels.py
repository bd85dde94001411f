"""How much is known of a deployment: every row under every level, gains and times together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

from accuracy import levers, serving
from accuracy.exchange import nothing_shipped
from breakeven.calibration.answer import Answer
from breakeven.calibration.backtest import Backtest, backtest
from breakeven.calibration.leave_out import LeftOut, fit_runs, leave_groups_out, neutral_kernels
from breakeven.calibration.lever_fit import LeverFit, fit_pairs
from breakeven.measured.files import Measured

PROCESSORS = 2
Levels = Mapping[str, Sequence[Answer]]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the processes share: they are forked with it, since a row's measure is no data that could be sent."""

    measured: Measured
    left: LeftOut
    fitted: LeverFit


_shared: list[Work] = []


def levels(measured: Measured) -> dict[str, Backtest]:
    """Level to what is said of each row under it."""
    shipped = backtest(measured)
    with nothing_shipped():
        parts = left_out(measured)
    found = {"shipped": shipped}
    for name in dict.fromkeys(name for part in parts for name in part):
        found[name] = replace(shipped, rows=tuple(row for part in parts for row in part.get(name, ())), left_out="group")
    return found


def left_out(measured: Measured) -> list[Levels]:
    """Everything that is answered by fits that have not seen it, in parts."""
    kernels = neutral_kernels()
    whole = fit_runs(measured.runs, constants=kernels)
    left = leave_groups_out(measured.runs, whole, constants=kernels)
    step = levers.Steps(left.values, {**kernels, **whole.values})
    fitted = fit_pairs([pair for pair in measured.pairs if levers.is_good(pair)], step)
    _shared[:] = [Work(measured=measured, left=left, fitted=fitted)]
    with ProcessPoolExecutor(PROCESSORS, mp_context=get_context("fork")) as pool:
        return list(pool.map(_job, [*levers.GROUP_OF, *range(serving.FOLDS)]))


def _job(job: str | int) -> Levels:
    """One level of the levers, or a fold of the groups of serving runs."""
    work = _shared[0]
    if isinstance(job, int):
        return serving.fold(work.measured.runs, work.left, job)
    return {job: levers.level(work.measured, work.fitted, job).rows}
