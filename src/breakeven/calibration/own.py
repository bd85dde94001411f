"""A fit of rows of one's own: about what is shipped, or from neutral ground where the fit is to be shipped itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log

import numpy as np

from breakeven.calibration.adapt import learn, rows_of
from breakeven.calibration.evidence import Evidence, Values, of_runs
from breakeven.calibration.fit import Fit, fit
from breakeven.calibration.fitted import Fitted, FittedParameter, Residual
from breakeven.calibration.leave_out import LeftOut, leave_groups_out, parameters_of
from breakeven.calibration.parameters import Parameter, parameter, values_of
from breakeven.efficiencies import prior_values, shipped, shipped_values, table
from breakeven.evaluator import evaluate
from breakeven.measured.run import Run
from breakeven.spec.calibration import Calibration
from breakeven.spec.calibration_file import MeasuredDeployment, OwnRow
from breakeven.spec.correction import Scales
from breakeven.stats import Q95, Array

NUDGE = 0.05
BEARS = 0.002
"""A row bears on a parameter when its time moves by this much where the parameter moves by one in ln."""
SCATTER = 1.4826
"""Standard deviation of a normal over its median absolute value."""
LEAST = 3
GROUPS = 4
"""Groups from which on each is left out once: intervals are then those of the jackknife where they are wider."""


def fit_own(
    runs: Sequence[Run], *, neutral_ground: bool = False, without: str = "", constants: Values | None = None, leave_out: bool = True
) -> Fitted:
    """The numbers of a step and of a prompt fitted to absolute rows, closed loops or pinned batches; ``constants`` stay as they are."""
    loops = [run for run in runs if run.deployment.workload.concurrency is not None]
    pinned = [run for run in runs if run.deployment.workload.batch is not None]
    parameters = parameters_of(runs)
    if not neutral_ground:
        parameters = tuple(of_class(p, runs) or _known(p, without) for p in parameters)
    evidence = [of(rows, constants, alone=neutral_ground) for of, rows in ((of_runs, loops), (of_steps, pinned)) if rows]
    found = fit(evidence, parameters)
    enough = leave_out and not pinned and len({run.group for run in loops}) >= GROUPS
    left = leave_groups_out(loops, found, constants=constants, alone=neutral_ground) if enough else None
    return _fitted(found, evidence, (*loops, *pinned), len(loops), left, neutral_ground)


def jackknife(left: LeftOut, names: Sequence[str]) -> Array:
    """Variances of ln of the parameters by leaving groups out: (G − 1)/G·Σ(θ_g − mean θ_g)² (Tukey 1958; rows of a group err together)."""
    logs = np.log([[float(values[name]) for name in names] for values in left.values.values()])
    found: Array = (len(logs) - 1) / len(logs) * ((logs - logs.mean(axis=0)) ** 2).sum(axis=0)
    return found


def of_steps(runs: Sequence[Run], constants: Values | None = None, *, alone: bool = False) -> Evidence:
    """The step of every run with a pinned batch."""

    def predict(values: Values) -> Array:
        known = Calibration(values={**(constants or {}), **values}, alone=alone)
        candidates = max((np.size(value) for value in values.values()), default=1)
        steps = [np.log(evaluate(replace(run.deployment, calibration=known)).tpot_s) for run in runs]
        return np.stack([np.broadcast_to(step, (candidates,)) for step in steps])

    return Evidence(
        measured=np.log([run.tpot_s for run in runs]),
        deviation=np.full(len(runs), prior_values()["offset.tpot_within"]),
        weight=np.ones(len(runs)),
        groups=tuple(run.group for run in runs),
        predict=predict,
    )


def of_class(p: Parameter, runs: Sequence[Run]) -> Parameter | None:
    """Where a fit begins on devices of a class that ``neutral.toml`` has a ground of its own for; None on all others."""
    families = {run.deployment.hardware.device.family for run in runs}
    section, _, name = p.name.rpartition(".")
    entries = [table("neutral")["class"].get(family, {}).get(section, {}).get(name) for family in families]
    found = [entry for entry in entries if entry is not None]
    return parameter(p.name, found[0]) if len(found) == len(families) else None


def _known(p: Parameter, without: str) -> Parameter:
    """A parameter about what is shipped, as firmly as its interval says; its bounds stay those of neutral ground."""
    interval = _shipped_interval(p.name, without)
    centre = shipped_values(without).get(p.name, prior_values().get(p.name))
    if centre is None or not p.low < centre < p.high:
        return p
    deviation = p.deviation if interval is None else min(log(interval[1] / interval[0]) / (2 * Q95), p.deviation)
    return replace(p, centre=centre, deviation=max(deviation, NUDGE))


def _shipped_interval(name: str, without: str) -> tuple[float, float] | None:
    """The 90 % interval of a number that is shipped: of a calibration, else of ``prior.toml``; None where its low end is 0."""
    entries = [sheet["parameters"][name] for named, sheet in shipped().items() if named != without and name in sheet.get("parameters", {})]
    section, _, rest = name.rpartition(".")
    sheet = table("prior").get(section, {}) if "." not in section else {}
    entry: Mapping[str, float] = entries[-1] if entries else sheet.get(rest, {})
    low, high = float(entry.get("low", 0.0)), float(entry.get("high", 0.0))
    return (low, high) if 0.0 < low < high else None


def _fitted(found: Fit, evidence: Sequence[Evidence], runs: Sequence[Run], loops: int, left: LeftOut | None, shipped: bool) -> Fitted:
    variances = np.diag(found.covariance)
    if left is not None:
        variances = np.maximum(variances, jackknife(left, [p.name for p in found.parameters]))
    bears = _bears(found, evidence, loops)
    residuals = [*_residuals(runs[:loops], found.residuals), *_residuals(runs[loops:], found.residuals[2 * loops :], steps=True)]
    return Fitted(
        estimates={p.name: _estimate(p, float(found.logs[i]), float(variances[i]), bears[i]) for i, p in enumerate(found.parameters)},
        covariance=found.covariance,
        residuals=tuple(residuals),
        deviations={**_deviations(residuals), **({} if left is None else {"none": _of_left_out(runs, left)})},
        deployments=_deployments(runs),
        own=() if shipped else _own_rows(runs[:loops], found.residuals),
        correction=_correction(runs, left) if shipped and left is not None else {},
    )


def _estimate(p: Parameter, ln: float, variance: float, rows: int) -> FittedParameter:
    half, before = Q95 * variance**0.5, Q95 * p.deviation
    return FittedParameter(
        value=exp(ln),
        low=min(max(exp(ln - half), p.low), exp(ln)),
        high=max(min(exp(ln + half), p.high), exp(ln)),
        prior=p.centre,
        prior_low=p.centre * exp(-before),
        prior_high=p.centre * exp(before),
        rows=rows,
    )


def _bears(found: Fit, evidence: Sequence[Evidence], loops: int) -> list[int]:
    """How many rows each parameter moves: the step, the time per token or the time to the first one."""
    logs = found.logs[:, None] + NUDGE * np.eye(len(found.logs), len(found.logs) + 1, k=1)
    predicted = np.concatenate([one.predict(values_of(found.parameters, logs)) for one in evidence])
    measured = ~np.isnan(np.concatenate([one.measured for one in evidence]))
    moved = (np.abs(predicted[:, 1:] - predicted[:, :1]) > BEARS * NUDGE) & measured[:, None]
    rows = np.concatenate([moved[:loops] | moved[loops : 2 * loops], moved[2 * loops :]])
    return [int(count) for count in rows.sum(axis=0)]


def _residuals(runs: Sequence[Run], missed: Array, *, steps: bool = False) -> list[Residual]:
    """Of TPOT of all runs, then of TTFT, as the evidence has them; of steps there is one each."""
    found = [_residual(run, "step" if steps else "tpot", run.tpot_s, missed[i]) for i, run in enumerate(runs)]
    if not steps:
        found += [_residual(run, "ttft", run.ttft_s, missed[len(runs) + i]) for i, run in enumerate(runs) if run.ttft_s is not None]
    return found


def _residual(run: Run, quantity: str, seconds: float, missed: float) -> Residual:
    return Residual(
        id=run.id, where=run.where, group=run.group, quantity=quantity, measured=seconds, predicted=seconds / exp(float(missed))
    )


def _deviations(residuals: Sequence[Residual]) -> dict[str, dict[str, float]]:
    """Of deployments whose rows were in the fit: the scatter within a group, and how groups lie about the fit.

    With few rows of its own a deployment's offset is known as well as their mean.
    """
    few, calibrated = dict[str, float](), dict[str, float]()
    for name, quantities in (("tpot", ("tpot", "step")), ("ttft", ("ttft",))):
        groups: dict[str, list[float]] = {}
        for one in residuals:
            if one.quantity in quantities:
                groups.setdefault(one.group, []).append(log(one.measured / one.predicted))
        errors = [np.array(group) for group in groups.values() if len(group) >= LEAST]
        if not errors:
            continue
        within = float(np.median([SCATTER * np.median(np.abs(group - np.median(group))) for group in errors]))
        offset = float(np.median([abs(np.median(group)) for group in errors])) * SCATTER
        rows = float(np.median([len(group) for group in errors]))
        calibrated |= {f"{name}_within": within, f"{name}_between": (offset**2 + within**2 / rows) ** 0.5}
        few |= {f"{name}_within": within, f"{name}_between": (offset**2 + within**2 / LEAST) ** 0.5}
    return {"few": few, "deployment": calibrated} if calibrated else {}


def _of_left_out(runs: Sequence[Run], left: LeftOut) -> dict[str, float]:
    """How groups lie about fits that have not seen them, and the scatter within: nine tenths of normal errors are what 1.645 holds."""
    found: dict[str, float] = {}
    for name, missed in (("tpot", left.tpot), ("ttft", left.ttft)):
        groups: dict[str, list[float]] = {}
        for run, miss in zip(runs, missed, strict=True):
            if np.isfinite(miss):
                groups.setdefault(run.group, []).append(float(miss))
        errors = [np.array(group) for group in groups.values() if len(group) >= LEAST]
        if errors:
            within = float(np.median([SCATTER * np.median(np.abs(group - np.median(group))) for group in errors]))
            between = float(np.sqrt(np.mean([float(np.median(group)) ** 2 for group in errors])))
            found |= {f"{name}_within": within, f"{name}_between": between}
    return found


def _own_rows(runs: Sequence[Run], missed: Array) -> tuple[OwnRow, ...]:
    """Closed-loop rows with what the fit missed of their two times."""
    return tuple(_own_row(run, missed[i], missed[len(runs) + i]) for i, run in enumerate(runs))


def _own_row(run: Run, tpot: float, ttft: float) -> OwnRow:
    d, w = run.deployment, run.deployment.workload
    return OwnRow(
        model=d.model.name,
        device=d.hardware.device.name,
        engine=d.engine.name,
        version=d.engine.version,
        format=d.engine.quantization or "",
        load=float(np.asarray(w.concurrency)),
        input_tokens=float(np.asarray(w.input_tokens)),
        output_tokens=float(np.asarray(w.output_tokens)),
        devices=d.hardware.count,
        tpot=float(tpot),
        ttft=float(ttft) if np.isfinite(ttft) else None,
    )


def _correction(runs: Sequence[Run], left: LeftOut) -> dict[str, Scales]:
    """How corrections spread, from what fits without their group missed of the runs."""
    groups = []
    for group in sorted({run.group for run in runs}):
        own = [i for i, run in enumerate(runs) if run.group == group]
        groups.append(rows_of([runs[i] for i in own], left.tpot[own], left.ttft[own]))
    return {str(time): scales for time, scales in learn(groups).items()}


def _deployments(runs: Sequence[Run]) -> tuple[MeasuredDeployment, ...]:
    counted: dict[tuple[str, str, str, str, str], int] = {}
    for run in runs:
        d = run.deployment
        key = (d.model.name, d.hardware.device.name, d.hardware.device.family, d.engine.name, d.engine.version)
        counted[key] = counted.get(key, 0) + 1
    return tuple(
        MeasuredDeployment(model=model, device=device, family=family, engine=engine, version=version, rows=rows)
        for (model, device, family, engine, version), rows in sorted(counted.items())
    )
