"""Fits of lever gains: kernels, rounds of speculation and classes of engine, from measured pairs; and each group left out of them.

A gain depends on few of the parameters, so its slopes are taken over those alone. A left-out group's fit starts from the fit of all: the
rows' slopes are those found there, and the rows that the parameters moved are evaluated again (the chord method) until they rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven.calibration.evidence import Values, weights
from breakeven.calibration.fit import BEND
from breakeven.calibration.lever_parameters import FACTOR, expanded, names_of, of_pairs
from breakeven.calibration.parameters import Parameter
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise
from breakeven.measured.pair import Pair
from breakeven.spec.calibration import Calibration
from breakeven.stats import Array

DEVIATION = 0.1
"""Residual scale of ln gain, below which a row pulls as in least squares."""
FULL_ROWS = 6
"""Rows of one group that count in full."""
STEP = 1e-3
ROUNDS, LEFT_ROUNDS, LEFT_REWEIGHTED = 6, 2, 4
STILL, SMALL = 0.01, 1e-4
"""Largest move of a logarithm at which rounds, and reweighting, end."""
MOVED = 0.02
"""A row whose predicted ln gain moves by more is evaluated again."""

Step = Callable[[Pair], Values]
"""The parameters of the step that a pair is evaluated with: those of a fit that has not seen it."""


@dataclass(frozen=True, kw_only=True)
class Gains:
    """Predicted ln gains of pairs at a point, and their slopes over the logarithms of the parameters."""

    logs: Array
    predicted: Array
    slopes: Array


@dataclass(frozen=True, kw_only=True)
class LeverFit:
    """What pairs say of the parameters they bear on."""

    pairs: tuple[Pair, ...]
    parameters: tuple[Parameter, ...]
    step: Step
    at: Gains
    covariance: Array
    alone: bool = False
    """Whether nothing shipped stands under the parameters."""

    @property
    def values(self) -> Mapping[str, float]:
        """Parameters by name, factors of classes multiplied out."""
        return values_at(self.parameters, self.at.logs)


def values_at(parameters: Sequence[Parameter], logs: Array) -> dict[str, float]:
    """Parameter values by name, factors of classes multiplied out."""
    return {name: float(value) for name, value in expanded({p.name: np.exp(x) for p, x in zip(parameters, logs, strict=True)}).items()}  # type: ignore[arg-type]


def told(pair: Pair, values: Values) -> dict[str, Array | float]:
    """The parameters that a pair tells of: kernels that both its arms run stay those of the step, which was fitted with them."""
    own = {name.replace(FACTOR, ".") for name in names_of(pair)}
    return {name: value for name, value in values.items() if name in own}


def log_gain(pair: Pair, values: Values, *, alone: bool = False) -> Array:
    """ln of the gain that parameters predict, shape (candidates,) or ()."""
    found = Calibration(values=values, alone=alone)
    arms = replace(pair, off=replace(pair.off, calibration=found), on=replace(pair.on, calibration=found))
    return np.log(np.asarray(arms.gain(MEDIAN, Noise())))


def _row(pair: Pair, step: Step, parameters: Sequence[Parameter], logs: Array, own: Sequence[int], alone: bool) -> tuple[float, Array]:
    """A pair's ln gain at a point and its slopes over its own parameters."""
    shifts = np.zeros((len(parameters), len(own) + 1))
    shifts[own, np.arange(1, len(own) + 1)] = STEP
    values = {parameters[i].name: np.exp(logs[i] + shifts[i]) for i in own}
    found = np.broadcast_to(log_gain(pair, {**step(pair), **expanded(values)}, alone=alone), (len(own) + 1,))  # type: ignore[dict-item]
    return float(found[0]), (found[1:] - found[0]) / STEP


def gains(pairs: Sequence[Pair], step: Step, parameters: Sequence[Parameter], logs: Array, *, alone: bool = False) -> Gains:
    """Predictions and slopes of pairs at a point."""
    place = {p.name: i for i, p in enumerate(parameters)}
    predicted, slopes = np.full(len(pairs), np.nan), np.zeros((len(pairs), len(parameters)))
    for i in range(len(pairs)):
        own = [place[name] for name in sorted(names_of(pairs[i])) if name in place]
        predicted[i], slopes[i, own] = _row(pairs[i], step, parameters, logs, own, alone)
    return Gains(logs=logs, predicted=predicted, slopes=slopes)


