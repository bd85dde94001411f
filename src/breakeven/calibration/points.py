"""The points of a load: each visited several times, and the median of its rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.driving.grid import Visit
from breakeven.driving.steps import Stepped, stepped
from breakeven.driving.tour import Tour, kept


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint:
    """A point of the grid with all its rounds."""

    visit: Visit
    rounds: tuple[Stepped, ...]

    @property
    def step_s(self) -> float:
        """The median round's median step."""
        return float(np.median([one.step_s for one in self.rounds]))

    @property
    def context_tokens(self) -> float:
        """Mean of the rounds."""
        return float(np.mean([one.context_tokens for one in self.rounds]))

    @property
    def spread(self) -> float:
        """The longest round's step over the shortest's."""
        return max(one.step_s for one in self.rounds) / min(one.step_s for one in self.rounds)


def points_of(tour: Tour) -> tuple[list[MeasuredPoint], list[Visit]]:
    """The points that were measured, and those whose streams never all decoded for long enough."""
    rounds: dict[tuple[int, int], list[Stepped | None]] = {}
    visits: dict[tuple[int, int], Visit] = {}
    for one in kept(tour.visited):
        if not one.visit.alone:
            key = (one.visit.context, one.visit.concurrency)
            visits[key] = one.visit
            rounds.setdefault(key, []).append(stepped(one.driven, one.visit.concurrency))
    found = {key: tuple(each for each in of if each is not None) for key, of in rounds.items()}
    measured = [MeasuredPoint(visit=visits[key], rounds=found[key]) for key in sorted(found) if found[key]]
    return measured, [visits[key] for key in sorted(found) if not found[key]]
