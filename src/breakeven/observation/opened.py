"""A timeline opened up: whose series there are of each quantity, and over how long they were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from breakeven.adapter import QUANTITIES
from breakeven.observation import increases
from breakeven.observation.timeline import Series, Timeline
from breakeven.stats import Array

GAP = 4.0
"""Readings further apart than so many times what was asked for have a gap between them."""


@dataclass(frozen=True)
class Ran:
    """The time that series are over."""

    timeline: Timeline

    @cached_property
    def series(self) -> Mapping[str, tuple[Series, ...]]:
        """Series of each quantity, in order of time; of a quantity that has two names on a page at once, the better one's."""
        found: dict[str, list[Series]] = defaultdict(list)
        for one in self.timeline.series:
            if one.times.size:
                found[one.quantity].append(increases.in_order(one))
        return {quantity: _one_name(some) for quantity, some in found.items()}

    @cached_property
    def read_at(self) -> Mapping[str, Array]:
        """Times at which each replica was read."""
        times: dict[str, list[Array]] = defaultdict(list)
        for one in _of_engines(self.timeline.series):
            times[one.source].append(one.times)
        return {source: np.unique(np.concatenate(some)) for source, some in times.items()}

    @cached_property
    def running(self) -> Mapping[str, tuple[tuple[float, float], ...]]:
        """From when to when each replica is known to have run.

        Through a gap between readings it ran where its counters go on behind it; where they begin anew, it is not known since when.
        """
        counters = [one for name, some in self.series.items() if QUANTITIES[name] in ("counter", "histogram") for one in some]
        anew = increases.restarts(counters, self.read_at)
        return {source: _spans(times, anew.get(source, np.zeros(0)), self.timeline.every_s) for source, times in self.read_at.items()}

    @cached_property
    def seconds(self) -> float:
        """Length of the observation, without the time in which no replica is known to have run."""
        spans = sorted(span for some in self.running.values() for span in some)
        total, reached = 0.0, -np.inf
        for begun, ended in spans:
            total += max(ended - max(begun, reached), 0.0)
            reached = max(reached, ended)
        return float(total)

    @cached_property
    def replica_seconds(self) -> float:
        """Seconds that replicas ran, all together: what a mean over time of one replica is over."""
        return float(sum(ended - begun for some in self.running.values() for begun, ended in some))

    @property
    def replicas(self) -> int:
        """Replicas that ran at a time: those that came in another's place are not more."""
        if not self.seconds:
            return len(self.read_at)
        return max(int(self.replica_seconds / self.seconds + 0.5), 1)


@dataclass(frozen=True)
class Opened(Ran):
    """Series by quantity, and of what ranks."""

    @cached_property
    def ranks(self) -> int:
        """Most ranks that a replica shows."""
        ranks: dict[str, set[str]] = defaultdict(set)
        for one in _of_engines(self.timeline.series):
            ranks[one.source].add(one.rank)
        return max((len(found - {""}) or 1 for found in ranks.values()), default=1)

    def ranks_of(self, quantity: str) -> int:
        """Ranks that a replica counts this quantity for: 1 where it is counted for them together."""
        ranks: dict[str, set[str]] = defaultdict(set)
        for one in self.series.get(quantity, ()):
            ranks[one.source].add(one.rank)
        return max((len(found) for found in ranks.values()), default=1)

    def has(self, quantity: str) -> bool:
        """Whether it is on the page at all."""
        return quantity in self.series

    def metrics(self, *quantities: str) -> tuple[str, ...]:
        """Their names on the page."""
        return tuple(dict.fromkeys(one.alias.family for quantity in quantities for one in self.series.get(quantity, ())))

    def biased(self, quantity: str) -> bool:
        """Whether a name was taken that is known to count wrongly."""
        return any(one.alias.biased for one in self.series.get(quantity, ()))


def _spans(times: Array, anew: Array, every_s: float) -> tuple[tuple[float, float], ...]:
    """Stretches of readings, cut where a gap ends in a restart."""
    if not times.size:
        return ()
    cut = np.flatnonzero((np.diff(times) > GAP * every_s) & np.isin(times[1:], anew))
    begun, ended = np.concatenate([[times[0]], times[cut + 1]]), np.concatenate([times[cut], [times[-1]]])
    return tuple(zip(begun.tolist(), ended.tolist(), strict=True))


def _one_name(some: Sequence[Series]) -> tuple[Series, ...]:
    """Of each replica one name of the quantity; another one only where their readings do not overlap (it was renamed on the way)."""
    kept: list[Series] = []
    for source in dict.fromkeys(one.source for one in some):
        names: dict[str, list[Series]] = defaultdict(list)
        for one in some:
            if one.source == source:
                names[one.alias.family].append(one)
        spans: list[tuple[float, float]] = []
        for family in sorted(names, key=lambda name: names[name][0].alias.biased):
            first = min(float(one.times[0]) for one in names[family])
            last = max(float(one.times[-1]) for one in names[family])
            if all(last < begun or first > ended for begun, ended in spans):
                kept += names[family]
                spans.append((first, last))
    return tuple(kept)


def _of_engines(every: Sequence[Series]) -> Sequence[Series]:
    """An exporter of devices that is read beside engines is no replica, and its devices are no ranks."""
    return [one for one in every if not one.quantity.startswith("device_")] or every
