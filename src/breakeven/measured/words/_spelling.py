"""How strings are made alike before they are read: dashes, arrows, letter cases; and how what is not understood is refused."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from breakeven.measured.row import NotUnderstood
from breakeven.messages import Message, printable

LONGEST = 400
"""Characters of a field that is still read: a phrase, not a page."""
DASHES = str.maketrans(dict.fromkeys("‐‑‒–−﹣－", "-") | {"\u00a0": " ", "\u202f": " ", "\u00d7": "x"})
ARROW = re.compile(r"\s*(?:->|=>|\u2192|\u27f6|\u21d2)\s*")
NOT_STATED = re.compile(
    r"^\W*$|^(?:n/?[as]|none|null|nan|tbd|unknown)$"
    r"|\bnot (?:stated|named|given|recorded|known|in the)\b|\bun(?:named|specified)\b|\bsee (?:paper|source|setting|notes?|text)\b",
    re.IGNORECASE,
)
SEVERAL = re.compile(r"\s+(?:/|or|vs\.?|versus|against)\s+", re.IGNORECASE)
REMARK = re.compile(r"\([^()]*\)")


def plain(text: str, field: str) -> str:
    """The text with plain dashes and blanks; too long a one is refused."""
    if len(text) > LONGEST:
        raise refused("too_long", field=field, characters=len(text))
    return " ".join(text.translate(DASHES).split())


def stated(text: str, field: str) -> str:
    """The text where it says something at all."""
    found = plain(text, field)
    if NOT_STATED.search(found):
        raise refused("not_stated", field=field, text=found)
    return found


def without_remarks(text: str) -> str:
    """What stands outside brackets."""
    return " ".join(REMARK.sub(" ", text).split())


def part_of(phrase: str, *keys: str) -> str:
    """The value of the first of these keys in ``key=value;key=value``; the phrase itself where it is none."""
    pairs = dict(each.split("=", 1) for each in phrase.split(";") if re.fullmatch(r"\s*[A-Za-z_]+=.*", each))
    found = {name.strip(): value.strip() for name, value in pairs.items()}
    return next((found[key] for key in keys if key in found), phrase)


def refused(key: str, *, field: str, **values: object) -> NotUnderstood:
    """What is not understood: a sentence of the catalogue with the field's name and the text in it."""
    shown = {name: printable(value)[:120] if isinstance(value, str) else value for name, value in values.items()}
    return NotUnderstood(Message(f"words.{key}", {"field": Message(f"words.field_{field}"), **shown}))


@cache
def table(name: str) -> dict[str, Any]:
    """A file of ``catalog/words``."""
    return tomllib.loads(resources.files("breakeven").joinpath("catalog", "words", f"{name}.toml").read_text(encoding="utf-8"))
