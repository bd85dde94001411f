"""What an engine tells of itself when its first page comes: by the end of a window it may be gone."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread

from breakeven.observation.record import Record
from breakeven.observation.scrape import Missed, Read, Target
from breakeven.observation.told import Answers, answers_of
from breakeven.observation.window import Heard

OF_DEVICES = "device_"
"""How the quantities of an exporter of devices begin: it is no engine."""


class Opening:
    """The first engine that was read, asked once beside the readings, which go on meanwhile."""

    def __init__(self, targets: Sequence[Target], heard: Heard | None = None) -> None:
        self.target: Target | None = None
        self._targets = {one.source: one for one in targets}
        self._heard = heard
        self._answers: Answers | None = None
        self._thread: Thread | None = None

    def heard(self, one: Read | Missed, record: Record) -> None:
        """Ask at the first page of an engine, and pass the reading on."""
        if self.target is None and isinstance(one, Read) and _is_of_engine(one):
            self.target = self._targets[one.source]
            self._thread = Thread(target=self._ask, args=(self.target, record.engine), daemon=True)
            self._thread.start()
        if self._heard is not None:
            self._heard(one, record)

    def answers(self) -> Answers | None:
        """What it answered, once it has; None where no engine was read."""
        if self._thread is not None:
            self._thread.join()
        return self._answers

    def _ask(self, target: Target, engine: str) -> None:
        self._answers = answers_of(target.places[0], engine)


def _is_of_engine(one: Read) -> bool:
    return any(not reading.quantity.startswith(OF_DEVICES) for reading in one.page.readings)
