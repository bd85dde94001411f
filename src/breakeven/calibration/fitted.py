"""What a fit hands over: numbers with their intervals and what they were before, how they go together, and what is left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.spec.calibration_file import MeasuredDeployment, OwnRow
from breakeven.spec.correction import Scales
from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class FittedParameter:
    """A parameter after the fit, and before it; intervals are 90 %."""

    value: float
    low: float
    high: float
    prior: float
    prior_low: float
    prior_high: float
    rows: int
    """Rows that bear on it."""


@dataclass(frozen=True, kw_only=True)
class Residual:
    """A measured time or gain, and what the fitted model says of it."""

    id: str
    where: str
    group: str
    quantity: str
    """``tpot``, ``ttft`` or ``step``, in seconds, or ``gain``."""
    measured: float
    predicted: float


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A fit of some parameters to some rows."""

    estimates: Mapping[str, FittedParameter]
    covariance: Array
    """Of ln of the parameters after the fit, in the order of ``estimates``."""
    residuals: tuple[Residual, ...]
    deviations: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Standard deviations of ln(measured/predicted) by level of knowledge: ``none``, ``few``, ``deployment``."""
    deployments: tuple[MeasuredDeployment, ...] = ()
    """The deployments whose rows were in it, with what was adapted to each."""
    own: tuple[OwnRow, ...] = ()
    """Rows that correct the times of their own deployment, with what the fit missed of them."""
    correction: Mapping[str, Scales] = field(default_factory=dict)
    """How corrections spread, from deployments that were left out."""
