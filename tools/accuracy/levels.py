"""How much is known of a deployment: every row under every level, each a backtest of its own."""

from __future__ import annotations

from breakeven.calibration.backtest import Backtest, backtest
from breakeven.measured.files import Measured


def levels(measured: Measured) -> dict[str, Backtest]:
    """Level to what is said of each row under it."""
    return {"shipped": backtest(measured)}
