"""Points in time as files write them, to whole nanoseconds since 1970; those without a zone are taken as UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime

NS = 10**9
EARLIEST_NS, LATEST_NS = -(2**62), 2**62
STAMP = re.compile(
    r"((?:19|20|21)\d\d-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,12}))? ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?", re.ASCII | re.IGNORECASE
)
EPOCHS = ((1e17, 1), (1e14, 10**3), (1e11, 10**6), (0.0, NS))
"""From which size on a number counts nanoseconds, microseconds, milliseconds since 1970; below, seconds."""


def stamp_ns(value: object) -> tuple[int, bool] | None:
    """Nanoseconds of a stamp (text, or seconds to nanoseconds since 1970 told by size) and whether it names its zone."""
    if isinstance(value, str):
        return _text_ns(value.strip())
    if isinstance(value, (int, float)) and not isinstance(value, bool) and EARLIEST_NS < value < LATEST_NS:
        found = epoch_ns(value)
        return None if found is None else (found, True)
    return None


def epoch_ns(value: float) -> int | None:
    """A number as a time: what it counts is told by its size."""
    unit = next(unit for least, unit in EPOCHS if abs(value) >= least)
    return scaled_ns(value, unit)


def scaled_ns(value: float, unit: int) -> int | None:
    """A number of units as whole nanoseconds, exact where it is whole; none beyond what 64 bits hold."""
    found = value * unit if isinstance(value, int) else round(value * unit)
    return found if EARLIEST_NS < found < LATEST_NS else None


def _text_ns(text: str) -> tuple[int, bool] | None:
    match = STAMP.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{clock}{_offset(zone)}")
    except ValueError:
        return None
    seconds = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    return seconds * NS + int((fraction or "0").ljust(9, "0")[:9]), zone is not None


def _offset(zone: str | None) -> str:
    if zone is None or zone.upper() in ("Z", "UTC"):
        return "" if zone is None else "+00:00"
    return zone if len(zone) > 3 else f"{zone}:00"
