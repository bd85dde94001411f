"""A compiled loop does not look at signals: done beside the main thread, an interrupt is answered at once and not when it ends."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class _Carried:
    """Takes an error out of a thread, to be raised where the thread was started."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        """Nothing yet."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        self.error = error
        return True


def interruptible(work: Callable[[], Answer]) -> Answer:
    """What the work gives. Only the main thread of a first process hears interrupts; elsewhere the work is done where it stands."""
    if threading.current_thread() is not threading.main_thread() or multiprocessing.parent_process() is not None:
        return work()
    found: list[Any] = []
    carried = _Carried()

    def beside() -> None:
        with carried:
            found.append(work())

    thread = threading.Thread(target=beside, daemon=True)
    thread.start()
    thread.join()
    if carried.error is not None:
        raise carried.error
    answer: Answer = found[0]
    return answer
