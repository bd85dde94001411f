"""Which model a phrase names: the catalogue's name without publisher, tuning and format."""

from __future__ import annotations

import re
from pathlib import Path

from breakeven import catalog
from breakeven.catalog_files import users_file
from breakeven.measured.words._names import Found, candidates, fullest, names, words_of
from breakeven.measured.words._spelling import REMARK, SEVERAL, refused, stated, table
from breakeven.spec.model import Model

PUBLISHER = re.compile(r"^[\w.-]+/(?=[\w.-]+)")

NAMED = 6
"""Entries that are named where several fit."""


def model(text: str, dirs: tuple[Path, ...] = ()) -> Model:
    """The catalogue's model of a name, an id, or a name with how it was tuned and stored (``-Instruct``, ``-FP8``, ``-AWQ``).

    An entry of the user's folders (``dirs``) is named whole.
    """
    phrase = stated(text, "model")
    if users_file("models", catalog.normalised(phrase), dirs) is not None:
        return catalog.load("models", phrase, dirs)
    if SEVERAL.search(phrase):
        raise refused("two_named", field="model", text=phrase)
    words = words_of(_respelled(PUBLISHER.sub("", phrase)))
    found = fullest(candidates("models", words), lambda one: _explained(one, phrase))
    if not found:
        found = tuple(name for name in _holding(words))
    if not found:
        raise refused("model_unknown", field="model", text=phrase)
    if len(found) > 1:
        raise refused("several_fit", field="model", text=phrase, names=", ".join(found[:NAMED]))
    return catalog.load("models", found[0])


def _holding(words: tuple[str, ...]) -> tuple[str, ...]:
    """Entries whose name holds all these words and more: GPT-J is gpt-j-6b, and a Llama of 70B is one of several."""
    bare = set(words) - set(table("models")["said_of_it"])
    return tuple(sorted({entry for name, entry in names("models") if bare <= set(name)})) if len(bare) > 1 else ()


def _respelled(phrase: str) -> str:
    for pattern, written in table("models")["respelled"].items():
        phrase = re.sub(pattern, written, phrase, flags=re.IGNORECASE)
    return phrase


def _explained(found: Found, phrase: str) -> bool:
    """Whether the other words say how it was tuned, stored or what was done with it, and not which model it is."""
    remarked = {word for remark in REMARK.findall(phrase) for word in words_of(remark)}
    return set(found.left) <= set(table("models")["said_of_it"]) | remarked
