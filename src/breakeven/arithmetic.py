"""A line of arithmetic as it is written down: a formula with its numbers put in, so that a calculator gives the value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from breakeven.advice import Line
from breakeven.messages import Message
from breakeven.stats import Array
from breakeven.units import bytes_text, flop_text, significant, time_text

SOURCES: Mapping[str, str] = {
    "memory": "Kwon et al. 2023 (paged KV); docs/theory/memory.md",
    "bandwidth": "Pope et al. 2022 (bytes per step); docs/theory/bandwidth.md",
    "compute": "Williams et al. 2009 (roofline, ridge point); docs/theory/compute.md",
    "interconnect": "Shoeybi et al. 2019, DeepSeek-V3 report 2024; docs/theory/interconnect.md, docs/theory/parallelism.md",
    "step": "Williams et al. 2009 (roofline), constants from fits of public runs; docs/theory/step.md",
    "operating_point": "Little 1961, birth–death equilibrium; docs/theory/operating-point.md",
    "speculation": "Leviathan et al. 2023, equation 1; docs/theory/speculation.md",
    "levers": "definition; docs/theory/levers.md",
}
"""Where the formulas of a page come from."""
FIGURES = 4
NOTHING_S = 1e-9


def middle(value: object) -> float:
    """The median of what may be an array."""
    return float(np.median(np.asarray(value)))


def number(value: object) -> str:
    """A plain number to four figures."""
    return significant(middle(value), FIGURES)


def count(value: float) -> str:
    """Parameters, as ``68.5e9``."""
    return f"{significant(value / 1e9, FIGURES)}e9"


def size(value: object) -> str:
    """Bytes."""
    return bytes_text(middle(value))


def span(value: object) -> str:
    """Seconds; less than a nanosecond is nothing."""
    seconds = middle(value)
    return time_text(seconds if abs(seconds) >= NOTHING_S else 0.0)


def flop(value: object) -> str:
    """Floating-point operations."""
    return flop_text(middle(value))


def byte_rate(value: Array | float) -> str:
    """Bytes a second."""
    return f"{bytes_text(middle(value))}/s"


def flop_rate(value: Array | float) -> str:
    """Floating-point operations a second."""
    return f"{flop_text(middle(value))}/s"


def added(terms: Iterable[str]) -> str:
    """Terms with plus signs between them."""
    return " + ".join(terms)


def grouped(pairs: Iterable[tuple[object, float]]) -> dict[object, float]:
    """Sums by key, in the order the keys came; keys without an amount are left out."""
    sums: dict[object, float] = {}
    for key, amount in pairs:
        sums[key] = sums.get(key, 0.0) + amount
    return {key: amount for key, amount in sums.items() if amount}


def line(symbol: str, key: str, formula: str, numbers: str, value: object, unit: str) -> Line:
    """One line; ``key`` names the formula, page first: ``memory.pool``. ``numbers`` is the formula with its numbers put in."""
    page, _, name = key.partition(".")
    return Line(
        symbol=symbol,
        formula=formula,
        substituted=numbers,
        value=middle(value),
        unit=unit,
        name=Message(f"formula.{page}_{name}", {}),
        source=SOURCES[page],
    )
