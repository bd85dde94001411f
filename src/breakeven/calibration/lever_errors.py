"""The errors of levers that are shipped with a fit of pairs: from groups left out, from sources left out, and within a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from breakeven.calibration.answer import sigma
from breakeven.calibration.lever_fit import LeverFit, leave_pairs_out
from breakeven.calibration.sigmas import FEWEST_GROUPS, Miss, covering, drawn, factor, sigma_for
from breakeven.draws import Draws
from breakeven.efficiencies import FACTOR, level, sigma_factor, table
from breakeven.lever import FLOOR
from breakeven.measured.pair import Pair
from breakeven.spec.calibration_file import LeverSigma
from breakeven.stats import Array

DRAWN = Draws(128)
TAKEN_TOGETHER = ("speculation",)
"""Levers that add several errors up: theirs is a factor on the sum."""


def source_of(pair: Pair) -> str:
    """Where a group of pairs was published."""
    return pair.group.split("::")[0]


def stated(pair: Pair) -> float:
    """The sigma of the prior's table, whatever is shipped over it: an error that is told anew does not begin from its last."""
    known = level(pair.on.engine, pair.on.hardware.device.family)
    if pair.sigma_row:
        return float(table("sigma")[pair.lever][pair.sigma_row][known])
    return sigma(pair).step / sigma_factor(pair.lever, known)


def misses(pairs: Sequence[Pair], predicted: Array) -> list[Miss]:
    """Every pair's error, beside what its draws spread and what its lever would take."""
    return [
        Miss(
            lever=pair.lever,
            row=FACTOR if pair.lever in TAKEN_TOGETHER else pair.sigma_row or pair.regime,
            group=pair.group,
            error=float(np.log(pair.measured) - predicted[i]),
            drawn=drawn(pair, DRAWN),
            stated=stated(pair),
            share=1.0 if pair.exposure is None else pair.exposure,
            floor=0.0 if pair.exposure is None else FLOOR,
        )
        for i, pair in enumerate(pairs)
    ]


def lever_errors(whole: LeverFit) -> Mapping[str, Mapping[str, LeverSigma]]:
    """Lever, kind of row, and its error by level of knowledge; a foreign engine is never surer than one that was among the fits."""
    groups, _ = leave_pairs_out(whole, lambda pair: pair.group)
    sources, _ = leave_pairs_out(whole, source_of)
    left = misses(whole.pairs, groups)
    foreign = [_with(miss, float(np.log(pair.measured) - sources[i])) for i, (pair, miss) in enumerate(zip(whole.pairs, left, strict=True))]
    here = _within(left)
    found: dict[str, dict[str, LeverSigma]] = {}
    for lever, row in sorted({(miss.lever, miss.row) for miss in left if miss.stated > 0.0}):
        own = [i for i, miss in enumerate(left) if (miss.lever, miss.row) == (lever, row)]
        known = {left[i].group for i in own}
        if row != FACTOR and len(known) < FEWEST_GROUPS and left[own[0]].row == whole.pairs[own[0]].regime:
            continue  # A kind of its own, which no lever asks for.
        family, away, near = (_error([of[i] for i in own], of) for of in (left, foreign, here))
        found.setdefault(lever, {})[row] = LeverSigma(
            family=family, foreign=max(away, family), here=min(near, family), rows=len(own), groups=len(known)
        )
    return found


def _error(own: Sequence[Miss], of: Sequence[Miss]) -> float:
    if own[0].row == FACTOR:
        return factor(own)
    return covering(own) if len({miss.group for miss in own}) >= FEWEST_GROUPS else sigma_for(own[0], of)


def _with(miss: Miss, error: float) -> Miss:
    return replace(miss, error=error)


def _within(left: Sequence[Miss]) -> list[Miss]:
    """What is left once a group's own offset is known: errors about the group's median."""
    medians = {group: float(np.median([miss.error for miss in left if miss.group == group])) for group in {miss.group for miss in left}}
    return [_with(miss, miss.error - medians[miss.group]) for miss in left]
