"""Which engine a phrase names, and its version: stated, told by a date or an era, or the one taken where none is stated."""

from __future__ import annotations

import re
import tomllib
from functools import cache

from breakeven.catalog_files import HERE, index, our_names
from breakeven.measured.words._spelling import SEVERAL, plain, refused, stated, table

NUMBER = re.compile(r"~?\bv?(\d+(?:\.\d+)+(?:[-.]?(?:rc|post|dev|pre)[\w.]*)*)", re.IGNORECASE)
NIGHTLY = re.compile(r"\b(nightly|main|master|latest)\b[\w.-]*", re.IGNORECASE)
DATE = re.compile(r"\b(?:(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s-]*)?(20\d\d)(?:-(0[1-9]|1[0-2]))?\b", re.IGNORECASE)
BUILD = re.compile(r"\bb(\d{3,5})\b")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def engine(text: str, version: str = "", *, otherwise: str = "") -> tuple[str, str]:
    """Name and version of the engine that a phrase names; ``version``: a column of its own; ``otherwise``: taken where none is stated."""
    phrase = stated(text, "engine")
    if SEVERAL.search(phrase):
        raise refused("two_named", field="engine", text=phrase)
    if phrase.lower().startswith("kernel only"):
        raise refused("kernel_only", field="engine", text=phrase)
    name = _name(phrase)
    rest = plain(f"{phrase} {version}", "engine")
    return name, _version(name, rest, otherwise)


@cache
def _names() -> tuple[tuple[str, str], ...]:
    """Spellings, longest first, each with the name it stands for; empty where the engine is told apart and not modelled."""
    ours = {name: name for name in our_names("engines")} | {str(alias): str(name) for alias, name in index().get("engines", {}).items()}
    known = table("engines")
    found = {**ours, **known["called"], **dict.fromkeys(known["other_engines"], "")}
    return tuple(sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _name(phrase: str) -> str:
    lowered = phrase.lower()
    for spelling, name in _names():
        if re.match(rf"{re.escape(spelling)}(?![a-z0-9/]|-[a-z])", lowered):
            if name and not _altered(lowered[len(spelling) :]):
                return name
            break
    raise refused("engine_unknown", field="engine", text=phrase)


def _altered(rest: str) -> bool:
    """Whether words follow that make it another program than the released one."""
    return any(re.search(rf"(?<![a-z]){re.escape(word)}(?![a-z])", rest) for word in table("engines")["altered"])


def _version(name: str, rest: str, otherwise: str) -> str:
    for pattern, written in table("engines")["respelled"].items():
        rest = re.sub(pattern, written, rest)
    for pattern in (BUILD, NUMBER):
        if found := pattern.search(rest):
            return found[1] if pattern is NUMBER else f"b{found[1]}"
    if NIGHTLY.search(rest):
        return "main"
    if old := _by_word("until", name, rest):
        return old
    if found := DATE.search(rest):
        # A year alone is taken at its end.
        month = MONTHS.index(found[1].lower()) + 1 if found[1] else int(found[3] or 12)
        return _at(name, f"{found[2]}-{month:02d}")
    return _by_word("since", name, rest) or otherwise or _where_none_is_stated(name)


def _by_word(table_name: str, name: str, rest: str) -> str | None:
    """The release that the word of an era stands for: ``V0`` until it, ``V1`` since it."""
    eras = table("engines")[table_name].get(name, {})
    return next((str(number) for word, number in eras.items() if re.search(rf"\b{word}\b", rest, re.IGNORECASE)), None)


def _at(name: str, month: str) -> str:
    """The last release up to a month; the newest after the last one known; where none is known, the one taken where none is stated."""
    releases = table("engines")["released"].get(name, {})
    if releases and month > max(releases):
        return "main"
    before = [str(releases[each]) for each in sorted(releases) if each <= month]
    return before[-1] if before else _where_none_is_stated(name)


@cache
def _where_none_is_stated(name: str) -> str:
    path = HERE / "engines" / f"{name}.toml"
    return str(tomllib.loads(path.read_text(encoding="utf-8"))["version"]) if path.is_file() else "main"
