"""The options that say which part of a metrics history is read instead of a running engine."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from breakeven.errors import InputError
from breakeven.observe_options import duration
from breakeven.verb import option

if TYPE_CHECKING:
    from breakeven.observation.history import HistoryQuery

Prometheus = Annotated[str | None, option("--prometheus", metavar="URL")]
Match = Annotated[str | None, option("--match", metavar="{LABEL=VALUE}")]
Span = Annotated[str | None, option("--range", metavar="DURATION")]
End = Annotated[str | None, option("--end", metavar="TIME")]
Step = Annotated[str | None, option("--step", metavar="DURATION")]
Export = Annotated[str | None, option("--export", metavar="[HOST]:PORT")]
DAY = "24h"
SHORTEST_S, LONGEST_S = 1.0, 366 * 86_400.0
SHORTEST_STEP_S, LONGEST_STEP_S = 0.1, 86_400.0
AHEAD_S = 60.0
"""Clocks differ: an end that lies ahead by less is now."""


def stored(match: str | None, span: str | None, end: str | None, step: str | None, *, engine: str = "", model: str = "") -> "HistoryQuery":
    """Which part of a history is asked for; a day up to now where nothing is said."""
    from time import time

    from breakeven.observation.history import HistoryQuery, matchers

    now = time()
    until = now if end is None else moment(end)
    if until > now + AHEAD_S:
        raise InputError("history_ahead", value=(end or "")[:40])
    chosen = match or "{}"
    matchers(chosen)
    return HistoryQuery(
        match=chosen,
        start_s=until - duration(span or DAY, "--range", SHORTEST_S, LONGEST_S),
        end_s=until,
        step_s=None if step is None else duration(step, "--step", SHORTEST_STEP_S, LONGEST_STEP_S),
        engine=engine,
        model=model,
    )


def refuse_mixture(prometheus: str | None, of_history: Mapping[str, object], of_engine: Mapping[str, object]) -> None:
    """Options of a history without its server, or of a running engine with it, are a mistake and not a default."""
    given, other = (next((name for name, value in some.items() if value), None) for some in (of_history, of_engine))
    if prometheus is None and given is not None:
        raise InputError("history_without_server", option=given)
    if prometheus is not None and other is not None:
        raise InputError("history_and_url", other=other)


def moment(given: str) -> float:
    """Unix seconds of a time, which is UTC where it says no zone.

    >>> moment("2026-11-30T12:00:00Z"), moment("1796040000")
    (1796040000.0, 1796040000.0)
    """
    from datetime import UTC, datetime
    from math import isfinite

    try:
        seconds = float(given)
    except ValueError:
        try:
            told = datetime.fromisoformat(given.strip())
        except ValueError:
            raise InputError("history_end", value=given[:40]) from None
        return (told if told.tzinfo is not None else told.replace(tzinfo=UTC)).timestamp()
    if not isfinite(seconds) or seconds <= 0:
        raise InputError("history_end", value=given[:40])
    return seconds
