"""Names of the catalogue found within a phrase: as sets of words, the fullest name that leaves nothing unexplained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from breakeven.catalog_files import index, our_names

Kind = Literal["hardware", "models"]
GAPS = re.compile(r"[\s\-_/,;:()\[\]]+")
WORD_AND_NUMBER = re.compile(r"^(?!nvfp|mxfp|int\d)([a-z]{3,})(\d.*)$")
"""Names that run into their number; formats (``nvfp4``, ``int4``) are one word."""
VERSION = re.compile(r"^v(\d.*)$")


def words_of(text: str) -> tuple[str, ...]:
    """The words of a name: ``Llama3.1-8B`` is llama, 3.1, 8b.

    >>> words_of("LLaMA v3.1 8B"), words_of("rtx4090")
    (('llama', '3.1', '8b'), ('rtx', '4090'))
    """
    return tuple(_split(word) for whole in GAPS.split(text.lower()) if whole for word in _parts(whole))


def _parts(word: str) -> tuple[str, ...]:
    found = WORD_AND_NUMBER.match(word)
    return (found[1], found[2]) if found else (word,)


def _split(word: str) -> str:
    found = VERSION.match(word)
    return found[1] if found else word


@dataclass(frozen=True, kw_only=True)
class Found:
    """An entry whose name stands in a phrase, and the words of the phrase that are not its name's."""

    entry: str
    name: tuple[str, ...]
    left: tuple[str, ...]


@cache
def names(kind: Kind) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Every name of every entry as words, without the publisher, with the entry's own."""
    own = [(name, name) for name in our_names(kind)]
    others = [(alias.rsplit("/", 1)[-1], entry) for alias, entry in index().get(kind, {}).items()]
    return tuple(sorted({(words_of(name), entry) for name, entry in (*own, *others)}))


@cache
def own_words(kind: Kind, entry: str) -> frozenset[str]:
    """Words of all names of an entry: GB10 and DGX Spark are one device."""
    return frozenset(word for name, its in names(kind) if its == entry for word in name)


def candidates(kind: Kind, words: Iterable[str]) -> Iterator[Found]:
    """Entries all of whose name's words are among these."""
    given = tuple(words)
    for name, entry in names(kind):
        left = list(given)
        for word in name:
            if word not in left:
                break
            left.remove(word)
        else:
            yield Found(entry=entry, name=name, left=tuple(left))


def fullest(found: Iterable[Found], explained: Callable[[Found], bool]) -> tuple[str, ...]:
    """Entries of the names with most words among those that leave nothing unexplained; one, if the phrase is clear."""
    sound = [each for each in found if explained(each)]
    most = max((len(each.name) for each in sound), default=0)
    return tuple(sorted({each.entry for each in sound if len(each.name) == most}))
