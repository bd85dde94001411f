"""The catalogue of messages: every string a user reads, in English and Chinese.

A message is a key and its values; the words live in ``locale/<language>/<area>.toml`` and the key is
``area.name``. Units are chosen here by the format specification: ``{step:time}``, ``{pool:bytes}``,
``{rate:number}``, ``{share:percent}``, besides Python's own.
"""

from __future__ import annotations

import re
import string
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from breakeven import units

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

LANGUAGES = ("en", "zh")
UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of what is not seen, but does something: controls, directions, halves of a pair, line ends."""

HAN_GAP = re.compile(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")
"""A single blank between two Chinese characters: none is written there, whatever a hole was filled with."""


@dataclass(frozen=True)
class Message:
    """A sentence to come: its key in the catalogue and the values it will carry."""

    key: str
    values: Mapping[str, object] = field(default_factory=dict)


class _UnitFormatter(string.Formatter):
    """``str.format`` with the units of :mod:`breakeven.units` as format specifications."""

    def format_field(self, value: object, format_spec: str) -> str:
        if isinstance(value, Message):
            return text(value, _language_of(self))
        writer = units.WRITERS.get(format_spec)
        if writer is not None and isinstance(value, (int, float)):
            return writer(float(value))
        return str(super().format_field(value, format_spec))

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language


def _language_of(formatter: _UnitFormatter) -> str:
    return formatter.language


@cache
def area(name: str, language: str) -> Mapping[str, str]:
    """The messages of one area in one language, name to template; none of an area that there is not."""
    if name not in _areas(language):
        return {}
    return tomllib.loads(_folder(language).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def _areas(language: str) -> tuple[str, ...]:
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _folder(language).iterdir() if entry.name.endswith(".toml")))


def _folder(language: str) -> Traversable:
    return resources.files("breakeven").joinpath("locale", language)


def template_of(key: str, language: str) -> str:
    """The words of a key as its area has them: only the areas that something is said of are read."""
    of, _, name = key.partition(".")
    found = area(of, language).get(name)
    if found is None:
        raise KeyError(key)
    return found


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """All messages of one language, ``area.name`` to template."""
    return {f"{each}.{name}": words for each in _areas(language) for name, words in area(each, language).items()}


def printable(words: str, keep: str = "") -> str:
    r"""Words without control characters: what a terminal would obey is written out, but for the characters kept.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return "".join(_escaped(sign) if unicodedata.category(sign) in UNPRINTABLE and sign not in keep else sign for sign in words)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


def text(message: Message, language: str = "en") -> str:
    """The sentence in the language asked for."""
    said = _UnitFormatter(language).vformat(template_of(message.key, language), (), dict(message.values))
    return HAN_GAP.sub("", said) if language == "zh" else said


def say(key: str, language: str = "en", **values: object) -> str:
    """The sentence of a key, at once."""
    return text(Message(key, values), language)
