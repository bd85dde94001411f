"""How often 90 % intervals cover what was measured, and how sure that share is from so few rows."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """A share of rows with its 95 % binomial interval."""

    share: float
    low: float
    high: float


def coverage(inside: int, rows: int) -> Coverage:
    """The share of rows inside their intervals, with Wilson's interval.

    (k + z²/2)/(n + z²) ± z/(n + z²)·√(k·(n − k)/n + z²/4), z = 1.96. Wilson 1927.

    >>> found = coverage(9, 10)
    >>> round(found.share, 2), round(found.low, 3), round(found.high, 3)
    (0.9, 0.596, 0.982)
    """
    wide = rows + Z**2
    middle = (inside + Z**2 / 2) / wide
    half = Z / wide * (inside * (rows - inside) / rows + Z**2 / 4) ** 0.5
    return Coverage(share=inside / rows, low=max(0.0, middle - half), high=min(1.0, middle + half))
