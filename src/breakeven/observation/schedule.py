"""When servers are read: on a grid of moments over a window, which begins with the first page that comes."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from threading import Event, Lock
from time import monotonic


class Schedule:
    """The moments of one observation, for all its servers."""

    def __init__(self, *, for_s: float, every_s: float, patience_s: float) -> None:
        self._for_s, self._every_s = for_s, every_s
        self._lock = Lock()
        self._answered = False
        self.asked_since = monotonic()
        # One object, so that other threads see a beginning and the length that goes with it.
        self._window = self.asked_since, max(for_s, patience_s)

    def answered(self) -> None:
        """A page came. The first one of any server begins the window, however long it was waited for."""
        with self._lock:
            if not self._answered:
                self._answered, self._window = True, (monotonic(), self._for_s)

    def left_s(self) -> float:
        """Seconds until the window is over."""
        began, length_s = self._window
        return began + length_s - monotonic()

    def moments(self, stop: Event) -> Iterator[None]:
        """One server's, each waited for. It does not catch up: a moment that has passed meanwhile is left out."""
        (began, length_s), tick = self._window, 0
        while tick * self._every_s <= length_s and not stop.wait(max(0.0, began + tick * self._every_s - monotonic())):
            yield
            if self._window[0] != began:
                (began, length_s), tick = self._window, 0
            tick = max(tick, floor((monotonic() - began) / self._every_s)) + 1
