"""Lists of modules as configurations write them: plain names or parts of them, wildcards, and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate

from breakeven.errors import InputError
from breakeven.origin.config_fields import Fields
from breakeven.origin.values import shown

_PREFIXES = re.compile(r"^(?:(?:model|language_model|transformer|backbone|text_model|thinker)\.)+")
_CONTAINERS = re.compile(r"^(?:h|blocks|decoder\.layers|encoder\.layers)\.")
_OUTER = ("model.", "", "language_model.model.", "model.language_model.")
"""What may stand before a module's name where a regular expression is written for the whole of it."""
_NESTED_REPEAT = re.compile(r"[*+}]\??\)[*+{]|\([^()]*\([^()]*[*+][^()]*\)[^()]*\)[*+{]")
"""A repeated group that repeats within: such an expression can take forever on a name it does not match."""
LONGEST = 1000


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """Modules that a list means."""

    plain: frozenset[str]
    globs: tuple[re.Pattern[str], ...]
    expressions: tuple[re.Pattern[str], ...]

    def mean(self, names: Iterable[str]) -> bool:
        """Whether a module of one of these names is meant."""
        return any(self._means(name) for name in names)

    def _means(self, name: str) -> bool:
        if self.plain and any(run in self.plain for run in _runs(name)):
            return True
        if any(glob.match(name) or glob.match(f"{name}.") for glob in self.globs):
            return True
        return any(expression.match(f"{outer}{name}") for expression in self.expressions for outer in _OUTER)


def patterns(written: Sequence[str], fields: Fields) -> Patterns:
    """A list of names, wildcards and ``re:`` expressions."""
    names = [_CONTAINERS.sub("layers.", _PREFIXES.sub("", name.rstrip("."))) for name in written if not name.startswith("re:")]
    wild = [name for name in names if any(mark in name for mark in "*?[")]
    return Patterns(
        plain=frozenset(names) - set(wild),
        globs=tuple(re.compile(translate(form)) for name in wild for form in (name, f"{name}.*")),
        expressions=tuple(_expression(name, fields) for name in written if name.startswith("re:")),
    )


def _runs(name: str) -> Iterable[str]:
    """All runs of the dotted parts of a name."""
    parts = name.split(".")
    return (".".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 1, len(parts) + 1))


def _expression(pattern: str, fields: Fields) -> re.Pattern[str]:
    if len(pattern) > LONGEST or _NESTED_REPEAT.search(pattern):
        raise InputError("config_bad_pattern", where=fields.where, value=shown(pattern))
    try:
        return re.compile(pattern[3:])
    except (re.error, RecursionError, OverflowError) as fault:
        raise InputError("config_bad_pattern", where=fields.where, value=shown(pattern)) from fault
