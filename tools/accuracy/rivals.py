"""What people reckon with instead: the rules of thumb, each given every fact that a row states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import numpy as np

from accuracy import roofline
from accuracy.exchange import gain_by, points_of
from breakeven.evaluator import Point
from breakeven.measured.pair import Pair
from breakeven.stats import Array

VERIFICATION = 1.6
"""What a round of speculation costs over a plain step, by the longer rule."""
Points = list[Point]


def number(value: Array | float | None) -> float:
    """The middle of what may be drawn."""
    return float(np.median(np.asarray(value, dtype=float)))


def byte_ratio(off: Points, on: Points) -> float:
    """Half the bytes, twice as fast: weight bytes off over on, as a device holds them."""
    return off[-1].room.weight_bytes / on[-1].room.weight_bytes


def cache_share(off: Points, on: Points) -> float:
    """Half the cache's bytes, and nothing lost: what a step reads off over on, at the batch of the arm without it."""
    batch = roofline.batch_of(off[-1])[0]
    return number(roofline.read_bytes(off[-1], batch) / roofline.read_bytes(on[-1], batch))


def without_hits(off: Points, on: Points) -> float:
    """1/(1 − hit rate); without bound where every prompt is a hit."""
    computed = 1.0 - number(on[-1].demand.hit_rate)
    return 1.0 / computed if computed > 0 else inf


def accepted(off: Points, on: Points) -> float:
    """As many tokens a round, so much faster: the acceptance length."""
    return number(on[-1].tau)


def accepted_over_cost(off: Points, on: Points) -> float:
    """The acceptance length over a round that costs 1.6 steps."""
    return accepted(off, on) / VERIFICATION


def as_many_as_run(off: Points, on: Points) -> float:
    """Twice the batch, twice the tokens, up to the cap."""
    few, many = (number(roofline.batch_of(points[-1])[0]) for points in (off, on))
    return many / few


Rule = Callable[[Points, Points], float]
RULES: Mapping[str, Mapping[str, Rule]] = {
    "weight_quant": {"bytes": byte_ratio},
    "kv_quant": {"bytes": cache_share},
    "prefix_cache": {"hits": without_hits},
    "speculation": {"length": accepted, "length_over_1.6": accepted_over_cost},
    "batching": {"linear": as_many_as_run},
}


def rules(pair: Pair) -> Mapping[str, float]:
    """The gain by each rule of the lever, by the rule's name."""
    off, on = points_of(pair)
    return {name: rule(off, on) for name, rule in RULES[pair.lever].items()} if off and on else {}


def by_roofline(pair: Pair) -> float:
    """The gain by the bare roofline, measured as the row measures."""
    return gain_by(pair, roofline.point)
