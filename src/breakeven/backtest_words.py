"""How a backtest is told: its counts, scores in per cent, one row, the reasons rows are skipped or not believed."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf

from breakeven.backtest_document import BacktestDocument, BacktestReason, BacktestRow, BacktestScore
from breakeven.messages import say
from breakeven.units import gain_text, time_text

FEW_ROWS = 30
"""Rows that are all shown; of more, the worst, unless asked for."""
WORST = 10
MS = 1e-3
SCORE_HEADS = ("what", "n", "groups", "median", "by_group", "p90", "bias", "sign", "covered")
ROW_HEADS = ("case", "predicted", "interval", "measured", "error", "remark")


def heads(names: Sequence[str], language: str) -> list[str]:
    """Titles of columns."""
    return [say(f"backtest.head_{name}", language) for name in names]


def lever_words(name: str, language: str) -> str:
    """A lever's title, or that of what is measured on absolute rows."""
    key = {"serving": "backtest.serving", "serving_ttft": "backtest.serving_ttft"}.get(name)
    return name if key is None else say(key, language)


def label_words(score: BacktestScore, language: str) -> str:
    """What a score is of."""
    knowledge = "" if score.knowledge is None else say(f"backtest.knowledge_{score.knowledge}", language)
    parts = (lever_words(score.lever, language), score.hardware, score.engine, knowledge, score.quality)
    return " · ".join(part for part in parts if part)


def score_cells(score: BacktestScore, language: str) -> list[str]:
    """A score as cells of a table: errors as measured over predicted less 1, whichever is larger."""
    return [
        label_words(score, language),
        f"{score.n:,}",
        str(score.groups),
        _error(score.median_abs_log_error),
        _error(score.group_median_abs_log_error),
        _error(score.p90_abs_log_error),
        signed_percent(score.bias),
        "" if score.sign_agreement is None else _percent(score.sign_agreement),
        f"{_percent(score.coverage)} ({100 * score.coverage_low:.0f}–{100 * score.coverage_high:.0f})",
    ]


def _error(log_error: float) -> str:
    return _percent(exp(log_error) - 1.0) if log_error < 5.0 else f"×{exp(min(log_error, 700.0)):.3g}"


def _percent(share: float) -> str:
    """A share in per cent, to a tenth below ten."""
    return f"{100 * share:.0f} %" if share >= 0.0995 or share < 0.0005 else f"{100 * share:.1f} %"


def signed_percent(log_error: float) -> str:
    """Measured over predicted, less 1, with its sign."""
    if abs(log_error) >= 5.0:
        return f"×{exp(max(-700.0, min(log_error, 700.0))):.2g}"
    share = exp(log_error) - 1.0
    sign = "" if abs(share) < 0.0005 else "+" if share > 0 else "−"
    return f"{sign}{_percent(abs(share))}"


def headline_words(document: BacktestDocument) -> str:
    """How many rows there were, and what became of them."""
    counts, language = document.counts, document.language
    said = say("backtest.headline", language, rows=counts.rows, files=", ".join(document.files), answered=counts.answered)
    fitted = say(f"backtest.left_out_{document.left_out or 'none'}", language)
    return f"{said} {fitted}"


def shown_rows(document: BacktestDocument, *, all_of_them: bool) -> tuple[str, list[BacktestRow]]:
    """The message that names them, and the rows to show: all, or those furthest off."""
    if all_of_them or len(document.rows) <= FEW_ROWS:
        return "backtest.rows", document.rows
    scored = [row for row in document.rows if row.log_error is not None and row.bad is None]
    return "backtest.worst", sorted(scored, key=lambda row: -abs(row.log_error or 0.0))[:WORST]


def row_cells(row: BacktestRow, language: str) -> list[str]:
    """A row as cells of a table: a gain, or the time per token."""
    time = row.predicted_tpot_ms is not None
    predicted = row.predicted_tpot_ms if time else row.predicted
    if row.measured is None or predicted is None or row.log_error is None:
        return [row.case_id, "", "", "", "", row.skipped or ""]
    return [
        row.case_id,
        _figure(predicted, time),
        span_words(row.low, row.high, time),
        _figure(row.measured, time),
        signed_percent(row.log_error),
        "; ".join(remarks(row, language)),
    ]


def ttft_cells(row: BacktestRow, language: str) -> list[str] | None:
    """The time to the first token of an absolute row as cells, under those of its time per token."""
    if row.predicted_ttft_ms is None or row.measured_ttft_ms is None or row.log_error_ttft is None:
        return None
    outside = "" if row.inside_ttft else say("backtest.outside", language)
    measured, predicted = _figure(row.measured_ttft_ms, True), _figure(row.predicted_ttft_ms, True)
    interval = span_words(row.low_ttft_ms, row.high_ttft_ms, True)
    return [say("backtest.ttft_line", language), predicted, interval, measured, signed_percent(row.log_error_ttft), outside]


def remarks(row: BacktestRow, language: str) -> list[str]:
    """What is to be said of an answered row: that it is bad, that its interval misses, that its sign is wrong."""
    found = [say("backtest.not_believed", language)] if row.bad is not None else []
    found += [say("backtest.outside", language)] if row.inside is False else []
    return found + ([say("backtest.wrong_sign", language)] if row.sign_agrees is False else [])


def _figure(value: float, time: bool) -> str:
    return time_text(value * MS) if time else gain_text(value)


def span_words(low: float | None, high: float | None, time: bool) -> str:
    """An interval; an end without bound is ∞."""
    if low is None:
        return ""
    ends = [low, inf if high is None else high]
    return "–".join(_figure(end, time) for end in ends) if time else f"×{ends[0]:.2f}–{gain_text(ends[1])[1:]}"


def reason_words(reason: BacktestReason, language: str) -> str:
    """A reason and where its first rows are."""
    more = "" if reason.rows <= len(reason.where) else say("backtest.and_more", language, rows=reason.rows - len(reason.where))
    return say("backtest.reason", language, says=reason.says, where=_places(reason.where), more=more)


def _places(where: Sequence[str]) -> str:
    """Places with each file named once: ``runs.csv:4, 7``."""
    told: list[str] = []
    before = ""
    for place in where:
        file, _, line = place.rpartition(":")
        told.append(line if told and file == before else place)
        before = file
    return ", ".join(told)
