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


@contextmanager
def unheard() -> Iterator[None]:
    """Processes that are begun within it hear no Ctrl-C, from their first moment: it is for the one that began them to end them.

    What a process does of its own accord comes too late: it would be interrupted before.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
