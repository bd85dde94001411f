"""Readings of some servers over a while: at most one an interval and server, through failures and restarts, until Ctrl-C at the latest."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import floor
from queue import SimpleQueue
from threading import Event, Thread, current_thread, main_thread
from time import monotonic
from types import FrameType

from breakeven.errors import BreakevenError
from breakeven.messages import Message
from breakeven.observation import page as pages
from breakeven.observation.page import Page
from breakeven.observation.record import Record
from breakeven.observation.scrape import Missed, Read, Target, first, now_s, scrape
from breakeven.observation.timeline import Timeline

TWICE_S = 0.5
"""Within it a second Ctrl-C is the first one again: `timeout` sends its signal to the program, and then to all of its group."""
LEAVE_S = 0.5
"""How long a reading that is still out is waited for once the user has ended it."""
Heard = Callable[[Read | Missed, Record], None]


@dataclass(frozen=True)
class _Ended:
    """A server is read no more."""

    fault: BaseException | None = None


class _Interrupted:
    """The user has ended it."""


Told = Read | Missed | _Ended | _Interrupted


def observe(targets: Sequence[Target], *, for_s: float, every_s: float, heard: Heard | None = None) -> Timeline:
    """What some servers told over a while; ``heard`` is called after each reading, with all there is so far."""
    record = Record(every_s=every_s)
    told: SimpleQueue[Told] = SimpleQueue()
    stop = Event()
    threads = [Thread(target=_follow, args=(target, for_s, every_s, told, stop), daemon=True) for target in targets]
    try:
        with _ends_on_interrupt(told, stop):
            for thread in threads:
                thread.start()
            _collect(told, record, len(targets), heard)
    finally:
        stop.set()
    for thread in threads:
        thread.join(LEAVE_S)
    return record.timeline()


def _collect(told: SimpleQueue[Told], record: Record, following: int, heard: Heard | None) -> None:
    """Take what is told until all servers were read to the end, all failed at first, or the user has ended it."""
    servers = following
    while following:
        one = told.get()
        if isinstance(one, _Interrupted):
            if not record.readings:
                raise KeyboardInterrupt
            record.note(Message("observe.note_interrupted"))
            return
        if isinstance(one, _Ended):
            if one.fault is not None:
                raise one.fault
            following -= 1
            continue
        record.add(one)
        if (failed := record.failed_first(servers)) is not None:
            raise failed
        if heard is not None:
            heard(one, record)


def _follow(target: Target, for_s: float, every_s: float, told: SimpleQueue[Told], stop: Event) -> None:
    """Read one server on a schedule that does not catch up: a moment that has passed is left out."""
    began, tick = monotonic(), 0
    known: Target | None = None
    before: Page | None = None
    try:
        while tick * every_s <= for_s and not stop.wait(max(0.0, began + tick * every_s - monotonic())):
            try:
                if known is None:
                    known, read = first(target)
                else:
                    read = scrape(known)
            except BreakevenError as error:
                told.put(Missed(source=target.source, at_s=now_s(), error=error))
            else:
                before = pages.added(before, read.page)
                told.put(Read(source=read.source, at_s=read.at_s, page=before))
            tick = max(tick, floor((monotonic() - began) / every_s)) + 1
    finally:
        # A thread that dies by itself would leave a result of what was read until then.
        told.put(_Ended(sys.exception()))


@contextmanager
def _ends_on_interrupt(told: SimpleQueue[Told], stop: Event) -> Iterator[None]:
    """Within it, Ctrl-C ends the reading and keeps what was read; a second one ends the program."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
    first_s: list[float] = []

    def end(number: int, frame: FrameType | None) -> None:
        if first_s and monotonic() - first_s[0] > TWICE_S:
            raise KeyboardInterrupt
        if not first_s:
            first_s.append(monotonic())
            stop.set()
            told.put(_Interrupted())

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
