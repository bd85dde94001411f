"""Others' measured gains as the product reads them, each with the gain it predicts; and the reasons of the rows that are not answered."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np

from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise
from breakeven.measured.pair import Pair
from breakeven.measured.pairs import pair_of
from breakeven.measured.row import NotUnderstood, Row

GOOD = ("A", "B")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A pair, and the gain that is predicted in the median world."""

    pair: Pair
    predicted: float

    @property
    def error(self) -> float:
        return log(self.predicted / self.pair.measured)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A row that is not answered, and the key of the reason."""

    row: Row
    reason: str


def rows_of(shared: Path) -> list[Row]:
    with (shared / "data" / "lever_points.csv").open(encoding="utf-8", newline="") as file:
        return [Row(where=f"lever_points.csv:{line}", id=each["case_id"], fields=each) for line, each in enumerate(csv.DictReader(file), 2)]


def read(rows: Iterable[Row]) -> tuple[list[Answer], list[Refusal]]:
    answers, refusals = [], []
    for row in rows:
        try:
            pair = pair_of(row)
        except NotUnderstood as unknown:
            refusals.append(Refusal(row=row, reason=unknown.message.key))
            continue
        answers.append(Answer(pair=pair, predicted=float(np.asarray(pair.gain(MEDIAN, Noise())))))
    return answers, refusals


def good(answers: Iterable[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.pair.quality in GOOD]


def size_of(answers: Iterable[Answer]) -> float:
    """Median over groups of the group's median |ln error|: a source with many rows counts once."""
    groups: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        groups[answer.pair.group].append(abs(answer.error))
    return float(np.median([np.median(errors) for errors in groups.values()]))


def signs(answers: Iterable[Answer]) -> float:
    """Share of gains outside 0.95–1.05 whose direction is right."""
    clear = [each for each in answers if not 0.95 <= each.pair.measured <= 1.05]
    return sum((each.predicted > 1) == (each.pair.measured > 1) for each in clear) / len(clear)


def reasons(refusals: Iterable[Refusal], lever: str) -> Counter[str]:
    return Counter(each.reason for each in refusals if each.row.fields["lever"].startswith(lever) and each.row.fields["quality"] in GOOD)
