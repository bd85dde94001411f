"""How well the model predicts what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from breakeven.calibration.backtest import DRAWS, Backtest, leave_one_group_out
from breakeven.calibration.backtest import backtest as held
from breakeven.calibration.refit import refit
from breakeven.errors import InputError
from breakeven.measured.files import read
from breakeven.measured.steps import Stated
from breakeven.use_cases.arguments import THRESHOLD, check_arguments, checked_seed


def backtest(
    paths: Path | str | Sequence[Path | str],
    *,
    leave_out: str | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    stated: Stated | None = None,
) -> Backtest:
    """How well the model predicts measurements in files (``docs/guide/backtest.md``); ``leave_out="group"`` fits anew without each.

    ``stated``: model, device and engine of results of benchmarks that do not say them.
    """
    check_arguments(THRESHOLD, draws)
    if leave_out not in (None, "group"):
        raise InputError("not_one_of", path="leave_out", value=leave_out, names="group")
    measured = read([paths] if isinstance(paths, (Path, str)) else paths, stated)
    if leave_out is None:
        return held(measured, draws=draws, seed=checked_seed(seed))
    return leave_one_group_out(measured, refit(measured), draws, checked_seed(seed))
