"""Slots with a cache of their own each: a step runs one pass for each stretch of neighbouring slots that are busy.

llama.cpp's server with ``-np N`` and no unified cache (llama.cpp issue 25840): a pass takes sequences whose slots follow one another, so
that busy slots with a gap between them are computed one after the other, and each pass reads the weights again. Which slots are busy is
chance (the least recently used one is taken next), every choice of n of N as likely as any other:

    E[passes] = n·(N − n + 1)/N                                                     n busy of N slots
    E[stretches of length L] = (2·C(N − L − 1, n − L) + (N − L − 1)·C(N − L − 2, n − L))/C(N, n)      L < N; 1 where n = L = N

The second is the first term for the two ends of the row, where one neighbour has to be idle, and the second for all other places, where
two have (Mood 1940, "The distribution theory of runs", for runs of one kind of a random arrangement).
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np

from breakeven.ledger.measured_step import Roofline, Widths, over
from breakeven.stats import Array


def passes(busy: Array | float, slots: int) -> Array | float:
    """E[passes] of a step, n·(N − n + 1)/N; 1 with one slot busy, or all.

    >>> [float(passes(busy, 8)) for busy in (1, 2, 4, 7, 8)]
    [1.0, 1.75, 2.5, 1.75, 1.0]
    """
    n = np.clip(busy, 1.0, float(slots))
    return n * (slots - n + 1.0) / slots


@cache
def stretches(slots: int) -> Array:
    """Mean number of stretches by busy slots (rows, 1 to N) and by length (columns, 1 to N).

    >>> stretches(3).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.667, 0.667, 0.0], [0.0, 0.0, 1.0]]
    """
    return np.array([[_of_length(busy, length, slots) for length in range(1, slots + 1)] for busy in range(1, slots + 1)])


def _of_length(busy: int, length: int, slots: int) -> float:
    """Of the places beside a stretch at an end, one neighbour idle, all choices of the other busy slots; in between, both idle."""
    if length > busy:
        return 0.0
    if length == slots:
        return 1.0
    places, others = slots - length - 1, busy - length
    inner = places * comb(places - 1, others) if places > 0 else 0
    return (2 * comb(places, others) + inner) / comb(slots, busy)


def dealt(one_pass: Widths, slots: int, roofline: Roofline, here: Roofline, rows_each: int) -> Widths:
    """Measured passes as steps of n busy slots: Σ_L E[stretches of length L]·t(L), with ``roofline`` of one pass and ``here`` of a step."""
    lengths = np.arange(1.0, slots + 1.0).reshape(-1, *([1] * (np.ndim(one_pass.step_s) - 1)))
    seconds = np.asarray(over(one_pass, lengths * rows_each, roofline(lengths)))
    step_s = np.tensordot(stretches(slots), seconds, axes=1)
    return Widths(
        rows=tuple(float(busy * rows_each) for busy in range(1, slots + 1)),
        step_s=step_s,
        below=step_s[0] / here(1.0),
        above=step_s[-1] / here(float(slots)),
    )
