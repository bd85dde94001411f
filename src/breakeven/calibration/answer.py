"""What the model says of one measured row: the value it predicts with its 90 % interval, beside the value measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite, log

import numpy as np

from breakeven import registry
from breakeven.draws import Draws
from breakeven.efficiencies import level
from breakeven.errors import BreakevenError
from breakeven.evaluator import Noise, evaluate
from breakeven.judge import interval, noise_of
from breakeven.lever import Lever, Sigma, in_part, sigma_of
from breakeven.measured.pair import Pair
from breakeven.measured.row import NotUnderstood
from breakeven.measured.run import Run
from breakeven.messages import Message
from breakeven.spec.calibration import Calibration
from breakeven.spec.check import check_deployment
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

SERVING = "serving"
"""Stands in place of a lever for absolute rows."""
SAME_LOW, SAME_HIGH = 0.95, 1.05
"""Between these a measured gain has no sign."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A predicted quantity beside its measured value: a gain, or seconds. ``high`` is infinite where it is without bound."""

    predicted: float
    low: float
    high: float
    measured: float

    @property
    def log_error(self) -> float:
        """ln(measured/predicted): above 0 where more was measured than predicted."""
        return log(self.measured / self.predicted)

    @property
    def inside(self) -> bool:
        """Whether the 90 % interval covers the measured value."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One row answered, or skipped with the reason."""

    id: str
    where: str
    lever: str
    """The lever's name, or ``serving`` for absolute rows."""
    hardware: str
    engine: str
    model: str
    group: str = ""
    regime: str = ""
    quality: str = ""
    knowledge: str = ""
    """How well the model-form is known there: ``family`` (the engine on this class of device was in the fits) or ``foreign``."""
    gain: Estimate | None = None
    tpot: Estimate | None = None
    """Of an absolute row, in seconds."""
    ttft: Estimate | None = None
    doubt: Message | None = None
    """Why the row is not counted in the summary; it is answered all the same."""
    skipped: Message | None = None
    notes: Mapping[str, Message | str] = field(default_factory=dict)

    @property
    def main(self) -> Estimate | None:
        """The estimate that the row is scored by: the gain, or the time per token."""
        return self.tpot if self.gain is None else self.gain

    @property
    def grade(self) -> str:
        """The letter of the row's own quality, A to D; empty where none is stated."""
        return self.quality[:1].upper()

    @property
    def sign(self) -> bool | None:
        """Whether the predicted gain is on the measured one's side of 1; None where the measured one is too near 1 to have a side."""
        if self.gain is None or SAME_LOW <= self.gain.measured <= SAME_HIGH:
            return None
        return (self.gain.predicted > 1.0) == (self.gain.measured > 1.0)


class Unanswered(Exception):
    """A row the model has no finite number for; carries the message."""

    def __init__(self, message: Message) -> None:
        self.message = message
        super().__init__(message.key)


def estimate(predicted: Array | float, measured: float) -> Estimate:
    """Median and 90 % interval of draws, beside a measured value."""
    found = interval(predicted)
    if found.median is None or found.median <= 0.0 or not isfinite(measured) or measured <= 0.0:
        raise Unanswered(Message("backtest.no_number", {}))
    return Estimate(predicted=found.median, low=found.low or 0.0, high=inf if found.high is None else found.high, measured=measured)


def calibrated(d: Deployment, calibration: Calibration | None) -> Deployment:
    """A deployment under a calibration; under none, as it is."""
    return d if calibration is None else replace(d, calibration=calibration)


def answer_pair(pair: Pair, calibration: Calibration | None, draws: Draws) -> Answer:
    """A lever's two arms evaluated at the row's own conditions."""
    pair = replace(pair, off=calibrated(pair.off, calibration), on=calibrated(pair.on, calibration))
    found = replace(_of(pair, pair.on), lever=pair.lever, regime=pair.regime, quality=pair.quality)
    try:
        for arm in (pair.off, pair.on):
            check_deployment(arm)
        # What comes out without bound, or as no number, is said in the row: numpy need not say it too.
        with np.errstate(all="ignore"):
            gain = pair.gain(draws, noise_of(pair.lever, sigma(pair), draws))
        return replace(found, gain=estimate(gain, pair.measured))
    except (BreakevenError, NotUnderstood, Unanswered) as error:
        return replace(found, skipped=error.message)
    except ArithmeticError:
        return replace(found, skipped=Message("backtest.no_number", {}))


def sigma(pair: Pair) -> Sigma:
    """The lever's own model-form sigma between a pair's arms: the row of the table that the pair names, else as the lever tells it."""
    if pair.sigma_row:
        found = sigma_of(pair.lever, pair.sigma_row, pair.on)
        found = found if pair.exposure is None else in_part(found, pair.exposure)
        return Sigma(step=found, prefill=found)
    lever: Lever = registry.module("levers", pair.lever).LEVER
    return lever.sigma(pair.on, evaluate(pair.off, exact=False), evaluate(pair.on, exact=False))


def answer_run(run: Run, calibration: Calibration | None, draws: Draws) -> Answer:
    """A deployment's times per token and to the first token."""
    d = calibrated(run.deployment, calibration)
    found = _of(run, d)
    try:
        with np.errstate(all="ignore"):
            point = evaluate(d, draws, noise=Noise())
        ttft = None if run.ttft_s is None or point.ttft_s is None else estimate(point.ttft_s, run.ttft_s)
        if not point.fits:
            found = replace(found, notes={**found.notes, "fit": Message("backtest.does_not_fit", {})})
        return replace(found, tpot=estimate(point.tpot_s, run.tpot_s), ttft=ttft)
    except (BreakevenError, Unanswered) as error:
        return replace(found, skipped=error.message)
    except ArithmeticError:
        return replace(found, skipped=Message("backtest.no_number", {}))


def _of(row: Pair | Run, d: Deployment) -> Answer:
    return Answer(
        id=row.id,
        where=row.where,
        lever=SERVING,
        hardware=d.hardware.device.name,
        engine=d.engine.name,
        model=d.model.name,
        group=row.group,
        knowledge=level(d.engine, d.hardware.device.family),
        doubt=row.doubt,
        notes=row.notes,
    )
