"""What counters rose by: falls are restarts, and what begins to be counted late has risen from nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from breakeven.observation.timeline import Series
from breakeven.stats import Array, Flags

ROUNDING = 1e-9
"""A fall of less than this share is rounding: sums of floats are added up in another order."""
PRINTED = {"busy_sequence_steps": 2e-5}
"""The same of a sum that is made of a mean printed to six digits."""
MOST = 0.5
"""Share of a server's counters that has to fall at once for all of them to have begun anew."""


@dataclass(frozen=True, kw_only=True)
class Rise:
    """A counter over time as what it rose by since the first reading."""

    series: Series
    times: Array
    gained: Array
    """From 0; falls by no more than rounding."""
    resets: int = 0
    late: bool = False
    """Whether it was not on the page yet when the observation began."""

    @property
    def total(self) -> float:
        """What it rose by in all; what fell by rounding alone has not risen."""
        return max(float(self.gained[-1]), 0.0) if self.gained.size else 0.0

    @property
    def since_start(self) -> float:
        """As it stood at the last reading: since the engine started."""
        return float(self.series.values[-1]) if self.series.values.size else 0.0


def increments(values: Array, begun_anew: Flags | None = None, rounding: float = ROUNDING) -> tuple[Array, int]:
    """Increments between neighbours and how many of them begin anew: after a fall the value itself is the increment.

    Δ_i = v_i − v_{i−1}, and v_i where v_i < v_{i−1}: what was counted between the last reading and the restart is lost, nothing else.
    Unit: the counter's. Source: the rule of Prometheus' ``rate`` and ``increase`` (Prometheus documentation, querying functions, 2024).
    ``begun_anew`` marks readings (from the second) known to follow a restart by other counters.

    >>> [part.tolist() if hasattr(part, "tolist") else part for part in increments(np.array([5.0, 8.0, 2.0, 2.0]))]
    [[3.0, 2.0, 0.0], 1]
    """
    change = np.diff(values)
    fell = _falls(values, rounding)
    anew = fell if begun_anew is None else fell | begun_anew
    return np.where(anew, values[1:], change), int(np.count_nonzero(anew))


def _falls(values: Array, rounding: float) -> Flags:
    return np.asarray(np.diff(values) < -rounding * np.abs(values[:-1]))


def _rounding(series: Series) -> float:
    return PRINTED.get(series.quantity, ROUNDING)


def fell(quantity: str, before: float, after: float) -> bool:
    """Whether a counter is lower than before by more than rounding.

    >>> fell("output_tokens", 5.0, 4.0), fell("busy_sequence_steps", 9_938_250.0, 9_938_208.0)
    (True, False)
    """
    return bool(_falls(np.array([before, after]), PRINTED.get(quantity, ROUNDING))[0])


def in_order(series: Series) -> Series:
    """Readings in the order of time, each time once (the last that came)."""
    if series.times.size < 2 or bool(np.all(np.diff(series.times) > 0.0)):
        return series
    order = np.argsort(series.times, kind="stable")
    times, values = series.times[order], series.values[order]
    last = np.append(np.diff(times) > 0.0, True)
    return replace(series, times=times[last], values=values[last])


def restarts(counters: Iterable[Series], read_at: Mapping[str, Array]) -> Mapping[str, Array]:
    """Times of the readings before which a server began anew: half of the counters that stood above 0 fell, or more.

    One that is not on the page until it counts again fell at the first reading without it.
    A counter that falls alone begins anew alone: engines have shown such, and then to count all others anew would invent tokens.
    """
    servers: dict[str, list[Series]] = defaultdict(list)
    for one in counters:
        servers[one.source].append(one)
    none = np.zeros(0)
    return {source: found for source, some in servers.items() if (found := _begun_anew(some, read_at.get(source, none))).size}


def _begun_anew(some: Sequence[Series], read_at: Array) -> Array:
    read_at = read_at if read_at.size else np.unique(np.concatenate([one.times for one in some]))
    before = [one.times[:-1][_falls(one.values, _rounding(one))] for one in some]
    fell = [read_at[np.searchsorted(read_at, times, side="right")] for times in before]
    times, falls = np.unique(np.concatenate(fell), return_counts=True)
    alive = np.array([sum(_stood(one, time) for one in some) for time in times])
    return np.asarray(times[falls >= MOST * alive], dtype=float)


def _stood(series: Series, time: float) -> bool:
    """Whether the counter was above 0 at the reading before."""
    place = int(np.searchsorted(series.times, time))
    return place > 0 and bool(series.values[place - 1] > 0.0)


def rises(counters: Sequence[Series], read_at: Mapping[str, Array], unsure: Set[str] = frozenset()) -> list[Rise]:
    """What each counter rose by; ``read_at`` are the times at which its server was read at all.

    One that appears late began at 0; not so one of the ``unsure`` quantities, of which values were left out that were no numbers.
    """
    anew = restarts(counters, read_at)
    none = np.zeros(0)
    return [
        _rise(one, anew.get(one.source, none), none if one.quantity in unsure else read_at.get(one.source, none))
        for one in counters
        if one.times.size
    ]


def _rise(series: Series, anew: Array, read_at: Array) -> Rise:
    flags = np.zeros(series.times.size, dtype=bool)
    places = np.searchsorted(series.times, anew)
    flags[places[(places > 0) & (places < series.times.size)]] = True
    steps, resets = increments(series.values, flags[1:], _rounding(series))
    before = read_at[read_at < series.times[0]]
    if not before.size:
        return Rise(series=series, times=series.times, gained=np.concatenate([[0.0], np.cumsum(steps)]), resets=resets)
    gained = np.concatenate([[0.0], np.cumsum(np.concatenate([series.values[:1], steps]))])
    return Rise(series=series, times=np.concatenate([before[-1:], series.times]), gained=gained, resets=resets, late=True)


def gained_at(some: Sequence[Rise], edges: Array) -> Array:
    """What the counters together had risen by at some times, straight between readings."""
    return np.asarray(sum((np.interp(edges, one.times, one.gained) for one in some), np.zeros(edges.size)))
