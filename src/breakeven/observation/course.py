"""What happened to one server while it was read: restarts, and readings that did not come back."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.errors import BreakevenError, UnreachableError
from breakeven.messages import Message
from breakeven.observation.scrape import Missed, Read

TOLD_RESTARTS = 5
"""So many restarts are told one by one; of more it is told how many."""


LEAPS = 2
"""So many times a server does not climb back to where it stood, however it fails."""


class Course:
    """The course of one server."""

    def __init__(self, source: str, every_s: float, began_s: float) -> None:
        self.missed = 0
        self.failure: BreakevenError | None = None
        """Why the last reading that is missing did not come back."""
        self._source, self._every_s, self._began_s = source, every_s, began_s
        self._last: Read | None = None
        self._missed_at_s: float | None = None
        """When the last reading did not come back, while none has since."""
        self._silent_s = 0.0
        self._restarts: list[Message] = []
        self._returns = 0
        """How often its process was older than before: then more than one answer behind the address."""
        self._leaps = 0
        """How often most of what had fallen stood again where it had: the same, of engines that do not tell when they began."""

    def missing(self, one: Missed) -> None:
        """A reading did not come back."""
        self.missed += 1
        self.failure = one.error
        self._missed_at_s = one.at_s

    def read(self, one: Read, *, fell: int, returned: int = 0) -> None:
        """A reading came back, in which so many counts were lower than before, and so many back where they had fallen from."""
        last = self._last
        self._leaps += returned > 0
        if self._missed_at_s is not None:
            since_s = self._began_s if last is None else last.at_s + self._every_s
            self._silent_s += max(one.at_s - since_s, 0.0)
        if last is not None:
            self._compare(last, one, fell)
        self._last, self._missed_at_s = one, None

    def _compare(self, last: Read, one: Read, fell: int) -> None:
        before, after = last.page.started_s, one.page.started_s
        known = before is not None and after is not None
        if before is not None and after is not None and after < before:
            self._returns += 1
        if fell or (known and before != after):
            values = {"target": self._source, "at": one.at_s - self._began_s, "gap": one.at_s - last.at_s, "fell": fell}
            self._restarts.append(Message("observe.note_restart" if fell else "observe.note_restart_unseen", values))

    def unanswered(self, waited_s: float) -> BreakevenError:
        """Why there is nothing of it after so long."""
        target = "" if self.failure is None else self.failure.message.values["target"]
        return UnreachableError("observe_busy", target=target, tries=self.missed, seconds=waited_s)

    def told(self) -> Iterator[Message]:
        """All that is to be said of it."""
        if self._returns or self._leaps >= LEAPS:
            yield Message("observe.note_alternates", {"target": self._source, "times": len(self._restarts)})
        elif len(self._restarts) > TOLD_RESTARTS:
            yield Message("observe.note_restarts", {"target": self._source, "times": len(self._restarts)})
        else:
            yield from self._restarts
        if self.failure is not None:
            yield self._lost()
            yield self.failure.message

    def _lost(self) -> Message:
        values: dict[str, object] = {"target": self._source, "missed": self.missed}
        if self._last is None:
            return Message("observe.note_never", values)
        if self._missed_at_s is None:
            return Message("observe.note_missed", {**values, "silent": self._silent_s})
        silent_s = self._silent_s + self._missed_at_s - self._last.at_s
        return Message("observe.note_died", {**values, "silent": silent_s, "at": self._last.at_s - self._began_s})
