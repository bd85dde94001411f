"""How long requests are: prompts and outputs by quantiles, whether the two go together, and what times were measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A quantity over requests."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    least: float
    most: float
    variation: float
    """Standard deviation over mean."""


@dataclass(frozen=True, kw_only=True)
class LengthsOf:
    """Prompt and output tokens of a trace; an output that the file does not tell is None."""

    prompt: Distribution
    output: Distribution | None
    correlation: float | None
    """Of prompt and output lengths (Pearson); None where one of them does not vary."""
    cached: float | None
    """Share of the prompt tokens that the engine says it took from its prefix cache; None where the file does not say."""


def distribution(values: NDArray[Any]) -> Distribution | None:
    """A distribution of what is known; None where nothing is.

    >>> found = distribution(np.array([1.0, 2.0, 3.0, np.nan]))
    >>> found.count, found.mean, found.p50, found.most
    (3, 2.0, 2.0, 3.0)
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return None
    p50, p90, p99 = (float(value) for value in np.quantile(known, QUANTILES))
    mean = float(known.mean())
    return Distribution(
        count=len(known),
        mean=mean,
        p50=p50,
        p90=p90,
        p99=p99,
        least=float(known.min()),
        most=float(known.max()),
        variation=float(known.std() / mean) if mean > 0 else 0.0,
    )


def correlation(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Pearson's correlation of two lengths.

    >>> correlation(np.array([1, 2, 3]), np.array([30, 20, 10]))
    -1.0
    """
    if len(first) < 2 or first.min() == first.max() or second.min() == second.max():
        return None
    return round(float(np.corrcoef(first.astype(float), second.astype(float))[0, 1]), 12)


def lengths_of(prompt: NDArray[Any], output: NDArray[Any] | None, cached: NDArray[Any] | None) -> LengthsOf | None:
    """The lengths of a trace; None for one without a request."""
    prompts = distribution(prompt)
    if prompts is None:
        return None
    return LengthsOf(
        prompt=prompts,
        output=None if output is None else distribution(output),
        correlation=None if output is None else correlation(prompt, output),
        cached=None if cached is None else float(cached.sum() / prompt.sum()),
    )
