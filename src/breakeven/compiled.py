"""Loops that numpy cannot say, compiled by numba. Modules that use it are loaded on use: an import of numba takes a third of a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function compiled at its first call and kept on disk; ``.py_func`` is the interpreted one, and has to give the same.

    Without fastmath: sums in another order would give other bytes. Other threads run beside it.
    """
    return cast(Function, numba.njit(cache=True, nogil=True)(function))


def bare(function: Function) -> Function:
    """The same for a function that makes no arrays of its own (views of those given are fine): who holds which is not counted.

    Counting takes three quarters of the time of small functions that hand thirty arrays on.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, _nrt=False)(function))


def inlined(function: Function) -> Function:
    """The same, written into its callers by the compiler: for functions called at every event, since handing thirty arrays down costs."""
    return cast(Function, numba.njit(cache=True, nogil=True, _nrt=False, forceinline=True)(function))
