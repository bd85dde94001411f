"""Ctrl-C and SIGTERM, which end the program in one way; its exit code tells which of them did. Its own processes are ended by it alone."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import _exit, getpid
from threading import current_thread, main_thread
from types import FrameType

_received: list[int] = []
"""Signals that were to end the program, in order; of Ctrl-C only those that were not left to Python."""
_program: list[int] = []
"""The process that is the program."""


def exit_code() -> int:
    """128 and the number of the signal, as shells have it: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (_received[-1] if _received else signal.SIGINT)


def named() -> str:
    """What ended the program, as users know it."""
    return "SIGTERM" if exit_code() == 128 + signal.SIGTERM else "Ctrl-C"


def _terminate(number: int, frame: FrameType | None) -> None:
    """SIGTERM where nothing else is made of it; a process that was forked off a moment ago just ends."""
    if getpid() != _program[0]:
        _exit(128 + number)
    _received.append(number)
    raise KeyboardInterrupt


@contextmanager
def terminable() -> Iterator[None]:
    """Within it, SIGTERM ends the program as Ctrl-C does, with all that is to be closed or kept. For the program alone.

    Where this is used as a library, SIGTERM belongs to the program around it.
    """
    if current_thread() is not main_thread():
        yield
        return
    _received.clear()
    _program[:] = [getpid()]
    with _handled({signal.SIGTERM: _terminate}):
        yield


@contextmanager
def calls(end: Callable[[int], None]) -> Iterator[None]:
    """Within it, Ctrl-C calls a function with the signal's number, and so does SIGTERM where it is the program's own."""
    if current_thread() is not main_thread():
        yield
        return

    def received(number: int, frame: FrameType | None) -> None:
        _received.append(number)
        end(number)

    ours = [signal.SIGINT, *([signal.SIGTERM] if signal.getsignal(signal.SIGTERM) is _terminate else [])]
    with _handled(dict.fromkeys(ours, received)):
        yield


ENDING = (signal.SIGINT, signal.SIGTERM)
"""What ends a program from outside."""


@contextmanager
def unheard() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until it is left, and processes that are begun within it hear neither until they :func:`hear`.

    What a process does of its own accord comes too late: it would be interrupted before. And in the one that begins them an interrupt amid
    a fork is lost, or leaves a lock taken or a process behind.
    """
    with _put_off(), _blocked():
        yield


@contextmanager
def _put_off() -> Iterator[None]:
    """Whichever thread takes a signal, Python's main one answers it: afterwards."""
    if current_thread() is not main_thread():
        yield
        return
    came: list[int] = []
    ours = [number for number in ENDING if callable(signal.getsignal(number))]
    try:
        with _handled(dict.fromkeys(ours, lambda number, frame: came.append(number))):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextmanager
def _blocked() -> Iterator[None]:
    """For this thread, and so for what it begins."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear() -> None:
    """In a process that was begun :func:`unheard`: an interrupt is for its parent to answer, and SIGTERM ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


@contextmanager
def _handled(handlers: dict[signal.Signals, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    """Signals handled so for a while."""
    before = {one: signal.getsignal(one) or signal.SIG_DFL for one in handlers}
    for one, handler in handlers.items():
        signal.signal(one, handler)
    try:
        yield
    finally:
        for one, earlier in before.items():
            signal.signal(one, earlier)
