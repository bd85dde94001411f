"""When the two sides of a row were measured."""

from __future__ import annotations

import re
from datetime import date

from breakeven.measured.words._spelling import plain

TWO_DATES = re.compile(r"(20\d\d-\d\d-\d\d)\s*(?:/|->|and|to)\s*(20\d\d-\d\d-\d\d)")


def days_apart(text: str) -> int | None:
    """Days between the two dates of a note (``measured 2026-01-14/2026-03-25``); None where it has no two dates.

    >>> days_apart("measured 2025-11-18/2026-03-25; same engine version: False"), days_apart("")
    (127, None)
    """
    found = TWO_DATES.search(plain(text, "number"))
    if found is None:
        return None
    try:
        first, second = (date.fromisoformat(each) for each in found.groups())
    except ValueError:
        # A day that is in no calendar.
        return None
    return abs((second - first).days)
