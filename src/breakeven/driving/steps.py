"""What a round of streams says of a step: the time between their chunks while all of them decode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from breakeven.driving.grid import SETTLE
from breakeven.driving.outcome import Driven, Request

LEAST = 4
"""Steps of each stream that make a time of a step."""


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """Steps of one round."""

    concurrency: int
    step_s: float
    """Median."""
    low_s: float
    high_s: float
    """Tenth and ninetieth percentile."""
    context_tokens: float
    """Mean of the sequences over these steps."""
    gaps: int


def stepped(driven: Driven, concurrency: int) -> Stepped | None:
    """The steps while all streams decoded together; None where they never did for long enough."""
    streams = [one for one in driven.requests if one.chunks]
    if len(streams) < concurrency:
        return None
    start = max(one.chunks[0].at_s for one in streams)
    end = min(one.chunks[-1].at_s for one in streams)
    measured = [_gaps(one, start, end) for one in streams]
    if min(len(gaps) for gaps in measured) < LEAST:
        return None
    gaps = np.array([seconds for of in measured for seconds, _ in of])
    contexts = [tokens for of in measured for _, tokens in of]
    low, middle, high = (float(each) for each in np.quantile(gaps, (0.1, 0.5, 0.9)))
    return Stepped(concurrency=concurrency, step_s=middle, low_s=low, high_s=high, context_tokens=float(np.mean(contexts)), gaps=len(gaps))


def _gaps(one: Request, start: float, end: float) -> Sequence[tuple[float, float]]:
    """Seconds per token and tokens cached before it, of each chunk between two moments but the first few."""
    before, found = float(one.counted_prompt), []
    for last, chunk in zip(one.chunks, one.chunks[1:], strict=False):
        before += last.tokens
        if last.at_s >= start and chunk.at_s <= end:
            found.append(((chunk.at_s - last.at_s) / chunk.tokens, before))
    return found[min(SETTLE, max(len(found) - LEAST, 0)) :]
