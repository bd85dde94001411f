"""Replicas and ranks beside each other: whether one is idle while others are full."""

from __future__ import annotations

from collections import defaultdict

from breakeven.observation import gauges
from breakeven.observation.quantities import Quantities
from breakeven.spec.evidence import Said

IDLE = 0.25
"""Share of the mean of the others below which one is called idle."""
FULL = 2.0
"""Sequences that the others have to run on average for that to matter."""


def shares(q: Quantities) -> dict[tuple[str, str], float]:
    """Mean sequences of each rank of each replica: by latencies, which see all, else by gauges."""
    every = {(one.source, one.rank) for quantity in ("running", "itl") for one in q.series.get(quantity, ())}
    waited: dict[tuple[str, str], float] = dict.fromkeys(every, 0.0)
    for rise in q.rises.get("itl", ()):
        if rise.series.part == "sum":
            times = q.read_at[rise.series.source]
            waited[rise.series.source, rise.series.rank] += rise.total / max(float(times[-1] - times[0]), 1e-9)
    if any(waited.values()):
        return dict(waited)
    some: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in q.series.get("running", ()):
        level = gauges.level([one])
        if level is not None:
            some[one.source, one.rank].append(level.mean)
    return {whose: sum(means) for whose, means in some.items()}


def warnings(q: Quantities) -> tuple[Said, ...]:
    """The idlest, where the others are full; of ranks or of replicas."""
    found = shares(q)
    if len(found) < 2:
        return ()
    idlest = min(found, key=lambda whose: found[whose])
    others = [mean for whose, mean in found.items() if whose != idlest]
    rest = sum(others) / len(others)
    if rest < FULL or found[idlest] >= IDLE * rest:
        return ()
    name = " ".join(part for part in idlest if part)
    return (Said(key="observed.warn_imbalance", values={"who": name, "mean": found[idlest], "others": rest, "count": len(found)}),)
