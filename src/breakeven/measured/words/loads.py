"""How much ran at once: clients, a batch, a rate, all requests at once, or as many as fit; one number or the lever's two."""

from __future__ import annotations

import re
from dataclasses import dataclass

from breakeven.measured.words._spelling import ARROW, NOT_STATED, plain, refused

COUNTED = r"(?:~|≈)?\s*(\d{1,7})"
ALONE = re.compile(rf"{COUNTED}(?:\s*\(([^()]*)\))?")
NAMED = re.compile(
    rf"(?:(batch(?: size)?|bs)|(concurrency|clients?|c|max_concurrency)|(qps|rps|rate))\s*=?\s*{COUNTED}(?:\.(\d+))?", re.IGNORECASE
)
UNIT = re.compile(
    rf"{COUNTED}(?:\.(\d+))?\s*"
    r"(?:(?:prefill )?(requests?|prompts?)|(?:concurrent )?(clients?|users|streams?|sessions)|(req/s|qps|rps)|(concurrent requests))",
    re.IGNORECASE,
)
BY_ARM = re.compile(r"(\d{1,7})\s*\([^()]*\)\s*/\s*(\d{1,7})\s*\([^()]*\)")
MOST = re.compile(r"max(?:imum)? (?:that fits|load)|saturat(?:ing|ed)|as many as fit", re.IGNORECASE)
AT_ONCE = re.compile(r"\ball (?:requests )?(?:submitted |sent )?at once\b|\boffline\b", re.IGNORECASE)
ONE_BY_ONE = re.compile(r"\b(?:sequential|one by one|one at a time|single (?:stream|request|user|client))\b", re.IGNORECASE)
APPROXIMATE = ("~", "≈")


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load and, where the lever's two sides differ, both."""

    kind: str
    """``count`` (a number that is a batch or clients: the metric says which), ``batch``, ``clients``, ``rate`` (requests a second),
    ``requests`` (their whole number), ``at_once`` (all are sent at the start) or ``most`` (as many as fit, or saturation)."""
    off: float | None
    """None: not stated (``most``)."""
    on: float | None
    on_kind: str = ""
    """The other side's kind where it differs: one request after the other, then all at once."""
    about: bool = False
    """Whether the number is approximate."""


def load(text: str) -> Load:
    """The load that a phrase states."""
    phrase = plain(text, "load")
    if NOT_STATED.search(phrase):
        raise refused("not_stated", field="load", text=phrase)
    sides = ARROW.split(phrase)
    if len(sides) == 2:
        return _both(sides[0], sides[1], phrase)
    if found := BY_ARM.fullmatch(phrase):
        return Load(kind="count", off=float(found[1]), on=float(found[2]))
    kind, value = _one(phrase, phrase)
    return Load(kind=kind, off=value, on=value, about=phrase.startswith(APPROXIMATE))


def _both(off: str, on: str, phrase: str) -> Load:
    kind, value = _one(off, phrase)
    word = re.match(r"[a-z_ ]+", off, re.IGNORECASE)
    other, raised = _one(f"{word[0]}{on}" if word and on[:1].isdigit() else on, phrase)
    return Load(kind=kind, off=value, on=raised, on_kind=other if other != kind else "")


def _one(side: str, phrase: str) -> tuple[str, float | None]:
    if ONE_BY_ONE.search(side):
        return "clients", 1.0
    if AT_ONCE.search(side):
        found = re.search(COUNTED, side)
        return "at_once", float(found[1]) if found else None
    if MOST.fullmatch(re.sub(r"\s*\(.*\)$", "", side)):
        return "most", None
    if (found := NAMED.fullmatch(side)) or (found := UNIT.fullmatch(side)):
        return _named(found)
    if (found := ALONE.fullmatch(side)) and not (found[2] and NOT_STATED.search(found[2])):
        return "count", float(found[1])
    raise refused("load_unknown", field="load", text=phrase)


def _named(found: re.Match[str]) -> tuple[str, float]:
    if found.re is NAMED:
        kinds, whole, part = found.groups()[:3], found[4], found[5]
        kind = ("batch", "clients", "rate")[next(i for i, each in enumerate(kinds) if each)]
    else:
        kinds, whole, part = found.groups()[2:], found[1], found[2]
        kind = ("requests", "clients", "rate", "clients")[next(i for i, each in enumerate(kinds) if each)]
    return kind, float(f"{whole}.{part or 0}")
