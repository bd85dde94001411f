"""What the engine's own counters rose by while it was driven, beside what was sent: who else used it."""

from __future__ import annotations

from breakeven.driving.tour import Tour
from breakeven.endpoint import Endpoint
from breakeven.errors import BreakevenError
from breakeven.messages import Message
from breakeven.observation import scrape

COUNTER = "output_tokens"
SLACK = 0.01
"""Share by which counts may differ before it is said: a request that was ended may be counted in part."""


def put_out(server: Endpoint, engine: str) -> float | None:
    """Output tokens that the engine has counted so far, over all ranks; None where it shows no metrics, or none since its start."""
    try:
        target = scrape.targets((server.url,), dict(server.headers), engine=engine)[0]
        _, read = scrape.first(target)
    except BreakevenError:
        return None
    if read.page.since != "start":
        return None
    return sum(reading.value for reading in read.page.readings if reading.quantity == COUNTER and not reading.part)


def used_by_others(before: float | None, after: float | None, made: Tour) -> tuple[Message, ...]:
    """A sentence where the engine put out more tokens than came back to us: steps were wider than they were taken to be."""
    if before is None or after is None:
        return ()
    rose = after - before
    if rose <= made.output_tokens * (1.0 + SLACK):
        return ()
    return (Message("driving.others", {"counted": rose, "ours": made.output_tokens}),)
