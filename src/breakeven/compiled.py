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
    """The same for functions that make no arrays of their own (views of those given are fine), without counting who holds which.

    Handing a state of thirty arrays down a dozen calls is then free: counted, it takes three quarters of the time.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, _nrt=False)(function))
