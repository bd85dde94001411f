"""The prefix hit rate at which what running sequences leave to prompts and the hits that prompts then have agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from breakeven.stats import Array

HIT_STEPS = 12
HIT_SETTLED = 1e-4
HIT_SLOPES = (-9.0, 0.9)
"""Of the hit rate found over the one assumed, as a step takes it: a tenth of the way at least, ten times it at most."""


def settled(found_at: Callable[[Array], Array], start: Array) -> Array:
    """h = found(h), by secants. Unit: 1.

    >>> round(float(settled(lambda hits: 0.8 - 0.5 * hits, np.zeros(()))), 3)
    0.533
    """
    hits, last, off, slope = start, None, np.zeros_like(start), np.zeros_like(start)
    for _ in range(HIT_STEPS):
        found = found_at(hits) - hits
        if last is not None:
            moved = hits - last
            slope = np.clip(np.where(moved == 0.0, slope, 1.0 + (found - off) / np.where(moved == 0.0, 1.0, moved)), *HIT_SLOPES)
        last, off = hits, found
        hits = np.clip(hits + np.where(np.abs(found) < HIT_SETTLED, 0.0, found / (1.0 - slope)), 0.0, 1.0)
        if np.all(np.abs(found) < HIT_SETTLED):
            break
    return hits
