"""Measured steps over width: inside the widths measured they replace the roofline, outside it goes on from where they end.

A curve was measured at its own conditions (context, formats, one row a sequence). At other conditions each of its points is taken times
what the roofline says that these conditions change:

    y_i = T_i · t(b_i; c, r) / t_ref(b = n_i; c_m, 1),   b_i = n_i / r

so that at its own conditions the curve is reproduced exactly, and verification of r rows a sequence reads it at n = b·r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from breakeven.stats import Array

Roofline = Callable[[Array | float], Array | float]
"""Seconds of a step over sequences."""


CLOSE = 1.5
"""Widths between those measured at which the conditions are looked at too, none further from the next than this."""


@dataclass(frozen=True, kw_only=True)
class Widths:
    """Seconds of a step at widths, of one deployment: straight between them, and the roofline scaled to agree outside."""

    rows: tuple[float, ...]
    step_s: Array
    """By width along the first axis; what varies with draws and arrays along the others."""
    below: Array | float
    """Factor on the roofline below the first width."""
    above: Array | float


def at_conditions(rows: Sequence[float], measured_s: Sequence[float], reference: Roofline, here: Roofline, rows_each: int) -> Widths:
    """A measured curve at the conditions of a step of ``rows_each`` rows a sequence; what was measured to fall, falls."""
    widths = _looked_at(rows, float(rows_each))
    asked = _along(widths, max(np.ndim(here(1.0)), np.ndim(reference(1.0))))
    measured = np.interp(asked, rows, measured_s)
    seconds = _lifted(measured * here(asked / rows_each) / reference(asked), measured)
    return _joined(widths, seconds, here, rows_each)


def _looked_at(rows: Sequence[float], least: float) -> list[float]:
    """Widths measured from the narrowest step that can run, one sequence, and as many between them as keep them close."""
    kept = [width for width in rows if width > least]
    start = max(rows[0], min(least, rows[-1]))
    found = [start]
    for width in kept:
        if width <= start:
            continue
        steps = int(np.ceil(np.log(width / found[-1]) / np.log(CLOSE) - 1e-9))
        found += [float(each) for each in np.geomspace(found[-1], width, max(steps, 1) + 1)[1:-1]]
        found.append(width)
    return found


def _along(widths: Sequence[float], dimensions: int) -> Array:
    return np.asarray(widths, dtype=float).reshape(-1, *([1] * dimensions))


def _joined(widths: Sequence[float], seconds: Array, here: Roofline, rows_each: int) -> Widths:
    """Points as a curve, with the factors by which the roofline goes on at its ends."""
    return Widths(
        rows=tuple(widths),
        step_s=seconds,
        below=seconds[0] / here(widths[0] / rows_each),
        above=seconds[-1] / here(widths[-1] / rows_each),
    )


def _lifted(seconds: Array, measured: Array) -> Array:
    """Points that the other conditions alone would make fall, lifted to what came before: from one measured fall to the next it rises."""
    first = measured.reshape(len(measured), -1)[:, 0]
    falls = np.diff(first, prepend=first[0]) < 0.0
    starts = [0, *(int(place) for place in np.flatnonzero(falls)), len(seconds)]
    return np.concatenate([np.maximum.accumulate(seconds[start:end], axis=0) for start, end in pairwise(starts)])


def blended(curves: Sequence[Widths], contexts: Sequence[float], context_tokens: Array | float, here: Roofline, rows_each: int) -> Widths:
    """Curves of several contexts as one: straight between the contexts measured, the nearest outside them, on the widths all have."""
    low = max(curve.rows[0] for curve in curves)
    high = min(curve.rows[-1] for curve in curves)
    if low > high:
        nearest = min(range(len(curves)), key=lambda i: abs(contexts[i] - float(np.median(context_tokens))))
        return curves[nearest]
    widths = sorted({width for curve in curves for width in curve.rows if low <= width <= high})
    asked = _along(widths, max(np.ndim(curve.step_s) - 1 for curve in curves))
    shares = [np.interp(context_tokens, contexts, [float(i == j) for j in range(len(contexts))]) for i in range(len(contexts))]
    mixed = sum((share * inside(curve, asked) for share, curve in zip(shares, curves, strict=True)), np.zeros(()))
    return _joined(widths, np.asarray(mixed), here, rows_each)


def inside(curve: Widths, width: Array | float) -> Array | float:
    """Seconds at a width, straight between those measured and flat outside: a sum of ramps, which broadcasts over any draws.

    >>> float(inside(Widths(rows=(1.0, 2.0, 4.0), step_s=np.array([10.0, 19.0, 21.0]), below=1.0, above=1.0), 3.0))
    20.0
    """
    found: Array = curve.step_s[0] + 0.0 * np.asarray(width)
    pairs = zip(curve.rows, curve.rows[1:], curve.step_s, curve.step_s[1:], strict=False)
    for start, end, low, high in pairs:
        found = found + (high - low) * np.clip((width - start) / (end - start), 0.0, 1.0)
    return found


def over(curve: Widths, width: Array | float, roofline_s: Array | float) -> Array | float:
    """Seconds of a step of a width whose roofline is given."""
    outside = np.where(np.less(width, curve.rows[0]), curve.below, curve.above) * roofline_s
    within = np.greater_equal(width, curve.rows[0]) & np.less_equal(width, curve.rows[-1])
    return np.where(within, inside(curve, width), outside)
