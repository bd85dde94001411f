"""Readings as they come, kept as series; what happened to the servers meanwhile is told beside them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from breakeven.adapter import QUANTITIES, Alias
from breakeven.errors import BreakevenError
from breakeven.messages import Message
from breakeven.observation import increases, kinds
from breakeven.observation.course import Course
from breakeven.observation.page import Key, Page, Reading
from breakeven.observation.partial import SeriesKey, comparable
from breakeven.observation.scrape import Missed, Read
from breakeven.observation.timeline import Series, Timeline

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
        course.read(one, fell=[self._keep(one, reading) for reading in one.page.readings].count(True))
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
        """Why the first server did not answer, once each of so many was asked and none has."""
        if self.readings or len(self._courses) < servers:
            return None
        return next((course.failure for course in self._courses.values()), None)

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

    def _keep(self, read: Read, reading: Reading) -> bool:
        """Keep a value; whether it is a count that has fallen."""
        if not isfinite(reading.value):
            return False
        key = _key(read.source, reading)
        points = self._points.setdefault(key, _Points(alias=reading.alias, labels=reading.labels))
        points.labels = reading.labels
        fell = bool(points.values) and reading.quantity in RISING and increases.fell(reading.quantity, points.values[-1], reading.value)
        points.times.append(read.at_s)
        points.values.append(reading.value)
        return fell


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
