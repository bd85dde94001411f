"""How far deployments lie from the shared fit, and over which distances in load and length: the scales of the correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from breakeven.adaptation import correction, covariance
from breakeven.measured.run import Run
from breakeven.spec.correction import TIMES, Place, Rows, Scales, Time
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

NAMES = ("offset", "format", "version", "trend", "local", "noise")
START: Mapping[str, float] = {"offset": 0.2, "format": 0.1, "version": 0.1, "trend": 0.05, "local": 0.15, "noise": 0.07}
LOOSE = 1.0
"""Deviation of each logarithm about its start."""
ROWS_OF_A_GROUP = 50
LEVELS = (0, 1, 3, 5, 10)
"""Rows known, at which the widening is looked at; `calibrated` is four fifths of a group."""
CALIBRATED = 40
QUANTILE = 1.6449
ROUNDS = 12


def place_of(deployments: Sequence[Deployment]) -> Place:
    """Where closed-loop deployments stand."""
    logs = [
        [
            float(np.log(np.asarray(x)))
            for x in (d.workload.concurrency, d.workload.input_tokens, d.workload.output_tokens, d.hardware.count)
        ]
        for d in deployments
    ]
    return Place(
        logs=np.array(logs),
        versions=tuple(d.engine.version for d in deployments),
        formats=tuple(d.engine.quantization or "" for d in deployments),
    )


def rows_of(runs: Sequence[Run], tpot: Array, ttft: Array) -> Rows:
    """Runs of one group and what the shared fit missed of them."""
    return Rows(place=place_of([run.deployment for run in runs]), residuals={"tpot": tpot, "ttft": ttft})


def taken(rows: Rows, places: Array) -> Rows:
    """Some of the rows."""
    whole = places.astype(int)
    place = Place(
        logs=rows.place.logs[whole],
        versions=tuple(rows.place.versions[i] for i in whole),
        formats=tuple(rows.place.formats[i] for i in whole),
    )
    return Rows(place=place, residuals={time: found[whole] for time, found in rows.residuals.items()})


def _scales(logs: Array) -> Scales:
    values = np.exp(logs)
    named = {name: float(value) for name, value in zip(NAMES, values[: len(NAMES)], strict=True)}
    lengths = tuple(float(x) for x in values[len(NAMES) :])
    return Scales(**named, lengths=(lengths[0], lengths[1], lengths[2], lengths[3]), widening={})


def _unlikelihood(logs: Array, groups: Sequence[Rows], time: Time, start: Array) -> float:
    """−ln of the marginal likelihood of all groups, and the pull to the start."""
    s, total = _scales(logs), float(0.5 * np.sum(((logs - start) / LOOSE) ** 2))
    for rows in groups:
        r = rows.residuals[time]
        inside = covariance(s, rows.place, rows.place) + s.noise**2 * np.eye(len(r))
        root = np.linalg.cholesky(inside)
        z = np.linalg.solve(root, r)
        total += float(0.5 * z @ z + np.log(np.diag(root)).sum())
    return total


def scales(groups: Sequence[Rows], time: Time, *, seed: int = 0) -> Scales:
    """The scales under which what left-out groups missed is most likely (type-II maximum likelihood)."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    thinned = []
    for rows in groups:
        seen = np.flatnonzero(~np.isnan(rows.residuals[time]))
        if len(seen):
            thinned.append(taken(rows, rng.permutation(seen)[:ROWS_OF_A_GROUP]))
    start = np.log([*START.values(), 1.0, 1.0, 1.0, 1.0])
    found = minimize(_unlikelihood, start, args=(thinned, time, start), method="L-BFGS-B", options={"maxiter": 20})
    return _scales(found.x)


def _standing(groups: Sequence[Rows], s: Scales, time: Time, known: int, rng: np.random.Generator) -> list[Array]:
    """Of each group, errors over their deviation where so many of its rows are known (all folds of five for `calibrated`)."""
    found = []
    for rows in groups:
        seen = np.flatnonzero(~np.isnan(rows.residuals[time]))
        for held, given in parts(rng.permutation(seen), known):
            mean, deviation = correction(s, taken(rows, given) if len(given) else None, time, taken(rows, held).place)
            found.append((rows.residuals[time][held] - mean) / deviation)
    return found


def parts(order: Array, known: int, at_least_left: int = 3) -> list[tuple[Array, Array]]:
    """Places that are answered and places that are known, of places in random order."""
    if known == CALIBRATED:
        folds = np.array_split(order, 5)
        return [(held, np.setdiff1d(order, held)) for held in folds] if len(order) >= 10 else []
    return [(order[known:], order[:known])] if len(order) >= known + at_least_left else []


def widened(groups: Sequence[Rows], s: Scales, time: Time, *, seed: int = 0) -> Scales:
    """The scales with factors by which nine tenths of what was left out lies inside ± 1.645 deviations."""
    rng = np.random.default_rng(seed)
    factors = {}
    for known in (*LEVELS, CALIBRATED):
        rounds = 1 if known in (0, CALIBRATED) else ROUNDS
        errors = [np.abs(e) for _ in range(rounds) for e in _standing(groups, s, time, known, rng) if len(e)]
        if errors:
            factors[known] = _pooled_quantile(errors, 0.9) / QUANTILE
    return replace(s, widening=factors)


def _pooled_quantile(errors: Sequence[Array], share: float) -> float:
    """The quantile of pooled errors, in which n errors of one deployment, which go together, weigh as √n of different ones."""
    pooled = np.concatenate(errors)
    weight = np.concatenate([np.full(len(e), len(e) ** -0.5) for e in errors])
    order = np.argsort(pooled)
    return float(np.interp(share, np.cumsum(weight[order]) / weight.sum(), pooled[order]))


def learn_one(groups: Sequence[Rows], time: Time, *, seed: int = 0) -> Scales:
    """Scales and widening of one time from groups that were left out."""
    return widened(groups, scales(groups, time, seed=seed), time, seed=seed)


def learn(groups: Sequence[Rows], *, seed: int = 0) -> Mapping[Time, Scales]:
    """Scales and widening of both times from groups that were left out."""
    return {time: learn_one(groups, time, seed=seed) for time in TIMES}
