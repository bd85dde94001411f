"""What each rival and each ablation says of every row, made by all processors at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np

from accuracy import rivals, roofline
from accuracy.figures import Values
from accuracy.kinds import Source, sources
from accuracy.parts import Part, parts
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, Point, evaluate
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair

Says = Callable[[Source], Mapping[str, float]]
ROOFLINE, RULES, PART = "roofline", "rule", "part"
CPUS = os.cpu_count() or 1


def values(measured: Measured) -> dict[str, Values]:
    """By name (``roofline``, ``rule:bytes``, ``part:fixed``) what it says of each row, by its place."""
    held = sources(measured)
    jobs: dict[str, Says] = {ROOFLINE: by_roofline, **{f"{PART}:{part.name}": partial(without, part) for part in parts()}}
    with ProcessPoolExecutor(CPUS, mp_context=get_context("fork"), initializer=_hold, initargs=(held,)) as pool:
        told = dict(zip(jobs, pool.map(_all, jobs.values()), strict=True))
    return told | by_rules(held)


_held: dict[str, Source] = {}


def _hold(rows: Mapping[str, Source]) -> None:
    _held.update(rows)


def _all(says: Says) -> Values:
    return {where: says(row) for where, row in _held.items()}


def by_roofline(row: Source) -> dict[str, float]:
    """The bare roofline's gain, or its times."""
    return {row.lever: rivals.by_roofline(row)} if isinstance(row, Pair) else times(roofline.point(row.deployment))


def without(part: Part, row: Source) -> dict[str, float]:
    """The model's, without a part."""
    if isinstance(row, Pair):
        changed = replace(row, off=part.without(row.off), on=part.without(row.on))
        return {row.lever: rivals.number(changed.gain(MEDIAN, Noise()))}
    return times(evaluate(part.without(row.deployment)))


def by_rules(held: Mapping[str, Source]) -> dict[str, Values]:
    """The rules of thumb, by name."""
    said = {where: rivals.rules(row) for where, row in held.items() if isinstance(row, Pair)}
    names = dict.fromkeys(name for rules in rivals.RULES.values() for name in rules)
    return {
        f"{RULES}:{name}": {where: {lever_of(held[where]): rules[name]} for where, rules in said.items() if name in rules} for name in names
    }


def lever_of(row: Source) -> str:
    """The lever of a pair."""
    return row.lever if isinstance(row, Pair) else ""


def times(point: Point) -> dict[str, float]:
    """The times that are scored of a point."""
    found = {"tpot": point.tpot_s, "ttft": point.ttft_s}
    return {name: float(np.asarray(value)) for name, value in found.items() if value is not None}
