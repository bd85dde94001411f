"""A call that is given up after a while: a server that sends a byte a second keeps within every timeout of a read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def within(seconds: float, call: Callable[[], Answer]) -> Answer:
    """What the call gives back or raises; TimeoutError where it has not ended in time (it is left behind).

    >>> within(1.0, lambda: 2 + 2)
    4
    """
    import multiprocessing
    from multiprocessing.pool import ThreadPool

    # Its threads are daemons: the program can end while the call still waits.
    pool = ThreadPool(1)
    pending = pool.apply_async(call)
    pool.close()
    try:
        return pending.get(seconds)
    except multiprocessing.TimeoutError:
        raise TimeoutError from None
