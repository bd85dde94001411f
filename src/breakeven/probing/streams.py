"""Loops over memory that one thread runs: a read, and a triad. Loaded on use: they are compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import bare

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@bare
def read(values: Integers) -> int:
    """The sum of whole numbers, whose order does not matter: the compiler may take many at once, and memory is what it waits for."""
    total = 0
    for value in values:
        total += value
    return total


@bare
def triad(a: Floats, b: Floats, c: Floats, s: float) -> None:
    """a = b + s·c."""
    for i in range(len(a)):
        a[i] = b[i] + s * c[i]
