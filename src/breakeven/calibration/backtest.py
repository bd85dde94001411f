"""Predictions held against measurements, with everything known or with a whole group left out of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from breakeven.calibration.answer import SERVING, Answer, answer_pair, answer_run
from breakeven.calibration.summary import Summary, summarise
from breakeven.draws import Draws
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.measured.row import NotUnderstood, Skipped
from breakeven.measured.run import Run
from breakeven.measured.words.lever_names import lever
from breakeven.messages import Message
from breakeven.spec.calibration import Calibration

DRAWS = 256
Fit = Callable[[Measured], Calibration]
CalibrationOf = Callable[[Run | Pair], Calibration | None]


@dataclass(frozen=True, kw_only=True)
class Backtest:
    """Every row of the files, answered or skipped, in their order."""

    rows: tuple[Answer, ...]
    draws: int
    seed: int
    columns: tuple[str, ...] = ()
    """Of the files, those that are not known among them."""
    left_out: str = ""
    """What was held out of the fit: ``group``, or nothing."""

    @property
    def answered(self) -> tuple[Answer, ...]:
        """Rows with a prediction."""
        return tuple(row for row in self.rows if row.main is not None)

    @property
    def skipped(self) -> tuple[Answer, ...]:
        """Rows without one; each has its reason."""
        return tuple(row for row in self.rows if row.main is None)

    @property
    def bad(self) -> tuple[Answer, ...]:
        """Rows that cannot be true as written, answered or not."""
        return tuple(row for row in self.rows if row.doubt is not None)

    @property
    def summary(self) -> Summary:
        """Scores over the rows that there is no doubt about."""
        return summarise(row for row in self.rows if row.doubt is None)

    @property
    def summary_with_bad(self) -> Summary:
        """The same with the doubtful rows in."""
        return summarise(self.rows)


def backtest(
    measured: Measured, calibration: Calibration | CalibrationOf | None = None, draws: int = DRAWS, seed: int = 0, left_out: str = ""
) -> Backtest:
    """All rows under one calibration, under that which a function names for each, or under what is shipped."""
    named: CalibrationOf = calibration if callable(calibration) else lambda row: calibration
    drawn = Draws(draws, seed)
    found = [answer_run(run, named(run), drawn) for run in measured.runs]
    found += [answer_pair(pair, named(pair), drawn) for pair in measured.pairs]
    doubts = {each.where: each.reason for each in measured.bad}
    found += [_skipped(each, doubts.get(each.where)) for each in measured.skipped]
    return Backtest(rows=_in_order(measured, found), draws=draws, seed=seed, columns=measured.columns, left_out=left_out)


def leave_one_group_out(measured: Measured, fit: Fit, draws: int = DRAWS, seed: int = 0) -> Backtest:
    """Each group under a fit to all the others: the held group, and rows that are in doubt, are never in it."""
    fits: dict[str, Calibration] = {}

    def of(row: Run | Pair) -> Calibration:
        if row.group not in fits:
            fits[row.group] = fit(measured.without(row.group).sound)
        return fits[row.group]

    return backtest(measured, of, draws, seed, left_out="group")


def _skipped(row: Skipped, doubt: Message | None) -> Answer:
    fields = row.fields
    return Answer(
        id=row.id,
        where=row.where,
        lever=_lever(fields.get("lever", "")),
        hardware=fields.get("hardware") or fields.get("system", ""),
        engine=fields.get("engine") or fields.get("backend", ""),
        model=fields.get("model") or fields.get("model_path", ""),
        group=fields.get("group", ""),
        quality=fields.get("quality", ""),
        doubt=doubt,
        skipped=row.reason,
    )


def _lever(written: str) -> str:
    """Our name of a lever, where it is one; of a row without one, that of absolute rows."""
    try:
        return lever(written) if written else SERVING
    except NotUnderstood:
        return written


def _in_order(measured: Measured, found: Iterable[Answer]) -> tuple[Answer, ...]:
    place = {where: at for at, where in enumerate(measured.rows)}
    return tuple(sorted(found, key=lambda answer: place.get(answer.where, len(place))))
