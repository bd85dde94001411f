"""Gains of levers beside absolute rows: what pairs say of kernels, rounds of speculation and classes of engine, added to a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp

import numpy as np

from breakeven.calibration.fitted import Fitted, FittedParameter, Residual
from breakeven.calibration.lever_fit import LeverFit, fit_pairs
from breakeven.calibration.lever_parameters import FACTOR, of_pairs
from breakeven.calibration.parameters import Parameter
from breakeven.efficiencies import prior_values, shipped_values
from breakeven.kernels import by_family, fitted_kv, fitted_weights, kv_kernel, weight_kernel
from breakeven.measured.pair import Pair
from breakeven.stats import Q95, Array

BEARS = 0.002
"""A pair bears on a parameter when ln of its gain moves by this much where the parameter moves by one in ln."""
NOTHING = Fitted(estimates={}, covariance=np.zeros((0, 0)), residuals=())


def with_pairs(
    fitted: Fitted | None,
    pairs: Sequence[Pair],
    *,
    neutral_ground: bool = False,
    without: str = "",
    constants: Mapping[str, Array | float] | None = None,
) -> tuple[Fitted, LeverFit | None]:
    """A fit with what pairs say beside it, the step's numbers as the absolute rows have them; and the fit of the pairs.

    ``constants`` are the kernels that the step was fitted with: what both arms of a pair run stays that.
    """
    before = fitted or NOTHING
    if not pairs:
        return before, None
    step: dict[str, Array | float] = {name: one.value for name, one in before.estimates.items()}
    parameters = tuple(p for p in of_pairs(pairs) if p.name.partition(FACTOR)[0] not in step)
    step = {**(constants or {}), **step}
    if not neutral_ground:
        parameters = tuple(_known(p, without) for p in parameters)
    found = fit_pairs(pairs, lambda _: step, parameters, alone=neutral_ground)
    return _joined(before, found), found


def _known(p: Parameter, without: str) -> Parameter:
    """A parameter about what stands in the catalogue of kernels and in the shipped calibrations; its firmness and bounds stay."""
    centre = _now(p.name, shipped_values(without))
    return p if centre is None or not p.low < centre < p.high else replace(p, centre=centre)


def _now(name: str, shipped: Mapping[str, float]) -> float | None:
    """What a number is before the pairs; of a factor on a class what is known of the class over what is known of all."""
    base, _, kind = name.partition(FACTOR)
    section, *rest = base.split(".")
    if section == "weights":
        held = getattr(fitted_weights(weight_kernel(rest[0]), shipped), rest[1])
        return _number(held) if not isinstance(held, Mapping) else _over(by_family(held, kind), held["default"], kind)
    if section == "kv":
        kernel = fitted_kv(kv_kernel(rest[0]), shipped)
        held = getattr(kernel, rest[1])
        return _over(kernel.layer_s_by_engine.get(kind, held), held, kind) if kind else _number(held)
    return shipped.get(name, prior_values().get(name))


def _number(value: Array | float | None) -> float | None:
    return None if value is None else float(value)


def _over(of_class: Array | float, of_all: Array | float, kind: str) -> float | None:
    if not kind:
        return float(of_all)
    return float(of_class) / float(of_all) if float(of_all) else None


def _joined(before: Fitted, found: LeverFit) -> Fitted:
    names = [p.name for p in found.parameters]
    chosen = np.array([_chosen(name, names) for name in names])
    covariance = chosen @ found.covariance @ chosen.T
    rows = (np.abs(found.at.slopes) > BEARS).astype(float)
    return Fitted(
        estimates={**before.estimates, **dict(_estimate(found, i, chosen[i], covariance, rows) for i in range(len(names)))},
        covariance=_beside(before.covariance, covariance),
        residuals=(*before.residuals, *_residuals(found)),
        deviations=before.deviations,
        deployments=before.deployments,
        own=before.own,
        correction=before.correction,
    )


def _chosen(name: str, names: Sequence[str]) -> list[float]:
    """Which logarithms add up to a number: a factor of a class stands for the number times it."""
    base = name.partition(FACTOR)[0]
    return [float(one in (name, base)) for one in names]


def _estimate(found: LeverFit, i: int, chosen: Array, covariance: Array, rows: Array) -> tuple[str, FittedParameter]:
    ln, half = float(chosen @ found.at.logs), Q95 * float(covariance[i, i]) ** 0.5
    centres, deviations = (_of(found.parameters, name) for name in ("centre", "deviation"))
    prior, before = float(chosen @ np.log(centres)), Q95 * float(chosen @ deviations**2) ** 0.5
    estimate = FittedParameter(
        value=exp(ln),
        low=exp(ln - half),
        high=exp(ln + half),
        prior=exp(prior),
        prior_low=exp(prior - before),
        prior_high=exp(prior + before),
        rows=int(rows[:, i].sum()),
    )
    return found.parameters[i].name.replace(FACTOR, "."), estimate


def _of(parameters: Sequence[Parameter], name: str) -> Array:
    return np.array([float(getattr(p, name)) for p in parameters])


def _beside(first: Array, second: Array) -> Array:
    """Two covariances of numbers that were fitted apart."""
    whole = np.zeros((len(first) + len(second), len(first) + len(second)))
    whole[: len(first), : len(first)] = first
    whole[len(first) :, len(first) :] = second
    return whole


def _residuals(found: LeverFit) -> list[Residual]:
    return [
        Residual(id=pair.id, where=pair.where, group=pair.group, quantity="gain", measured=pair.measured, predicted=exp(float(predicted)))
        for pair, predicted in zip(found.pairs, found.at.predicted, strict=True)
    ]
