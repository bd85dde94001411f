"""What the engine's own counters rose by while it was driven, beside what was sent: who else used it."""

from __future__ import annotations

from collections.abc import Mapping

from breakeven.driving.tour import Tour
from breakeven.endpoint import Endpoint
from breakeven.errors import BreakevenError
from breakeven.observation import scrape

PUT_OUT, DRAFTED = "output_tokens", "draft_tokens"
SLACK = 0.01
"""Share by which counts may differ before it is said: a request that was ended may be counted in part."""


def counts(server: Endpoint, engine: str) -> Mapping[str, float]:
    """Output and drafted tokens that the engine has counted so far, over all ranks; nothing where it shows none since its start."""
    try:
        target = scrape.targets((server.url,), dict(server.headers), engine=engine)[0]
        _, read = scrape.first(target)
    except BreakevenError:
        return {}
    if read.page.since != "start":
        return {}
    told = [one for one in read.page.readings if one.quantity in (PUT_OUT, DRAFTED) and not one.part]
    return {name: sum(one.value for one in told if one.quantity == name) for name in {one.quantity for one in told}}


def rose(name: str, before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """What a counter rose by, where both readings have it; a counter that appears meanwhile began at nothing."""
    return after[name] - before.get(name, 0.0) if name in after and before else None


def tokens_of_others(before: Mapping[str, float], after: Mapping[str, float], made: Tour) -> float | None:
    """Output tokens beyond those that came back to us: steps were wider than they were taken to be; None where there were none."""
    counted = rose(PUT_OUT, before, after)
    if counted is None or counted <= made.output_tokens * (1.0 + SLACK) + made.unseen_tokens:
        return None
    return counted - made.output_tokens
