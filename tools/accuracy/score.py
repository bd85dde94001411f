"""How good answers are: direction, size over groups and over rows, and whether the intervals hold what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from accuracy.answers import Answer, grouped

CERTAINTY = 0.90


@dataclass(frozen=True, kw_only=True)
class Share:
    """So many of so many, with the 90 % interval of the share that a binomial leaves open."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.hits / self.of if self.of else None


@dataclass(frozen=True, kw_only=True)
class Score:
    """Figures of some answers. Errors are |ln(predicted/measured)|; the median over groups counts a source with many rows once."""

    rows: int
    groups: int
    sign: Share
    median: float | None
    """Median over groups of the group's median."""
    rows_median: float | None
    rows_p90: float | None
    bias: float | None
    """Median of ln(predicted/measured)."""
    covered: Share
    """Rows whose 90 % interval holds what was measured."""
    covered_groups: float | None
    """The same share, mean over groups."""


def score(answers: Iterable[Answer]) -> Score:
    """The figures of some answers."""
    found = list(answers)
    errors = np.array([each.error for each in found])
    by_group = grouped(found, lambda each: each.group)
    clear = [each.right for each in found if each.clear] if found and found[0].kind not in ("tpot", "ttft") else []
    return Score(
        rows=len(found),
        groups=len(by_group),
        sign=share(clear),
        median=_middle([float(np.median([abs(each.error) for each in rows])) for rows in by_group.values()]),
        rows_median=_middle(np.abs(errors).tolist()),
        rows_p90=float(np.quantile(np.abs(errors), 0.9)) if found else None,
        bias=_middle(errors.tolist()),
        covered=share(_inside(found)),
        covered_groups=_mean([share(known).value for rows in by_group.values() if (known := _inside(rows))]),
    )


def _inside(answers: Sequence[Answer]) -> list[bool]:
    return [each.inside for each in answers if each.inside is not None]


def _middle(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _mean(values: Sequence[float | None]) -> float | None:
    kept = [value for value in values if value is not None]
    return float(np.mean(kept)) if kept else None


def share(hits: Sequence[bool]) -> Share:
    """A share with its exact binomial interval (Clopper and Pearson 1934)."""
    k, n = sum(hits), len(hits)
    if not n:
        return Share(hits=0, of=0, low=0.0, high=1.0)
    found = binomtest(k, n).proportion_ci(CERTAINTY, "exact")
    return Share(hits=k, of=n, low=float(found.low), high=float(found.high))
