"""A call that is given up after a while: a server that sends a byte a second keeps within every timeout of a read."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def within(seconds: float, call: Callable[[], Answer]) -> Answer:
    """What the call gives back or raises; TimeoutError where it has not ended in time (it is left behind).

    >>> within(1.0, lambda: 2 + 2)
    4
    """
    answers: list[Answer] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as fault:  # noqa: BLE001 - carried over to the caller, whatever it is
            faults.append(fault)

    # A daemon: the program must be able to end while the call still waits.
    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if faults:
        raise faults[0]
    if not answers:
        raise TimeoutError
    return answers[0]
