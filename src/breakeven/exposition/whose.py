"""Whose page it is: the adapters whose names are on it, the best first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from breakeven.errors import InputError
from breakeven.exposition.places import adapter, places
from breakeven.messages import Message
from breakeven.registry import names

ROLES = ("engine", "router", "device")


def on_page(found: Iterable[str]) -> Mapping[str, int]:
    """Adapters with names on a page, and how many quantities each would read there.

    Names that two adapters read (a router of vLLM has names of vLLM's) belong to the one whose marks are on the page.
    """
    told: dict[str, set[str]] = {}
    seen = set(found)
    for name in seen:
        for place in places().get(name, ()):
            told.setdefault(place.adapter, set()).add(place.quantity)
    told = {one: quantities for one, quantities in told.items() if not adapter(one).marks or seen & set(adapter(one).marks)}
    return {one: len(quantities) for one, quantities in told.items() if not _of_another(one, told, seen)}


def _of_another(one: str, told: Mapping[str, Set[str]], seen: Set[str]) -> bool:
    """Whether all that one adapter would read belongs to a marked one with the same prefix."""
    others = [other for other in told if other != one and adapter(other).marks and adapter(other).prefixes[0] == adapter(one).prefixes[0]]
    return not adapter(one).marks and bool(others)


def chosen(found: Mapping[str, int], engine: str | None, target: str) -> str:
    """The adapter to read a page with: an engine before a router before a device, the one asked for where one is."""
    if not found:
        known = sorted({adapter(name).engine for name in names("adapters")} - {""})
        raise InputError("page_unknown", target=target, known=", ".join(known))
    ranked = sorted(found, key=lambda one: (ROLES.index(adapter(one).role), -found[one], one))
    if engine is None:
        return ranked[0]
    mine = [one for one in ranked if adapter(one).engine in (engine, "")]
    if not mine:
        raise InputError("page_other_engine", target=target, engine=engine, found=adapter(ranked[0]).engine)
    return min(mine, key=lambda one: (adapter(one).engine == "", ranked.index(one)))


def said(found: Mapping[str, int], name: str) -> tuple[Message, ...]:
    """What is to be said of whose page it is: a router's numbers are its own, others on the page are not read."""
    notes = []
    if adapter(name).role == "router":
        notes.append(Message("adapter.page_router", {"adapter": name}))
    others = sorted(one for one in found if one != name and adapter(one).role != "device")
    if others:
        notes.append(Message("adapter.page_others", {"adapter": name, "others": ", ".join(others)}))
    return tuple(notes)
