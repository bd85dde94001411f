"""One tree of errors. Each is one line for the user (what, where, what to do) and an exit code.

Outcomes of the model (does not fit, hurts, undecided, not supported) are results and never raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from breakeven.messages import Message, text


class BreakevenError(Exception):
    """Something the user can mend: ``key`` names the sentence in ``locale/*/error.toml``."""

    exit_code = 2

    def __init__(self, key: str, **values: object) -> None:
        self.message = Message(f"error.{key}", values)
        super().__init__(key)

    def __str__(self) -> str:
        return text(self.message)


class InputError(BreakevenError):
    """A value, a key, a file or a combination of them that cannot be used as given."""


class UnknownNameError(InputError):
    """A name that is not in the catalogue, with the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        near = get_close_matches(name.lower(), list(known), n=3, cutoff=0.5)
        key = "unknown_name_near" if near else "unknown_name"
        super().__init__(key, kind=Message(f"error.kind_{kind}"), name=name, near=", ".join(near))


class NotModelledError(InputError):
    """A kind of model that is named and refused, never guessed."""


class UnreachableError(BreakevenError):
    """A server that does not answer."""

    exit_code = 3
