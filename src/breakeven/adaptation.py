"""What rows of one deployment say beyond the shared fit: a smooth correction of its times, surer near the rows and wider away from them.

    r(x) = ln measured − ln model ~ Gaussian process: offset² + format² + version² + trend²·Σ x·x′ + local²·exp(−½·Σ((x − x′)/ℓ)²) + noise²
    mean(x) = k(x)ᵀ·(K + noise²·I)⁻¹·r          var(x) = k(x, x) − k(x)ᵀ·(K + noise²·I)⁻¹·k(x) + noise²

x are the logarithms of load, prompt, output and devices. No row gives mean 0 and the whole prior variance, so that the levels of knowledge
(no row, one to ten, all) are one formula. Source: Kennedy and O'Hagan 2001 (model discrepancy); Rasmussen and Williams 2006, equations
2.25 and 2.26.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from breakeven.efficiencies import shipped
from breakeven.spec.correction import Place, Rows, Scales, Time
from breakeven.stats import Array

CENTRE = np.log([16.0, 1024.0, 512.0, 4.0])
"""Load, prompt, output and devices at which the trends have no part."""


@cache
def shipped_scales(time: Time) -> Scales | None:
    """How corrections spread, as the shipped calibrations tell it from deployments that were left out; None where none does."""
    for sheet in shipped().values():
        entry = sheet.get("correction", {}).get(time)
        if entry is not None:
            lengths = tuple(float(x) for x in entry["lengths"])
            widening = {int(rows): float(factor) for rows, factor in entry["widening"].items()}
            named = {name: float(entry[name]) for name in ("offset", "format", "version", "trend", "local", "noise")}
            return Scales(**named, lengths=(lengths[0], lengths[1], lengths[2], lengths[3]), widening=widening)
    return None


def covariance(s: Scales, a: Place, b: Place) -> Array:
    """k(a, b) without the noise, shape (a, b)."""
    apart = (a.logs[:, None, :] - b.logs[None, :, :]) / np.array(s.lengths)
    near = s.local**2 * np.exp(-0.5 * (apart**2).sum(-1))
    slope = s.trend**2 * ((a.logs - CENTRE) @ (b.logs - CENTRE).T)
    return np.asarray(s.offset**2 + near + slope + s.version**2 * _same(a.versions, b.versions) + s.format**2 * _same(a.formats, b.formats))


def _same(a: tuple[str, ...], b: tuple[str, ...]) -> Array:
    return np.asarray(np.array(a)[:, None] == np.array(b)[None, :], dtype=float)


def widening(s: Scales, rows: int) -> float:
    """The factor at a number of rows: straight in ln(1 + rows) between those that were looked at."""
    known = sorted(s.widening)
    return float(np.interp(np.log1p(rows), np.log1p(known), [s.widening[n] for n in known])) if known else 1.0


def correction(s: Scales, rows: Rows | None, time: Time, at: Place) -> tuple[Array, Array]:
    """Mean and standard deviation of ln(measured/model) at places, shape (places,) each, a row's own noise included."""
    own, seen = _variance(s, at), _seen(rows, time)
    factor = widening(s, len(seen))
    if rows is None or not len(seen):
        return np.zeros(len(own)), factor * np.sqrt(own + s.noise**2)
    place = _some(rows.place, seen)
    inside = covariance(s, place, place) + s.noise**2 * np.eye(len(seen))
    across = covariance(s, at, place)
    solved = np.linalg.solve(inside, np.column_stack([rows.residuals[time][seen], across.T]))
    left = np.maximum(own - (across * solved[:, 1:].T).sum(-1), 0.0) + s.noise**2
    return np.asarray(across @ solved[:, 0]), factor * np.sqrt(left)


def mean_correction(s: Scales, rows: Rows, time: Time) -> Callable[[Place], Array]:
    """The mean of :func:`correction` alone, as a function of places: (K + noise²·I)⁻¹·r is the same for all of them."""
    seen = _seen(rows, time)
    if not len(seen):
        return lambda at: np.zeros(len(at.logs))
    place = _some(rows.place, seen)
    solved = np.linalg.solve(covariance(s, place, place) + s.noise**2 * np.eye(len(seen)), rows.residuals[time][seen])
    return lambda at: np.asarray(covariance(s, at, place) @ solved)


def _seen(rows: Rows | None, time: Time) -> NDArray[np.intp]:
    """The rows in which a time was measured."""
    return np.zeros(0, dtype=int) if rows is None else np.flatnonzero(~np.isnan(rows.residuals[time]))


def _variance(s: Scales, at: Place) -> Array:
    """k(x, x): everything is near itself, of its own version and format."""
    slope = s.trend**2 * ((at.logs - CENTRE) ** 2).sum(-1)
    return np.asarray(s.offset**2 + s.local**2 + s.version**2 + s.format**2 + slope)


def _some(p: Place, places: NDArray[np.intp]) -> Place:
    return Place(logs=p.logs[places], versions=tuple(p.versions[i] for i in places), formats=tuple(p.formats[i] for i in places))
