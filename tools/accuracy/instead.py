"""What each rival says of every row, and what the model says without each of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from accuracy import rivals, roofline
from accuracy.figures import Values
from accuracy.kinds import Source, sources
from accuracy.parts import parts, stacked
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, Point, evaluate
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.stats import Array

ROOFLINE, RULES, PART = "roofline", "rule", "part"
Said = Mapping[str, Array]


def values(measured: Measured) -> dict[str, Values]:
    """By name (``roofline``, ``rule:bytes``, ``part:fixed``) what it says of each row, by its place."""
    held = sources(measured)
    bare = {where: by_roofline(row) for where, row in held.items()}
    return {ROOFLINE: {where: _at(said, 0) for where, said in bare.items()}} | by_parts(held) | by_rules(held)


def by_roofline(row: Source) -> Said:
    """The bare roofline's gain, or its times."""
    if isinstance(row, Pair):
        return {row.lever: np.array(rivals.by_roofline(row))}
    return times(roofline.point(row.deployment))


def by_parts(held: Mapping[str, Source]) -> dict[str, Values]:
    """The model as shipped without each part, all in one call a row."""
    told = {where: without(row) for where, row in held.items()}
    return {f"{PART}:{part.name}": {where: _at(said, place) for where, said in told.items()} for place, part in enumerate(parts())}


def without(row: Source) -> Said:
    """The model's gain, or its times, without each of the parts in turn."""
    if isinstance(row, Pair):
        off, on = (replace(arm, calibration=stacked()) for arm in (row.off, row.on))
        return {row.lever: np.asarray(replace(row, off=off, on=on).gain(MEDIAN, Noise()))}
    return times(evaluate(replace(row.deployment, calibration=stacked())))


def by_rules(held: Mapping[str, Source]) -> dict[str, Values]:
    """The rules of thumb, by name."""
    told: dict[str, dict[str, dict[str, float]]] = {f"{RULES}:{name}": {} for rules in rivals.RULES.values() for name in rules}
    for where, row in held.items():
        if isinstance(row, Pair):
            for name, gain in rivals.rules(row).items():
                told[f"{RULES}:{name}"][where] = {row.lever: gain}
    return dict(told)


def times(point: Point) -> Said:
    """The times that are scored of a point."""
    found = {"tpot": point.tpot_s, "ttft": point.ttft_s}
    return {name: np.asarray(value, dtype=float) for name, value in found.items() if value is not None}


def _at(said: Said, place: int) -> dict[str, float]:
    """One element of what is said; of a value that no part moves the only one."""
    return {kind: float(np.ravel(value)[place if np.size(value) > 1 else 0]) for kind, value in said.items()}
