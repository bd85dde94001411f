"""A backtest becomes a document: sentences in the reader's language, times in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from breakeven.backtest_document import BacktestCounts, BacktestDocument, BacktestReason, BacktestRow, BacktestScore
from breakeven.calibration.answer import Answer, Estimate
from breakeven.calibration.backtest import Backtest
from breakeven.calibration.summary import Score
from breakeven.compose import Language
from breakeven.messages import Message, text

MS = 1e3
SHOWN_PLACES = 5


def compose(found: Backtest, files: Sequence[Path | str], language: Language = "en") -> BacktestDocument:
    """The document of a backtest."""
    summary, with_bad = found.summary, found.summary_with_bad
    return BacktestDocument(
        language=language,
        files=[str(file) for file in files],
        counts=BacktestCounts(rows=len(found.rows), answered=len(found.answered), skipped=len(found.skipped), bad=len(found.bad)),
        rows=[_row(answer, language) for answer in found.rows],
        summary=[_score(score) for score in summary.cells],
        levers=[_score(score) for score in summary.levers],
        knowledge=[_score(score) for score in summary.knowledge],
        apart=[_score(score) for score in with_bad.apart],
        levers_with_bad=[_score(score) for score in with_bad.levers],
        skipped_reasons=_reasons(((answer, answer.skipped) for answer in found.skipped), language),
        bad_reasons=_reasons(((answer, answer.doubt) for answer in found.bad), language),
        left_out=found.left_out or None,
        columns=list(found.columns),
        draws=found.draws,
        seed=found.seed,
    )


def _row(answer: Answer, language: Language) -> BacktestRow:
    return BacktestRow(
        case_id=answer.id,
        where=answer.where,
        lever=answer.lever,
        hardware=answer.hardware,
        engine=answer.engine,
        model=answer.model,
        group=answer.group,
        quality=answer.quality,
        regime=answer.regime,
        knowledge=answer.knowledge,
        bad=None if answer.doubt is None else text(answer.doubt, language),
        skipped=None if answer.skipped is None else text(answer.skipped, language),
        understood={name: note if isinstance(note, str) else text(note, language) for name, note in answer.notes.items()},
        **_gain(answer) if answer.gain is not None else _times(answer),
    )


def _gain(answer: Answer) -> dict[str, Any]:
    gain = answer.gain
    return {} if gain is None else {"predicted": gain.predicted, "sign_agrees": answer.sign, **_held(gain, 1.0)}


def _times(answer: Answer) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if answer.tpot is not None:
        told |= {"predicted_tpot_ms": MS * answer.tpot.predicted, **_held(answer.tpot, MS)}
    if answer.ttft is not None:
        held = _held(answer.ttft, MS)
        told |= {"predicted_ttft_ms": MS * answer.ttft.predicted}
        told |= {f"{name}_ttft_ms": held[name] for name in ("measured", "low", "high")}
        told |= {f"{name}_ttft": held[name] for name in ("log_error", "inside")}
    return told


def _held(estimate: Estimate, unit: float) -> dict[str, Any]:
    """An estimate beside its measured value; an end without bound is null."""
    return {
        "measured": unit * estimate.measured,
        "low": unit * estimate.low,
        "high": unit * estimate.high if isfinite(estimate.high) else None,
        "log_error": estimate.log_error,
        "inside": estimate.inside,
    }


def _score(score: Score) -> BacktestScore:
    return BacktestScore(
        lever=score.lever,
        hardware=score.hardware,
        engine=score.engine,
        knowledge=score.knowledge,
        quality=score.quality,
        n=score.rows,
        groups=score.groups,
        median_abs_log_error=score.median_error,
        p90_abs_log_error=score.p90_error,
        group_median_abs_log_error=score.group_median_error,
        group_p90_abs_log_error=score.group_p90_error,
        bias=score.bias,
        signed=score.signed,
        sign_agreement=score.sign_agreement,
        coverage=score.coverage.share,
        coverage_low=score.coverage.low,
        coverage_high=score.coverage.high,
        group_coverage=score.group_coverage,
    )


def _reasons(rows: Iterable[tuple[Answer, Message | None]], language: Language) -> list[BacktestReason]:
    by: dict[str, list[tuple[Answer, Message]]] = {}
    for answer, reason in rows:
        if reason is not None:
            by.setdefault(reason.key.partition(".")[2], []).append((answer, reason))
    found = [
        BacktestReason(
            kind=kind, rows=len(some), says=text(some[0][1], language), where=[answer.where for answer, _ in some[:SHOWN_PLACES]]
        )
        for kind, some in by.items()
    ]
    return sorted(found, key=lambda reason: (-reason.rows, reason.kind))
