"""A timeline opened up: each quantity's increase, histogram and level over what was observed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from breakeven.adapter import QUANTITIES
from breakeven.observation import gauges, histograms, increases
from breakeven.observation.gauges import Level, Together
from breakeven.observation.histograms import Histogram
from breakeven.observation.increases import Rise
from breakeven.observation.timeline import Series, Timeline
from breakeven.stats import Array

COUNTED = ("counter", "histogram")


@dataclass(frozen=True)
class Quantities:
    """What a timeline tells of each quantity."""

    timeline: Timeline
    _levels: dict[tuple[str, Together], Level | None] = field(default_factory=dict, repr=False)

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
        for one in self.timeline.series:
            times[one.source].append(one.times)
        return {source: np.unique(np.concatenate(some)) for source, some in times.items()}

    @cached_property
    def rises(self) -> Mapping[str, tuple[Rise, ...]]:
        """What each counter and each part of a histogram rose by."""
        counted = [one for quantity, some in self.series.items() if QUANTITIES[quantity] in COUNTED for one in some]
        found: dict[str, list[Rise]] = defaultdict(list)
        for rise in increases.rises(counted, self.read_at):
            found[rise.series.quantity].append(rise)
        return {quantity: tuple(some) for quantity, some in found.items()}

    @cached_property
    def seconds(self) -> float:
        """Length of the observation."""
        return max(self.timeline.end_s - self.timeline.start_s, 0.0)

    @cached_property
    def replica_seconds(self) -> float:
        """Seconds between first and last reading, over all replicas: what a mean over time of one replica is over."""
        return float(sum(times[-1] - times[0] for times in self.read_at.values() if times.size))

    @property
    def replicas(self) -> int:
        """Replicas that were read."""
        return len(self.read_at)

    @cached_property
    def ranks(self) -> int:
        """Most ranks that a replica shows."""
        ranks: dict[str, set[str]] = defaultdict(set)
        for one in self.timeline.series:
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

    def level(self, quantity: str, together: Together = "sum") -> Level | None:
        """A gauge over time, of one replica."""
        key = (quantity, together)
        if key not in self._levels:
            blocks = self.blocks if together == "mean" else None
            self._levels[key] = gauges.level(self.series.get(quantity, ()), together, blocks)
        return self._levels[key]

    @cached_property
    def blocks(self) -> Mapping[tuple[str, str], float]:
        """Tokens of the pool of each rank, where it tells them: from its gauge, else blocks times their size."""
        found = {(one.source, one.rank): float(one.values[-1]) for one in self.series.get("kv_total_tokens", ())}
        for one in self.series.get("cache_config", ()):
            tokens = _pool_of(one.labels)
            if tokens is not None:
                found.setdefault((one.source, one.rank), tokens)
        return found

    @cached_property
    def pool_tokens(self) -> float | None:
        """Tokens that the pool of one replica holds, its ranks together; None where a rank does not tell it."""
        if not self.blocks:
            return None
        return sum(self.blocks.values()) / len({source for source, _ in self.blocks})


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


def _pool_of(labels: Mapping[str, str]) -> float | None:
    """num_gpu_blocks · block_size (vLLM), num_pages · page_size (SGLang), of a page's information about its cache."""
    for count, size in (("num_gpu_blocks", "block_size"), ("num_pages", "page_size")):
        if labels.get(count, "").isdecimal() and labels.get(size, "").isdecimal():
            return float(labels[count]) * float(labels[size])
    return None
