"""What was read over time, the same from a live page and from a metrics history: series of normalised quantities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.adapter import Alias
from breakeven.exposition.places import Key, Part
from breakeven.messages import Message
from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class Series:
    """One quantity of one rank of one replica over time."""

    quantity: str
    """Key of :data:`breakeven.adapter.QUANTITIES`."""
    source: str = ""
    """Which replica: the target's address, or what tells targets apart in a history (``instance``, ``pod``)."""
    rank: str = ""
    """Which rank of it (``engine="1"``)."""
    split: str = ""
    """Value of the splitting label: a position, a reason."""
    part: Part = ""
    """Of a histogram: its sum, its count or a bucket."""
    le: float | None = None
    """Upper bound of the bucket, in the quantity's unit."""
    alias: Alias
    times: Array
    """Unix seconds, rising."""
    values: Array
    """As scaled to SI; counters as they stand on the page, resets and all. Never NaN: a NaN sample is no sample."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """All labels of an info metric; else empty."""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """All series of one observation."""

    engine: str
    """Name in the catalogue of engines."""
    series: tuple[Series, ...]
    start_s: float
    end_s: float
    """Unix seconds of the first and the last reading."""
    readings: int
    """Readings that came back."""
    every_s: float
    """What was asked for between readings."""
    missed: int = 0
    """Readings that did not come back."""
    notes: tuple[Message, ...] = ()
    """Restarts, lost readings, duplicated series, routers: what is to be said of the reading itself."""
    unsure: frozenset[tuple[str, Key]] = frozenset()
    """Sources and what they told once that was no number: it may have been counted before its first reading."""
