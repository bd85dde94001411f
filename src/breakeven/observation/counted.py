"""What was counted: increases of counters, and histograms of what was observed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from breakeven.adapter import QUANTITIES
from breakeven.observation import histograms, increases
from breakeven.observation.histograms import Histogram
from breakeven.observation.increases import Rise
from breakeven.observation.opened import Opened

COUNTED = ("counter", "histogram")
NO_NUMBERS = "adapter.page_not_numbers"
"""Note of a timeline from which NaN was left out, with the quantities that it was of."""


@dataclass(frozen=True)
class Counted(Opened):
    """Counters and histograms of a timeline, over the window or since the engine started."""

    @cached_property
    def rises(self) -> Mapping[str, tuple[Rise, ...]]:
        """What each counter and each part of a histogram rose by."""
        counted = [one for quantity, some in self.series.items() if QUANTITIES[quantity] in COUNTED for one in some]
        found: dict[str, list[Rise]] = defaultdict(list)
        unsure = {name for note in self.timeline.notes if note.key == NO_NUMBERS for name in str(note.values["quantities"]).split()}
        for rise in increases.rises(counted, self.read_at, unsure):
            found[rise.series.quantity].append(rise)
        return {quantity: tuple(some) for quantity, some in found.items()}

    def rise(self, quantity: str, part: str = "") -> float | None:
        """What it rose by in all; None where it is not told."""
        some = self._parts(quantity, part)
        return sum(one.total for one in some) if some else None

    def moved(self, quantity: str, part: str = "") -> float | None:
        """What it rose by, where it rose."""
        return self.rise(quantity, part) or None

    def total(self, quantity: str, part: str = "") -> float | None:
        """What it stands at: since the engine started."""
        some = self._parts(quantity, part)
        return sum(one.since_start for one in some) if some else None

    def by_split(self, quantity: str, *, since_start: bool = False) -> dict[str, float]:
        """Its increase (or what it stands at) by the label that splits it."""
        found: dict[str, float] = defaultdict(float)
        for one in self._parts(quantity, ""):
            found[one.series.split] += one.since_start if since_start else one.total
        return dict(found)

    def _parts(self, quantity: str, part: str) -> list[Rise]:
        return [one for one in self.rises.get(quantity, ()) if one.series.part == part]

    def histogram(self, quantity: str, *, since_start: bool = False) -> Histogram | None:
        """All series of a histogram as one, of what was observed in the window or since the engine started; None where it is not told."""
        some = self.rises.get(quantity, ())
        if not some or QUANTITIES[quantity] != "histogram":
            return None
        return histograms.merged(
            histograms.grouped(
                (
                    (one.series.source, one.series.rank, one.series.split),
                    one.series.part,
                    one.series.le,
                    one.since_start if since_start else one.total,
                )
                for one in some
            )
        )

    def mean(self, quantity: str) -> float | None:
        """Mean of a histogram over the window: sum over count."""
        found = self.histogram(quantity)
        return None if found is None else found.mean
