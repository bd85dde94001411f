"""How near predictions come by level of knowledge: none of a deployment's rows, one to ten of them, four fifths.

What is used of the other groups (the fit, the scales of the correction, its widening) has never seen the group that is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.adaptation import Rows, Scales, Time, correction
from breakeven.calibration.adapt import CALIBRATED, LEVELS, QUANTILE, learn_one, parts, taken
from breakeven.stats import Array, Flags

FOLDS = 4
"""Groups are dealt into so many parts; the scales that answer a part come from the others."""
ROUNDS = 20
"""Random choices of the rows that are known."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Rows answered at one level of knowledge."""

    rows_known: int
    error: Array
    """ln measured − ln predicted."""
    inside: Flags
    """Whether the 90 % interval covers what was measured."""
    half_width: Array
    """Of the interval, of the logarithm."""
    group: tuple[str, ...]

    def size(self, share: float) -> float:
        """A quantile of the size of the error over rows: exp(|ln|) − 1."""
        return float(np.expm1(np.quantile(np.abs(self.error), share))) if len(self.error) else float("nan")

    def size_over_groups(self) -> float:
        """Median over groups of the group's median."""
        each = [np.median(np.abs(self.error[self._of(group)])) for group in sorted(set(self.group))]
        return float(np.expm1(np.median(each)))

    def coverage(self) -> float:
        """Share of rows inside, groups counted alike."""
        return float(np.mean([np.mean(self.inside[self._of(group)]) for group in sorted(set(self.group))]))

    def _of(self, group: str) -> Flags:
        return np.asarray(np.array(self.group) == group, dtype=bool)


def standings(names: Sequence[str], groups: Sequence[Rows], time: Time, *, seed: int = 0) -> list[Standing]:
    """Every level, each group answered by scales of groups that it is not among. ``groups`` hold what left-out fits missed."""
    rng = np.random.default_rng(seed)
    fold = rng.permutation(len(groups)) % FOLDS
    found: dict[int, list[tuple[str, Array, Array]]] = {known: [] for known in (*LEVELS, CALIBRATED)}
    for part in range(min(FOLDS, len(groups))):
        scales = learn_one([rows for i, rows in enumerate(groups) if fold[i] != part], time, seed=seed)
        for i, rows in enumerate(groups):
            if fold[i] == part:
                for known, pieces in found.items():
                    pieces += [(names[i], *each) for each in _answered(rows, scales, time, known, rng)]
    return [_standing(known, pieces) for known, pieces in found.items()]


def _answered(rows: Rows, scales: Scales, time: Time, known: int, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Errors and half-widths of one group's rows where so many others of them are known."""
    seen = np.flatnonzero(~np.isnan(rows.residuals[time]))
    found = []
    for _ in range(1 if known in (0, CALIBRATED) else ROUNDS):
        for held, given in parts(rng.permutation(seen), known, at_least_left=1 if known == 0 else 3):
            mean, deviation = correction(scales, taken(rows, given) if len(given) else None, time, taken(rows, held).place)
            found.append((rows.residuals[time][held] - mean, QUANTILE * deviation))
    return found


def _standing(known: int, pieces: Sequence[tuple[str, Array, Array]]) -> Standing:
    error = np.concatenate([e for _, e, _ in pieces]) if pieces else np.zeros(0)
    half = np.concatenate([h for _, _, h in pieces]) if pieces else np.zeros(0)
    names = tuple(name for name, e, _ in pieces for _ in e)
    return Standing(rows_known=known, error=error, inside=np.abs(error) <= half, half_width=half, group=names)
