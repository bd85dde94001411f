"""Which sample names tell which quantity: the aliases of all adapters, by the name that stands on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from breakeven.adapter import QUANTITIES, Adapter, Alias, Kind
from breakeven.registry import module, names

Part = Literal["", "sum", "count", "bucket"]
MADE_OF: Mapping[Kind, Mapping[str, Part]] = {
    "counter": {"": "", "_total": ""},
    "gauge": {"": ""},
    "info": {"": ""},
    "histogram": {"_sum": "sum", "_count": "count", "_bucket": "bucket"},
}
"""What a sample's name has after its family's, and what part it is."""
OF_ITERATIONS: Mapping[str, Part] = {"_total": ""}
"""Of a counter made by adding up iterations: the bare name is their mean."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a sample of some name belongs."""

    adapter: str
    """File name in ``adapters/``."""
    quantity: str
    order: int
    """Of its aliases: 0 is the best."""
    alias: Alias
    part: Part


@dataclass(frozen=True, kw_only=True)
class Key:
    """What samples have in common that are counted together."""

    quantity: str
    rank: str
    split: str
    part: Part
    le: float | None


def adapter(name: str) -> Adapter:
    """The adapter of a file."""
    found: Adapter = module("adapters", name).ADAPTER
    return found


def sample_names(of: Adapter, quantity: str, alias: Alias) -> Iterator[tuple[str, Part]]:
    """How an alias may be written on a page, with the part it is."""
    bare = alias.family.removeprefix(of.prefixes[0])
    kind = QUANTITIES[quantity]
    suffixes = OF_ITERATIONS if of.form == "json" and kind == "counter" else MADE_OF[kind]
    for prefix in of.prefixes:
        for suffix, part in suffixes.items():
            yield f"{prefix}{bare}{suffix}", part


@cache
def places() -> Mapping[str, tuple[Place, ...]]:
    """Every sample name that any adapter reads, with all that it may be."""
    found: dict[str, list[Place]] = {}
    for name in names("adapters"):
        of = adapter(name)
        for quantity, aliases in of.quantities.items():
            for order, alias in enumerate(aliases):
                for written, part in sample_names(of, quantity, alias):
                    found.setdefault(written, []).append(Place(adapter=name, quantity=quantity, order=order, alias=alias, part=part))
    return {written: tuple(all_of) for written, all_of in found.items()}


@cache
def families(engine: str | None = None) -> tuple[str, ...]:
    """Every sample name (``vllm:generation_tokens_total``, ``…_bucket``) that tells something of an engine, of routers and devices too."""
    text = (name for name in names("adapters") if adapter(name).form == "text")
    mine = {name for name in text if engine is None or adapter(name).engine in ("", engine)}
    read = {written for written, found in places().items() if any(one.adapter in mine for one in found)}
    return tuple(sorted(read | {mark for name in mine for mark in adapter(name).marks}))


def key(place: Place, labels: Mapping[str, str]) -> Key | None:
    """What a sample is counted with; None where its labels are not those the alias asks for."""
    alias, of = place.alias, adapter(place.adapter)
    if not all(_carries(labels.get(label, ""), value) for label, value in alias.where.items()):
        return None
    le = None
    if place.part == "bucket":
        try:
            le = float(labels["le"]) * alias.scale
        except (KeyError, ValueError):
            return None
    ranks = [labels[label] for label in of.rank_labels if labels.get(label)]
    split = labels.get(alias.split, "") if alias.split else ""
    return Key(quantity=place.quantity, rank="/".join(ranks), split=split, part=place.part, le=le)


def _carries(found: str, value: str) -> bool:
    return bool(found) if value == "*" else found in value.split("|")
