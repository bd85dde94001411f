"""Readings of some servers over a while: at most one an interval and server, through failures and restarts, until Ctrl-C at the latest."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic

from breakeven import interruption
from breakeven.errors import BreakevenError
from breakeven.messages import Message
from breakeven.observation import page as pages
from breakeven.observation.page import Page
from breakeven.observation.record import Record
from breakeven.observation.schedule import Schedule
from breakeven.observation.scrape import Missed, Read, Target, first, is_busy, now_s, patient, scrape
from breakeven.observation.timeline import Timeline

TWICE_S = 0.5
"""Within it a second Ctrl-C is the first one again: `timeout` sends its signal to the program, and then to all of its group."""
LEAVE_S = 0.5
"""How long a reading that is still out is waited for once the user has ended it."""
PATIENCE_S = 30.0
"""So long at least a server is tried that takes connections and gives no page: the window may be shorter than one answer of a busy one."""
INTERRUPTED, TERMINATED = "observe.note_interrupted", "observe.note_terminated"
"""What is noted of an observation that was ended early."""
Heard = Callable[[Read | Missed, Record], None]


@dataclass(frozen=True)
class _Ended:
    """A server is read no more."""

    fault: BaseException | None = None


@dataclass(frozen=True)
class _Interrupted:
    """The user, or who runs the program, has ended it."""

    number: int


Told = Read | Missed | _Ended | _Interrupted


def observe(
    targets: Sequence[Target], *, for_s: float, every_s: float, heard: Heard | None = None, patience_s: float = PATIENCE_S
) -> Timeline:
    """What some servers told over a while; ``heard`` is called after each reading, with all there is so far.

    The while begins with the first page. Servers that are there but too busy to give one are tried for as long, ``patience_s`` at least.
    """
    record, schedule = Record(every_s=every_s), Schedule(for_s=for_s, every_s=every_s, patience_s=patience_s)
    told: SimpleQueue[Told] = SimpleQueue()
    stop = Event()
    threads = [Thread(target=_follow, args=(target, schedule, told, stop), daemon=True) for target in targets]
    try:
        with _ends_on_interrupt(told, stop):
            for thread in threads:
                thread.start()
            _collect(told, record, len(targets), heard)
    finally:
        stop.set()
    for thread in threads:
        thread.join(LEAVE_S)
    if not record.readings:
        raise record.unanswered(monotonic() - schedule.asked_since)
    return record.timeline()


def _collect(told: SimpleQueue[Told], record: Record, following: int, heard: Heard | None) -> None:
    """Take what is told until all servers were read to the end, all failed at first, or the user has ended it."""
    servers = following
    while following:
        one = told.get()
        if isinstance(one, _Interrupted):
            if not record.readings:
                raise KeyboardInterrupt
            record.note(Message(TERMINATED if one.number == signal.SIGTERM else INTERRUPTED))
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


def _follow(target: Target, schedule: Schedule, told: SimpleQueue[Told], stop: Event) -> None:
    """Read one server at its moments; one that is only busy is given more time at the next."""
    found = False
    before: Page | None = None
    try:
        for _ in schedule.moments(stop):
            try:
                target, read = (target, scrape(target)) if found else first(target)
            except BreakevenError as error:
                told.put(Missed(source=target.source, at_s=now_s(), error=error))
                if is_busy(error):
                    target = patient(target, schedule.left_s())
            else:
                found = True
                schedule.answered()
                before = pages.added(before, read.page)
                told.put(Read(source=read.source, at_s=read.at_s, page=before))
    finally:
        # A thread that dies by itself would leave a result of what was read until then.
        told.put(_Ended(sys.exception()))


def _ends_on_interrupt(told: SimpleQueue[Told], stop: Event) -> AbstractContextManager[None]:
    """Within it, Ctrl-C or SIGTERM ends the reading and keeps what was read; a second one ends the program."""
    first_s: list[float] = []

    def end(number: int) -> None:
        if first_s and monotonic() - first_s[0] > TWICE_S:
            raise KeyboardInterrupt
        if not first_s:
            first_s.append(monotonic())
            stop.set()
            told.put(_Interrupted(number))

    return interruption.calls(end)
