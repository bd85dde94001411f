"""Robust bounded least squares on logarithms of times: what measurements say of the efficiencies, and how firmly.

    minimise Σ_i ρ(w_i·(ln measured_i − ln model_i(θ))/σ_i) + Σ_j ((θ_j − ln centre_j)/s_j)²,   ρ(r) = 2c²·(√(1 + (r/c)²) − 1)

θ are logarithms within bounds. ρ is least squares near nothing and grows like |r| far out (pseudo-Huber, Charbonnier 1994), so that a run
of another kind does not pull the others. The second sum is what was known before; where the data say nothing it keeps a parameter there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.calibration.evidence import Evidence
from breakeven.calibration.parameters import Parameter, values_of
from breakeven.stats import Array

BEND = 1.5
"""c of the loss, in units of a row's σ·w."""
STEP = 1e-3
"""Step of the differences, of the logarithm."""
TOLERANCE = 1e-4
EVALUATIONS = 40


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What was found."""

    parameters: tuple[Parameter, ...]
    logs: Array
    """ln of each parameter, shape (parameters,)."""
    covariance: Array
    """Of the logarithms, from the curvature at the minimum: rows taken as independent of each other."""
    residuals: Array
    """ln measured − ln model of every row, shape (rows,)."""
    evidence: Sequence[Evidence]

    @property
    def values(self) -> Mapping[str, Array | float]:
        """Parameters by name."""
        return {name: float(value) for name, value in values_of(self.parameters, self.logs).items()}


def rooted(r: Array) -> Array:
    """√ρ(r) with the sign of r: what least squares squares.

    >>> [round(float(x), 3) for x in rooted(np.array([0.0, 0.1, -30.0]))]
    [0.0, 0.1, -9.253]
    """
    return np.sign(r) * BEND * np.sqrt(2.0 * (np.sqrt(1.0 + (r / BEND) ** 2) - 1.0))


def _slope(r: Array) -> Array:
    """d rooted/dr: 1 near nothing, falling as |r|^−½."""
    bent = np.sqrt(1.0 + (r / BEND) ** 2)
    near = np.abs(r) < 1e-6
    root = np.sqrt(2.0 * (bent - 1.0))
    return np.where(near, 1.0, np.abs(r / BEND) / (bent * np.where(near, 1.0, root)))


@dataclass(frozen=True, kw_only=True)
class _Problem:
    parameters: tuple[Parameter, ...]
    evidence: Sequence[Evidence]

    @property
    def centres(self) -> Array:
        return np.log([p.centre for p in self.parameters])

    @property
    def deviations(self) -> Array:
        return np.array([p.deviation for p in self.parameters])

    def misses(self, logs: Array) -> tuple[Array, Array]:
        """Scaled residuals at candidates (parameters, candidates), and what scales them, as a column."""
        values = values_of(self.parameters, logs)
        measured, scale, predicted = [], [], []
        for one in self.evidence:
            measured.append(one.measured)
            scale.append(np.where(np.isnan(one.measured), 0.0, one.weight / one.deviation))
            predicted.append(one.predict(values))
        factor = np.concatenate(scale)[:, None]
        return np.nan_to_num(factor * (np.concatenate(measured)[:, None] - np.concatenate(predicted))), factor

    def residuals(self, logs: Array) -> Array:
        missed, _ = self.misses(logs[:, None])
        return np.concatenate([rooted(missed[:, 0]), (logs - self.centres) / self.deviations])

    def jacobian(self, logs: Array) -> Array:
        moved = np.concatenate([logs[:, None], logs[:, None] + STEP * np.eye(len(logs))], axis=1)
        missed, _ = self.misses(moved)
        rows = _slope(missed[:, :1]) * (missed[:, 1:] - missed[:, :1]) / STEP
        return np.concatenate([rows, np.diag(1.0 / self.deviations)])


def fit(evidence: Sequence[Evidence], parameters: tuple[Parameter, ...], start: Mapping[str, Array | float] | None = None) -> Fit:
    """The parameters that the evidence and what was known before agree on best."""
    from scipy.optimize import least_squares

    problem = _Problem(parameters=parameters, evidence=evidence)
    low, high = (np.log([getattr(p, end) for p in parameters]) for end in ("low", "high"))
    first = problem.centres if start is None else np.log([float(start[p.name]) for p in parameters])
    inside = 1e-6 * (high - low)
    found = least_squares(
        problem.residuals,
        np.clip(first, low + inside, high - inside),
        problem.jacobian,
        bounds=(low, high),
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        max_nfev=EVALUATIONS,
    )
    missed, factor = problem.misses(found.x[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        residuals = np.where(factor[:, 0] > 0, missed[:, 0] / factor[:, 0], np.nan)
    return Fit(
        parameters=parameters,
        logs=found.x,
        covariance=np.linalg.inv(found.jac.T @ found.jac),
        residuals=residuals,
        evidence=tuple(evidence),
    )
