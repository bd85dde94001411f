"""Readings of a sum of which a part was no number: beside whole ones they would look like a counter that began anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from breakeven.messages import Message
from breakeven.observation.page import Part

ENOUGH = 2
"""Whole readings from which a difference can be made, so that the others are not needed."""


@dataclass(frozen=True, kw_only=True)
class SeriesKey:
    """What readings have in common that are one series."""

    source: str
    quantity: str
    rank: str
    split: str
    part: Part
    le: float | None
    family: str
    lacking: frozenset[str] = frozenset()
    """Samples that are not in the sum."""


def comparable(readings: Mapping[SeriesKey, int]) -> tuple[list[SeriesKey], tuple[Message, ...]]:
    """Of each sum the readings that add up the same, by how many readings there are of each; and what is to be said of the others.

    Whole ones, where there are two; else those of which the same part is lacking most often.
    """
    alike: dict[SeriesKey, list[SeriesKey]] = {}
    for key in readings:
        alike.setdefault(replace(key, lacking=frozenset()) if key.lacking else key, []).append(key)
    kept = {whole: _best(whole, some, readings) for whole, some in alike.items()}
    partial = {whole: kept[whole] for whole, some in alike.items() if len(some) > 1 or kept[whole].lacking}
    lost = {whole: sum(readings[one] for one in alike[whole] if one != kept[whole]) for whole in partial}
    return list(kept.values()), (*_said("rest", (one for one in partial.values() if one.lacking), {}), *_said("left", lost, lost))


def _best(whole: SeriesKey, some: list[SeriesKey], readings: Mapping[SeriesKey, int]) -> SeriesKey:
    return whole if readings.get(whole, 0) >= ENOUGH else max(some, key=lambda one: readings[one])


def _said(what: str, keys: Iterable[SeriesKey], lost: Mapping[SeriesKey, int]) -> Iterator[Message]:
    """A sentence for each server."""
    metrics: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for key in keys:
        if not lost or lost[key]:
            metrics.setdefault(key.source, set()).add(key.family)
            counts[key.source] = max(counts.get(key.source, 0), lost.get(key, 0))
    for source, names in metrics.items():
        yield Message(f"observe.note_partial_{what}", {"target": source, "metrics": ", ".join(sorted(names)), "count": counts[source]})
