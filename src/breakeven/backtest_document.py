"""What ``backtest`` tells: every row answered or skipped, and how the answers score. Frozen data, a versioned schema."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

BACKTEST_SCHEMA: Final = "breakeven.backtest/1"


class BacktestRow(Struct, frozen=True, kw_only=True):
    """One row of the files. A pair has a gain; an absolute row has times: its ``measured``, ``low`` and ``high`` are the TPOT in ms."""

    case_id: str
    where: str
    lever: str
    """The lever's name, or ``serving`` for absolute rows."""
    hardware: str
    engine: str
    model: str
    group: str
    quality: str
    regime: str
    knowledge: str
    predicted: float | None = None
    """The gain."""
    predicted_tpot_ms: float | None = None
    predicted_ttft_ms: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    log_error: float | None = None
    """ln(measured/predicted)."""
    sign_agrees: bool | None = None
    """Null where the measured gain is within 0.95–1.05, and for absolute rows."""
    inside: bool | None = None
    """Whether the 90 % interval covers the measured value."""
    measured_ttft_ms: float | None = None
    low_ttft_ms: float | None = None
    high_ttft_ms: float | None = None
    log_error_ttft: float | None = None
    inside_ttft: bool | None = None
    bad: str | None = None
    """Why the row cannot be true as written; such a row is in no score."""
    skipped: str | None = None
    """Why the row is not answered."""
    understood: dict[str, str] = {}
    """What each field was read as, and what was assumed."""


class BacktestScore(Struct, frozen=True, kw_only=True):
    """How well the rows of one kind are predicted. Errors are |ln(measured/predicted)|."""

    lever: str
    """The lever's name; ``serving`` (TPOT) or ``serving_ttft`` for absolute rows."""
    hardware: str | None
    engine: str | None
    knowledge: str | None
    quality: str | None
    n: int
    groups: int
    median_abs_log_error: float
    p90_abs_log_error: float
    group_median_abs_log_error: float
    """Median over groups of each group's median."""
    group_p90_abs_log_error: float
    """90th percentile of rows, every group counted once."""
    bias: float
    """Median of ln(measured/predicted)."""
    signed: int
    """Rows with a measured gain outside 0.95–1.05."""
    sign_agreement: float | None
    coverage: float
    """Share of rows within their 90 % interval."""
    coverage_low: float
    coverage_high: float
    """The 95 % binomial interval of that share (Wilson)."""
    group_coverage: float
    """Mean over groups of each group's share."""


class BacktestReason(Struct, frozen=True, kw_only=True):
    """Rows skipped, or bad, for one kind of reason."""

    kind: str
    rows: int
    says: str
    """What is said of the first of them."""
    where: list[str]
    """The first few."""


class BacktestCounts(Struct, frozen=True, kw_only=True):
    """Rows of the files: every row is answered or skipped; bad rows are among both."""

    rows: int
    answered: int
    skipped: int
    bad: int


class BacktestDocument(Struct, frozen=True, kw_only=True):
    """The answer of ``backtest``."""

    schema: Literal["breakeven.backtest/1"] = BACKTEST_SCHEMA
    language: Literal["en", "zh"]
    files: list[str]
    counts: BacktestCounts
    rows: list[BacktestRow]
    summary: list[BacktestScore]
    """Per lever × hardware × engine, without bad rows and without those of quality C and D."""
    levers: list[BacktestScore]
    """The same per lever."""
    knowledge: list[BacktestScore]
    """The same per lever and level of knowledge."""
    apart: list[BacktestScore]
    """Rows of quality C and D, per lever and quality."""
    levers_with_bad: list[BacktestScore]
    """Per lever, the bad rows counted too."""
    skipped_reasons: list[BacktestReason]
    bad_reasons: list[BacktestReason]
    left_out: str | None
    """What was held out of the fit: ``group``, or null where nothing was fitted."""
    columns: list[str]
    draws: int
    seed: int
