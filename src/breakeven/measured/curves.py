"""Steps of the same conditions as a curve over their width: one time a width, and none that falls by less than its rounds lie apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.measured.step import Step
from breakeven.measured.steps import by_curve, context_of
from breakeven.spec.calibration_file import Curve

LEAST = 2
"""Widths that make a curve: one alone is a row for a fit."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A curve, and the widths at which it had to be levelled: measured longer than at a wider step."""

    curve: Curve
    levelled: tuple[float, ...] = ()


def curves_of(steps: Iterable[Step]) -> list[Drawn]:
    """The curves that steps make, those with widths enough."""
    return [_curve(group) for group in by_curve(steps).values() if len({step.width for step in group}) >= LEAST]


def _curve(steps: Sequence[Step]) -> Drawn:
    widths = sorted({step.width for step in steps})
    measured = [float(np.median([step.step_s for step in steps if step.width == width])) for width in widths]
    levelled = _levelled(measured, [_apart(steps, width) for width in widths])
    engine, d = steps[0].deployment.engine, steps[0].deployment
    return Drawn(
        curve=Curve(
            model=d.model.name,
            device=d.hardware.device.name,
            engine=engine.name,
            version=engine.version,
            context_tokens=context_of(steps[0]),
            rows=tuple(widths),
            step_s=tuple(levelled),
            tensor_parallel_size=engine.tensor_parallel_size,
            quantization=engine.quantization or "",
            kv_cache_dtype=engine.kv_cache_dtype,
            enforce_eager=engine.enforce_eager,
            one_pass=all(step.one_pass for step in steps),
            source=", ".join(sorted({step.source for step in steps if step.source})),
        ),
        levelled=tuple(width for width, before, after in zip(widths, measured, levelled, strict=True) if before != after),
    )


def _apart(steps: Sequence[Step], width: float) -> float:
    """Longest over shortest round at a width; without rounds nothing is known of its noise, and no fall stands."""
    apart = [step.spread for step in steps if step.width == width]
    return float("inf") if None in apart else max(one for one in apart if one is not None)


def _levelled(seconds: Sequence[float], apart: Sequence[float]) -> list[float]:
    """Seconds that rise, but where they fall by more than the rounds of either width lie apart: a kernel's tiles make such stairs.

    >>> [[round(each, 2) for each in _levelled([3.0, 2.0, 1.9], [1.1, apart, 1.1])] for apart in (1.1, float("inf"))]
    [[3.0, 1.95, 1.95], [2.25, 2.25, 2.25]]
    """
    found: list[float] = []
    start = 0
    for place in range(1, len(seconds) + 1):
        if place == len(seconds) or seconds[place - 1] > seconds[place] * max(apart[place - 1], apart[place]):
            found += rising(seconds[start:place])
            start = place
    return found


def rising(values: Sequence[float]) -> list[float]:
    """The nearest sequence that does not fall, in least squares of ln: neighbours that fall share their geometric mean (Ayer et al. 1955).

    >>> rising([1.0, 4.0, 1.0, 9.0])
    [1.0, 2.0, 2.0, 9.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        pools.append((value, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m), (b, n) = pools[-2:]
            pools[-2:] = [(float(np.exp((m * np.log(a) + n * np.log(b)) / (m + n))), m + n)]
    return [value for value, count in pools for _ in range(count)]
