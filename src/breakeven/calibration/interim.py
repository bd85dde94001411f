"""A fit by damped least squares in ln of the parameters, about what was known before: robust on ln of time, all rows in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

import numpy as np

from breakeven.calibration.fitted import Estimate, Fit, Residual
from breakeven.efficiencies import parameters, prior_values, shipped_values, table
from breakeven.evaluator import Point, evaluate
from breakeven.measured.run import Run
from breakeven.spec.calibration import Calibration
from breakeven.spec.calibration_file import Measured
from breakeven.stats import Q95, Array

SECTIONS = ("step", "prefill", "ttft")
WITHIN = {"tpot": 0.10, "ttft": 0.26}
WIDEST = 20.0
"""A prior that reaches down to 0 is taken to reach this far below its value."""
NUDGE = 0.05
BEARS = 0.01
ROUNDS = 12


@dataclass(frozen=True, kw_only=True)
class _Target:
    run: Run
    quantity: str
    measured_s: float


def fit_runs(runs: Sequence[Run], without: str = "") -> Fit:
    """The step, prefill and TTFT numbers fitted to absolute rows."""
    from scipy.optimize import least_squares

    targets = [_Target(run=run, quantity="tpot", measured_s=run.tpot_s) for run in runs]
    targets += [_Target(run=run, quantity="ttft", measured_s=run.ttft_s) for run in runs if run.ttft_s is not None]
    names = [name for name in sorted(set(parameters().values())) if name.partition(".")[0] in SECTIONS]
    before = {name: _before(name, without) for name in names}
    start = np.log([before[name][0] for name in names])
    spread = np.array([log(high / low) / (2 * Q95) for _, low, high in before.values()])
    sigma = np.array([WITHIN[target.quantity] for target in targets])
    measured = np.log([target.measured_s for target in targets])

    def weighted(x: Array) -> Array:
        return np.concatenate([(measured - _predicted(x, names, targets)[0]) / sigma, (x - start) / spread])

    def jacobian(x: Array) -> Array:
        here, nudged = _predicted(x, names, targets)
        return np.vstack([-(nudged - here[:, None]) / NUDGE / sigma[:, None], np.diag(1 / spread)])

    found = least_squares(weighted, start, jac=jacobian, bounds=(start - 3 * spread, start + 3 * spread), loss="soft_l1", max_nfev=ROUNDS)
    final, slopes = weighted(found.x), jacobian(found.x)
    covariance = np.linalg.inv(slopes.T @ slopes)
    bears = (np.abs(slopes[: len(targets)] * sigma[:, None]) > BEARS).sum(axis=0)
    estimates = {
        name: _estimate(float(found.x[i]), float(covariance[i, i]) ** 0.5, before[name], int(bears[i])) for i, name in enumerate(names)
    }
    return Fit(
        estimates=estimates,
        covariance=np.asarray(covariance, dtype=np.float64),
        residuals=tuple(
            Residual(
                id=target.run.id,
                where=target.run.where,
                group=target.run.group,
                quantity=target.quantity,
                measured_s=target.measured_s,
                predicted_s=target.measured_s / exp(final[i] * sigma[i]),
            )
            for i, target in enumerate(targets)
        ),
        deviations=_deviations(targets, final[: len(targets)] * sigma),
        deployments=_deployments(runs),
    )


def _before(name: str, without: str) -> tuple[float, float, float]:
    section, _, rest = name.partition(".")
    value, entry = shipped_values(without).get(name, prior_values()[name]), table("prior")[section][rest]
    low, high = float(entry.get("low", value / 2)), float(entry.get("high", value * 2))
    return value, max(min(low, value), value / WIDEST), max(high, value * 1.01)


def _estimate(ln: float, deviation: float, before: tuple[float, float, float], rows: int) -> Estimate:
    half = Q95 * deviation
    return Estimate(
        value=exp(ln), low=exp(ln - half), high=exp(ln + half), prior=before[0], prior_low=before[1], prior_high=before[2], rows=rows
    )


def _predicted(x: Array, names: Sequence[str], targets: Sequence[_Target]) -> tuple[Array, Array]:
    """ln of each predicted time, and with each parameter nudged, shapes (rows,) and (rows, parameters)."""
    candidates = np.tile(x, (len(x) + 1, 1)) + NUDGE * np.eye(len(x) + 1, len(x), k=-1)
    calibration = Calibration(values=dict(zip(names, np.exp(candidates).T, strict=True)))
    points: dict[int, Point] = {}
    found = []
    for target in targets:
        key = id(target.run)
        if key not in points:
            points[key] = evaluate(replace(target.run.deployment, calibration=calibration))
        point = points[key]
        seconds = point.tpot_s if target.quantity == "tpot" or point.ttft_s is None else point.ttft_s
        found.append(np.broadcast_to(np.log(seconds), len(x) + 1))
    lns = np.array(found)
    return lns[:, 0], lns[:, 1:]


def _deviations(targets: Sequence[_Target], residuals: Array) -> dict[str, dict[str, float]]:
    found: dict[str, float] = {}
    for quantity in ("tpot", "ttft"):
        of = residuals[[target.quantity == quantity for target in targets]]
        if len(of) > 2:
            within = float(1.4826 * np.median(np.abs(of)))
            found |= {f"{quantity}_within": within, f"{quantity}_between": within / len(of) ** 0.5}
    return {"few": found, "deployment": found} if found else {}


def _deployments(runs: Sequence[Run]) -> tuple[Measured, ...]:
    counted: dict[tuple[str, str, str, str, str], int] = {}
    for run in runs:
        d = run.deployment
        key = (d.model.name, d.hardware.device.name, d.hardware.device.family, d.engine.name, d.engine.version)
        counted[key] = counted.get(key, 0) + 1
    return tuple(
        Measured(model=model, device=device, family=family, engine=engine, version=version, rows=rows)
        for (model, device, family, engine, version), rows in sorted(counted.items())
    )