def _solve(parameters: Sequence[Parameter], measured: Array, weight: Array, at: Gains, reweighted: int = 30) -> tuple[Array, Array]:
    """The robust bounded minimum of the problem made linear at a point, and its curvature.

    Reweighted least squares: a row counts 1/√(1 + (r/c)²), which is what the loss's slope gives it; what lies at a bound and is pushed
    outwards rests there.
    """
    low, high = (np.log([getattr(p, end) for p in parameters]) for end in ("low", "high"))
    centres, held = np.log([p.centre for p in parameters]), np.array([p.deviation for p in parameters]) ** -2.0
    rows, logs = weight[:, None] * at.slopes, np.clip(at.logs, low, high)
    curvature: Array = np.diag(held)
    for _ in range(reweighted):
        missed = weight * (measured - at.predicted) - rows @ (logs - at.logs)
        counted: Array = (1.0 + (missed / BEND) ** 2) ** -0.5
        curvature = rows.T @ (counted[:, None] * rows) + np.diag(held)
        downhill = rows.T @ (counted * missed) - held * (logs - centres)
        free = ~(((logs <= low) & (downhill < 0)) | ((logs >= high) & (downhill > 0)))
        moved = np.zeros(len(logs))
        moved[free] = np.linalg.solve(curvature[np.ix_(free, free)], downhill[free])
        after = np.clip(logs + moved, low, high)
        still = float(np.max(np.abs(after - logs), initial=0.0)) < SMALL
        logs = after
        if still:
            break
    return logs, curvature


def _weight(pairs: Sequence[Pair]) -> Array:
    return weights([pair.group for pair in pairs], FULL_ROWS) / DEVIATION


def fit_pairs(pairs: Sequence[Pair], step: Step, parameters: tuple[Parameter, ...] | None = None, *, alone: bool = False) -> LeverFit:
    """The fit of all pairs: Gauss–Newton rounds, each the robust minimum of the problem made linear."""
    found = parameters or of_pairs(pairs)
    measured, weight = np.log([pair.measured for pair in pairs]), _weight(pairs)
    at = gains(pairs, step, found, np.log([p.centre for p in found]), alone=alone)
    curvature: Array = np.eye(len(found))
    for _ in range(ROUNDS):
        logs, curvature = _solve(found, measured, weight, at)
        still = float(np.max(np.abs(logs - at.logs), initial=0.0)) < STILL
        at = gains(pairs, step, found, at.logs + np.clip(logs - at.logs, -1.0, 1.0), alone=alone)
        if still:
            break
    return LeverFit(
        pairs=tuple(pairs), parameters=found, step=step, at=at, covariance=np.asarray(np.linalg.inv(curvature), dtype=float), alone=alone
    )


def without(whole: LeverFit, held: Sequence[int]) -> Array:
    """ln of the parameters by the pairs that are not held: the chord method from the fit of all."""
    pairs, out = whole.pairs, set(held)
    kept = [i for i in range(len(pairs)) if i not in out]
    measured = np.log([pairs[i].measured for i in kept])
    weight = _weight([pairs[i] for i in kept])
    at = Gains(logs=whole.at.logs, predicted=whole.at.predicted[kept], slopes=whole.at.slopes[kept])
    logs = at.logs
    for _ in range(LEFT_ROUNDS):
        logs, _ = _solve(whole.parameters, measured, weight, at, LEFT_REWEIGHTED)
        moved = np.flatnonzero(np.abs(at.slopes @ (logs - at.logs)) > MOVED)
        if not len(moved):
            break
        again = at.predicted + at.slopes @ (logs - at.logs)
        values = values_at(whole.parameters, logs)
        for i in moved:
            pair = pairs[kept[i]]
            again[i] = float(log_gain(pair, {**whole.step(pair), **told(pair, values)}, alone=whole.alone))
        at = Gains(logs=logs, predicted=again, slopes=at.slopes)
    return logs


def leave_pairs_out(whole: LeverFit, group_of: Callable[[Pair], str]) -> tuple[Array, Mapping[str, Mapping[str, float]]]:
    """ln of the predicted gain of every pair by a fit without its group, and the parameters of those fits."""
    predicted, found = np.empty(len(whole.pairs)), {}
    for group in sorted({group_of(pair) for pair in whole.pairs}):
        held = [i for i, pair in enumerate(whole.pairs) if group_of(pair) == group]
        values = values_at(whole.parameters, without(whole, held))
        found[group] = values
        for i in held:
            pair = whole.pairs[i]
            predicted[i] = float(log_gain(pair, {**whole.step(pair), **told(pair, values)}, alone=whole.alone))
    return predicted, found
