"""The same function for many places of one task, over processes: the task is shared, not sent; what comes back is in order."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from breakeven import interruption
from breakeven.errors import BreakevenError

Task = TypeVar("Task")
Answer = TypeVar("Answer")
_SHARED: list[Any] = []
"""The function and the task, in a process that works at them."""


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(
    work: Callable[[Task, int], Answer], task: Task, places: int, jobs: int, progress: Callable[[int, int], None] | None
) -> list[Answer]:
    """``work(task, place)`` for every place, in order; one job, or one place, works here."""
    report = progress or _silent
    report(0, places)
    if min(jobs, places) <= 1:
        found = []
        for place in range(places):
            found.append(work(task, place))
            report(place + 1, places)
        return found
    with _pool(work, task, min(jobs, places)) as pool:
        with interruption.unheard():
            futures = [pool.submit(_answer, place) for place in range(places)]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            report(done, places)
        return [_result(future) for future in futures]


def _result(future: Future[Any]) -> Any:
    return future.result()


def _silent(done: int, places: int) -> None:
    """Nobody listens."""


@contextmanager
def _pool(work: Callable[[Task, int], Answer], task: Task, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are gone when this is left, however it is left."""
    # A fork has the arrays and the compiled kernel already; elsewhere they are sent once a process.
    method = "fork" if sys.platform == "linux" else "spawn"
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context(method), _begin, (work, task))
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads; those of numpy and polars wait, and no worker uses them.
            warnings.simplefilter("ignore", DeprecationWarning)
            yield pool
    except BrokenProcessPool:
        raise BreakevenError("simulate_worker_lost") from None
    finally:
        for child in set(multiprocessing.active_children()) - before:
            child.kill()
            child.join()
        # Its thread is waited for, which is over as soon as its processes are: left alone it closes what the end of the program wakes.
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(work: Callable[..., Any], task: Any) -> None:
    interruption.hear()
    _SHARED[:] = [work, task]


def _answer(place: int) -> Any:
    work, task = _SHARED
    return work(task, place)
