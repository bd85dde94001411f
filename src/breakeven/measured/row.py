"""One line of a file of measurements, with its place; unknown columns are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from breakeven.messages import Message


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line as it is written."""

    where: str
    """File and line, as an editor opens it: ``runs.csv:12``."""
    id: str
    fields: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A row that is not answered, and why."""

    id: str
    where: str
    reason: Message
    fields: Mapping[str, str]


class NotUnderstood(Exception):
    """A field that a prediction needs is missing, unknown or impossible; carries the message."""

    def __init__(self, message: Message) -> None:
        self.message = message
        super().__init__(message.key)
