"""Readings as they come, kept as series; what happened to the servers meanwhile is told beside them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Literal

from breakeven.adapter import QUANTITIES, Alias
from breakeven.errors import BreakevenError
from breakeven.messages import Message
from breakeven.observation import increases, kinds
from breakeven.observation.course import Course
from breakeven.observation.page import Key, Page, Reading
from breakeven.observation.partial import SeriesKey, comparable
from breakeven.observation.scrape import Missed, Read, is_busy
from breakeven.observation.timeline import Series, Timeline

Change = Literal["", "fell", "returned"]
LEAP = 0.5
"""Share of a fall that is made good from one reading to the next, from which it is no climb."""
RISING = frozenset(quantity for quantity, kind in QUANTITIES.items() if kind in ("counter", "histogram"))
"""What falls only where a server began anew."""
ANOTHER = "error.page_other_engine"
"""A page that is not of the engine that was asked for: no waiting makes it one."""


@dataclass(kw_only=True)
class _Points:
    """A series that grows."""

    alias: Alias
    labels: Mapping[str, str]
    times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    stood: float = 0.0
    low: float = 0.0
    """Of a count that fell: where it stood before it did, and after; 0 again once it stands there again."""

    def change(self, quantity: str, value: float) -> Change:
        """What a further value does to a count. One that begins anew climbs; only another server's stands high again at once."""
        last = self.values[-1]
        if increases.fell(quantity, last, value):
            self.stood, self.low = max(last, self.stood), value
            return "fell"
        if last < self.stood <= value:
            leap = value - last >= LEAP * (self.stood - self.low)
            self.stood = 0.0
            return "returned" if leap else ""
        return ""


class Record:
    """All that was read so far."""

    def __init__(self, *, every_s: float) -> None:
        self.every_s = every_s
        self.readings = 0
        self.engine = ""
        self._first: dict[str, Page] = {}
        self._points: dict[SeriesKey, _Points] = {}
        self._courses: dict[str, Course] = {}
        self._times: array[float] = array("d")
        self._notes: dict[object, Message] = {}
        self._unsure: set[tuple[str, Key]] = set()

    def add(self, one: Read | Missed) -> None:
        """Take in a reading, or that one is missing.

        A server that is of another kind than the others is refused; one that becomes so on the way is lost from then on, which is said.
        """
        if isinstance(one, Read) and (other := kinds.other(one.source, one.page, self._first)) is not None:
            if one.source not in self._courses:
                raise other
            one = Missed(source=one.source, at_s=one.at_s, error=other)
        if isinstance(one, Missed) and one.error.message.key == ANOTHER and one.source not in self._courses:
            raise one.error
        course = self._courses.setdefault(one.source, Course(one.source, self.every_s, one.at_s))
        if isinstance(one, Missed):
            course.missing(one)
            return
        kept = [self._keep(one, reading) for reading in one.page.readings]
        course.read(one, fell=kept.count("fell"), returned=kept.count("returned"))
        self.engine = self.engine or one.page.engine
        self._first.setdefault(one.source, one.page)
        self.readings += 1
        self._unsure.update((one.source, key) for key in one.page.unsure)
        self._times.append(one.at_s)
        for note in one.page.notes:
            self.note(note)

    def note(self, message: Message) -> None:
        """What is to be said of the observation, once for each server."""
        self._notes[message.key, message.values.get("target"), message.values.get("quantities")] = message

    def failed_first(self, servers: int) -> BreakevenError | None:
        """Why the first server did not answer, once each of so many was asked, and none has or is only busy."""
        if self.readings or len(self._courses) < servers or self._busy() is not None:
            return None
        return next((course.failure for course in self._courses.values()), None)

    def unanswered(self, waited_s: float) -> BreakevenError:
        """Why there is nothing after so long: the server that was there all the time gave no page."""
        course = self._busy() or next(iter(self._courses.values()))
        return course.unanswered(waited_s)

    def _busy(self) -> Course | None:
        return next((course for course in self._courses.values() if course.failure is not None and is_busy(course.failure)), None)

    def timeline(self, last_s: float | None = None) -> Timeline:
        """The series so far, or their last seconds."""
        since_s = -inf if last_s is None else max(self._times, default=0.0) - last_s
        times = [at_s for at_s in self._times if at_s >= since_s]
        told = [note for course in self._courses.values() for note in course.told()]
        kept, partial = comparable({key: len(points.times) for key, points in self._points.items()})
        series = (_series(key, self._points[key], since_s) for key in kept)
        return Timeline(
            engine=self.engine,
            series=tuple(one for one in series if len(one.times)),
            start_s=min(times),
            end_s=max(times),
            readings=len(times),
            every_s=self.every_s,
            missed=sum(course.missed for course in self._courses.values()),
            notes=(*self._notes.values(), *kinds.several_models(self._first.values()), *kinds.one_process(self._first), *told, *partial),
            unsure=frozenset(self._unsure),
        )

    def _keep(self, read: Read, reading: Reading) -> Change:
        """Keep a value; whether it is a count that has fallen, or is at once back where it fell from."""
        if not isfinite(reading.value):
            return ""
        key = _key(read.source, reading)
        points = self._points.setdefault(key, _Points(alias=reading.alias, labels=reading.labels))
        points.labels = reading.labels
        change = points.change(reading.quantity, reading.value) if points.values and reading.quantity in RISING else ""
        points.times.append(read.at_s)
        points.values.append(reading.value)
        return change


def _key(source: str, reading: Reading) -> SeriesKey:
    return SeriesKey(
        source=source,
        quantity=reading.quantity,
        rank=reading.rank,
        split=reading.split,
        part=reading.part,
        le=reading.le,
        family=reading.alias.family,
        lacking=reading.lacking,
    )


def _series(key: SeriesKey, points: _Points, since_s: float) -> Series:
    from numpy import array as copied

    at = bisect_left(points.times, since_s)
    return Series(
        quantity=key.quantity,
        source=key.source,
        rank=key.rank,
        split=key.split,
        part=key.part,
        le=key.le,
        alias=points.alias,
        times=copied(points.times[at:]),
        values=copied(points.values[at:]),
        labels=points.labels,
    )
