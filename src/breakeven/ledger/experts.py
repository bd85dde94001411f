"""Whole experts dealt to devices: the busiest device sets the step, in what it reads and in what it multiplies."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np

from breakeven.stats import Array


@cache
def expected_maximum(count: int) -> float:
    """Mean of the largest of G standard normal numbers, m(G) = Φ⁻¹((G − 3/8)/(G + 1/4)) (Blom 1958): exact ones are 0.56, 1.42, 2.07.

    >>> [round(expected_maximum(count), 2) for count in (1, 2, 8, 32)]
    [0.0, 0.59, 1.43, 2.07]
    """
    return 0.0 if count <= 1 else NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def busiest_coverage(coverage: Array | float, experts: int, devices: int, imbalance: Array | float = 1.0) -> Array | float:
    """Share of its experts that the busiest of ``devices`` reads: p + u·m(G)·√(p·(1 − p)/(E/G)), at most 1.

    Each device has E/G experts, each awake with the chance p: the mean of the largest of G binomial counts, taken as normal. With many
    rows p is 1 and so is the busiest. u is the share of that imbalance which is seen in step times: 1 by the counts alone.

    >>> round(float(busiest_coverage(0.5, 256, 8)), 3), float(busiest_coverage(1.0, 256, 8)), float(busiest_coverage(0.3, 256, 1))
    (0.627, 1.0, 0.3)
    """
    if devices <= 1:
        return coverage
    share = np.asarray(coverage)
    spread = imbalance * expected_maximum(devices) * np.sqrt(share * (1.0 - share) * devices / experts)
    return np.asarray(np.minimum(share + spread, 1.0))


def busiest_load(rows: Array | float, top_k: int, devices: int, skew: Array | float, imbalance: Array | float = 1.0) -> Array | float:
    """Rows times experts of the busiest device over the mean: s·(1 + u·m(G)·√((G − 1)/(n·top_k))), at most G.

    n·top_k balls in G bins under even routing: counts of mean μ and variance μ·(1 − 1/G), the largest of G of them taken as normal (Raab
    and Steger 1998 for the form); times the skew of the routing itself, which no number of rows evens out.

    >>> [round(float(busiest_load(rows, 8, 8, 1.0)), 2) for rows in (1, 16, 256, 4096)]
    [2.34, 1.34, 1.08, 1.02]
    """
    if devices <= 1:
        return 1.0
    spread = imbalance * expected_maximum(devices) * np.sqrt((devices - 1) / (np.maximum(rows, 1e-9) * top_k))
    return np.asarray(np.minimum(skew * (1.0 + spread), float(devices)))


def devices_hit(top_k: int, devices: int) -> float:
    """Distinct devices, the row's own left out, that one row's experts lie on: G·(1 − (1 − 1/G)^top_k)·(1 − 1/G).

    >>> round(devices_hit(8, 8), 2), round(devices_hit(8, 256), 2)
    (4.59, 7.86)
    """
    return devices * (1.0 - (1.0 - 1.0 / devices) ** top_k) * (1.0 - 1.0 / devices)


def slowest_rank(sequences: Array | float, ranks: int) -> Array | float:
    """Sequences of the fullest of ``ranks`` that are dealt out evenly: n/R + (R − 1)/(2·R), the mean of ⌈n/R⌉, and at least 1.

    >>> slowest_rank(5.0, 1), float(slowest_rank(64.0, 8)), float(slowest_rank(1.0, 8))
    (5.0, 8.4375, 1.0)
    """
    if ranks == 1:
        return sequences
    return np.maximum(sequences / ranks + (ranks - 1) / (2.0 * ranks), 1.0)
