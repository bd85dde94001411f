"""Rows measured through another evaluator: their own measure stays, the times come from elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from breakeven import adaptation, efficiencies, evaluator
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, Point
from breakeven.measured.pair import Pair

Evaluate = Callable[..., Point]
MEASURES = "breakeven.measured"


@contextmanager
def exchanged(by: Evaluate) -> Iterator[None]:
    """While it lasts, what a row measures is read off points made by ``by``."""
    own = evaluator.evaluate
    modules = [m for name, m in list(sys.modules.items()) if name.startswith(MEASURES) and getattr(m, "evaluate", None) is own]
    try:
        for module in modules:
            module.evaluate = by  # type: ignore[attr-defined]
        yield
    finally:
        for module in modules:
            module.evaluate = own  # type: ignore[attr-defined]


@contextmanager
def nothing_shipped() -> Iterator[None]:
    """While it lasts no shipped calibration is in force: they were made from the very rows that are to be left out."""
    own = efficiencies.shipped
    try:
        _ship(dict)
        yield
    finally:
        _ship(own)


def _ship(by: Callable[[], Mapping[str, Mapping[str, object]]]) -> None:
    for module in (efficiencies, adaptation):
        module.shipped = by  # type: ignore[attr-defined]
    remembered = (
        efficiencies.shipped_values,
        efficiencies._shipped,
        efficiencies.shipped_of,
        efficiencies.lever_sigma,
        efficiencies.sigma_factor,
    )
    for each in (*remembered, adaptation.shipped_scales):
        each.cache_clear()


def gain_by(pair: Pair, by: Evaluate) -> float:
    """The gain of a row when another evaluator makes its points."""
    with exchanged(by):
        return float(pair.gain(MEDIAN, Noise()))


def points_of(pair: Pair) -> tuple[list[Point], list[Point]]:
    """The operating points that a row's measure looks at, off and on."""
    seen: list[Point] = []

    def watched(*arguments: object, **named: object) -> Point:
        seen.append(evaluator.evaluate(*arguments, **named))  # type: ignore[arg-type]
        return seen[-1]

    with exchanged(watched):
        pair.speed(pair.off, MEDIAN, Noise())
        off = list(seen)
        (pair.on_speed or pair.speed)(pair.on, MEDIAN, Noise())
    return off, seen[len(off) :]
