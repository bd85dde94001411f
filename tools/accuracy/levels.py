"""How much is known of a deployment: every row under every level, gains and times together."""

from __future__ import annotations

from dataclasses import replace

from accuracy import levers, serving
from breakeven.calibration.backtest import Backtest, backtest
from breakeven.calibration.leave_out import fit_runs, leave_groups_out
from breakeven.measured.files import Measured


def levels(measured: Measured) -> dict[str, Backtest]:
    """Level to what is said of each row under it."""
    shipped = backtest(measured)
    whole = fit_runs(measured.runs)
    left = leave_groups_out(measured.runs, whole)
    gains, times = levers.levels(measured, left.values, whole.values), serving.corrected(measured.runs, left)
    found = {"shipped": shipped}
    for name in (*gains, *times):
        rows = (*(gains[name].rows if name in gains else ()), *times.get(name, ()))
        found[name] = replace(shipped, rows=rows, left_out="group")
    return found
