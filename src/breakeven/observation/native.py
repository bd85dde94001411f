"""Native histograms of Prometheus, whose buckets come as they are filled, to the sum, the count and cumulative buckets of classic ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

import numpy as np

from breakeven.observation.prometheus import Native
from breakeven.observation.stored import Stored
from breakeven.stats import Array


def parts(labels: Mapping[str, str], some: Sequence[tuple[float, Native]]) -> Iterator[Stored]:
    """What a histogram's series would be if its buckets had been fixed.

    An empty bucket is not sent, and the resolution is halved where there are too many: only bounds that no bucket of any moment spans
    are kept, so that each count up to a bound is exact.
    """
    times = np.array([time for time, _ in some])
    counts = np.array([float(one.count) for _, one in some])
    yield Stored(labels=labels, times=times, values=counts, part="count")
    yield Stored(labels=labels, times=times, values=np.array([float(one.sum) for _, one in some]), part="sum")
    rows = [np.array([[float(low), float(high), float(held)] for _, low, high, held in one.buckets]).reshape(-1, 3) for _, one in some]
    bounds = np.unique(np.concatenate([row[:, 1] for row in rows]))
    for bound in bounds[np.isfinite(bounds)]:
        if not any(bool(np.any((row[:, 0] < bound) & (bound < row[:, 1]))) for row in rows):
            yield Stored(labels=labels, times=times, values=_up_to(rows, float(bound)), part="bucket", le=float(bound))
    yield Stored(labels=labels, times=times, values=counts, part="bucket", le=inf)


def _up_to(rows: Sequence[Array], bound: float) -> Array:
    return np.array([row[row[:, 1] <= bound, 2].sum() for row in rows])
