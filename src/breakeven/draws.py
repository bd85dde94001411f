"""One set of draws: every uncertain quantity has a name, and a name has the same draws in every arm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np

from breakeven import stats
from breakeven.stats import Array, Value

KEPT = 1024
"""Named quantities whose draws are kept: those of a few dozen seeds."""


@lru_cache(maxsize=KEPT)
def _normal(size: int, seed: int, name: str) -> Array:
    drawn = stats.normal_draws(size, np.random.default_rng([seed, crc32(name.encode())]))
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True)
class Draws:
    """``size`` joint draws; size 0 is the median world, in which every uncertain quantity sits at its median."""

    size: int = 0
    seed: int = 0

    def normal(self, name: str) -> Array | float:
        """Standard normal draws of a named quantity, shape (size,); 0 in the median world."""
        return _normal(self.size, self.seed, name) if self.size else 0.0

    def value(self, name: str, value: Value) -> Array | float:
        """A field of a specification, drawn; numbers and arrays are themselves."""
        if not self.size:
            return stats.median(value)
        return stats.draw(value, self.size, np.random.default_rng([self.seed, crc32(name.encode())]))

    def log_uniform(self, name: str, low: float, high: float) -> Array | float:
        """Draws of a positive quantity whose logarithm lies anywhere between two bounds."""
        if not self.size:
            return float((low * high) ** 0.5)
        u = stats.uniform_draws(self.size, np.random.default_rng([self.seed, crc32(name.encode())]))
        return low * (high / low) ** u


MEDIAN = Draws()
