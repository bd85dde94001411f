"""Loops that numpy cannot say, compiled by numba. Modules that use it are loaded on use: an import of numba takes a third of a second."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
_MADE: list[Any] = []
UNCOUNTED: Any = {"cache": True, "nogil": True, "_nrt": False}
"""Without numba's run-time for arrays of its own; the underscore is numba's, whose version is pinned."""


def compiled(function: Function) -> Function:
    """The function compiled at its first call and kept on disk; ``.py_func`` is the interpreted one, and has to give the same.

    Without fastmath: sums in another order would give other bytes. Other threads run beside it.
    """
    return _kept(function, {"cache": True, "nogil": True})


def bare(function: Function) -> Function:
    """The same for a function that makes no arrays of its own (views of those given are fine): who holds which is not counted.

    Counting takes three quarters of the time of small functions that hand thirty arrays on.
    """
    return _kept(function, UNCOUNTED)


def inlined(function: Function) -> Function:
    """The same, written into its callers by the compiler: for functions called at every event, since handing thirty arrays down costs."""
    return _kept(function, UNCOUNTED | {"forceinline": True})


def is_compiling() -> bool:
    """Whether any of them was not found on disk, and is or was compiled by this process."""
    return any(sum(one.stats.cache_misses.values()) for one in _MADE)


def _forgiving(made: Any) -> None:
    """A full disk costs the next run another compilation, and not this one its answer."""
    kept: Any = getattr(made, "_cache", None)
    if not hasattr(kept, "save_overload"):
        return
    save = kept.save_overload

    def tried(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    kept.save_overload = tried


def _kept(function: Function, options: Any) -> Function:
    """Kept on disk beside the file or in the user's cache; where neither can be written to, every process compiles anew."""
    try:
        made = numba.njit(**options)(function)
    except RuntimeError:
        made = numba.njit(**options | {"cache": False})(function)
    _forgiving(made)
    _MADE.append(made)
    return cast(Function, made)
