"""Samples to readings: the best alias of each quantity, one copy of each rank, added up over all labels that do not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from breakeven.adapter import AVERAGED, QUANTITIES, Alias
from breakeven.exposition.places import Key, Part, Place, adapter, key, places
from breakeven.exposition.samples import LARGEST, Sample
from breakeven.messages import Message


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One number of a page: of one quantity of one rank, added up over all other labels."""

    quantity: str
    """Key of :data:`breakeven.adapter.QUANTITIES`."""
    rank: str = ""
    split: str = ""
    """Value of the splitting label: a position, a reason."""
    part: Part = ""
    le: float | None = None
    """Upper bound of a bucket, in the quantity's unit."""
    alias: Alias
    value: float
    """Scaled to SI."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """All labels of an info metric; else empty."""
    lacking: frozenset[str] = frozenset()
    """Samples that belong to it and were no numbers, as they stand on the page: it is what the others add up to."""


Placed = tuple[Place, Key, Sample]


def gathered(found: Iterable[Sample], name: str, wrong: Iterable[Sample] = ()) -> tuple[tuple[Reading, ...], tuple[Message, ...]]:
    """The readings of a page by one adapter, and what is to be said of them; ``wrong`` are samples that were no numbers."""
    placed = [*_placed(found, name)]
    best: dict[str, int] = {}
    for place, _, _ in placed:
        best[place.quantity] = min(best.get(place.quantity, place.order), place.order)
    together: dict[Key, list[Placed]] = {}
    for one in (*placed, *_placed(wrong, name)):
        if one[0].order == best.get(one[0].quantity):
            together.setdefault(one[1], []).append(one)
    together = {where: _first_copy(of, adapter(name).copy_labels) for where, of in together.items()}
    together, uneven = _even(together)
    lacking = _lacking(together)
    sound = {where: [one for one in of if abs(one[2].value) <= LARGEST] for where, of in together.items()}
    return tuple(_reading(where, of, lacking.get(_whole(where), frozenset())) for where, of in sound.items() if of), _said_of(uneven)


def _placed(found: Iterable[Sample], name: str) -> Iterator[Placed]:
    return (
        (place, where, sample)
        for sample in found
        for place in places().get(sample.name, ())
        if place.adapter == name and not (sample.value < 0 and place.quantity in AVERAGED)  # vLLM V0: -1 where prefix caching is off
        if (where := key(place, sample.labels)) is not None
    )


def _whole(where: Key) -> Key:
    """What a part of a histogram is a part of: its sum says nothing beside a count that holds more."""
    return replace(where, part="", le=None)


def _lacking(together: Mapping[Key, list[Placed]]) -> dict[Key, frozenset[str]]:
    """The samples of each quantity that were no numbers."""
    found: dict[Key, frozenset[str]] = {}
    for where, of in together.items():
        if wrong := frozenset(f"{one[2].name}{sorted(one[2].labels.items())}" for one in of if not abs(one[2].value) <= LARGEST):
            found[_whole(where)] = found.get(_whole(where), frozenset()) | wrong
    return found


def _first_copy(of: Sequence[Placed], labels: Sequence[str]) -> list[Placed]:
    """Of ranks that tell the same again, the first alone."""
    first = min([one[2].labels.get(label, "") for label in labels] for one in of)
    return [one for one in of if [one[2].labels.get(label, "") for label in labels] == first]


def _even(together: Mapping[Key, list[Placed]]) -> tuple[dict[Key, list[Placed]], set[str]]:
    """Buckets that all series of a histogram have: those that some lack cannot be added up."""
    series: dict[tuple[str, str, str], int] = {}
    for where, of in together.items():
        if where.part == "bucket":
            one = (where.quantity, where.rank, where.split)
            series[one] = max(series.get(one, 0), len(of))
    kept, uneven = {}, set()
    for where, of in together.items():
        if where.part == "bucket" and len(of) < series[where.quantity, where.rank, where.split]:
            uneven.add(of[0][0].alias.family)
        else:
            kept[where] = of
    return kept, uneven


def _said_of(uneven: set[str]) -> tuple[Message, ...]:
    return (Message("adapter.page_buckets", {"metrics": ", ".join(sorted(uneven))}),) if uneven else ()


def _reading(where: Key, of: Sequence[Placed], lacking: frozenset[str]) -> Reading:
    alias, is_info = of[0][0].alias, QUANTITIES[where.quantity] == "info"
    value = math.fsum(one[2].value for one in of)
    if where.quantity in AVERAGED:
        value /= len(of)
    return Reading(
        quantity=where.quantity,
        rank=where.rank,
        split=where.split,
        part=where.part,
        le=where.le,
        alias=alias,
        value=of[0][2].value if is_info else value * (alias.scale if where.part in ("", "sum") else 1.0),
        labels=dict(of[0][2].labels) if is_info else {},
        lacking=lacking,
    )
