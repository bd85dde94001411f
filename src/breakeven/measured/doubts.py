"""Rows that cannot be true as they are written: named, counted, and left out of fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from math import inf, isfinite

from breakeven.measured.columns import is_pair
from breakeven.measured.row import Row
from breakeven.messages import Message

NUMBERS = ("value_off", "value_on", "ratio_on_over_off", "gain_gt1_is_better")
RUN_NUMBERS = ("isl", "osl", "concurrency", "silicon_ttft_ms", "silicon_tpot_ms")
SHARES = ("fraction", "share", "%", "percent")
"""Units in which nothing at all is a possible value: hit rates, acceptance rates."""
END_TO_END = ("silicon_e2e_ms", "e2e_ms", "e2el_ms", "e2e_latency_ms", "request_latency_ms")
NAMES = ("case_id", "id")
SUSPECT = "D"
"""Quality of rows that their own collector calls suspect."""
Bounds = tuple[float, float]


def doubts_of(rows: Iterable[Row]) -> dict[str, Message]:
    """Place of a row to what is wrong with it, for the rows that something is wrong with."""
    found: dict[str, Message] = {}
    seen: dict[tuple[tuple[str, str], ...], Row] = {}
    for row in rows:
        first = seen.setdefault(_content(row), row)
        doubt = doubt_of(row) or (None if first is row else Message("doubt.duplicate", {"first": first.id, "where": first.where}))
        if doubt is not None:
            found[row.where] = doubt
    return found


def doubt_of(row: Row) -> Message | None:
    """The first thing that is wrong with a row by itself."""
    return next(_pair_doubts(row.fields) if is_pair(row.fields) else _run_doubts(row.fields), None)


def _content(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in row.fields.items() if value and name not in NAMES))


def bounds(written: str) -> Bounds | None:
    """What a printed number may have been before it was rounded or cut: one unit of its last digit either way; None for no number.

    >>> bounds("1.84"), bounds("1,250"), bounds("fast")
    ((1.83, 1.85), (1249.0, 1251.0), None)
    """
    try:
        value = Decimal(written.replace(",", ""))
    except InvalidOperation:
        return None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or not isfinite(float(value)):
        return None
    unit = Decimal(1).scaleb(exponent)
    return float(value - unit), float(value + unit)


def _value(written: str) -> float:
    return float(written.replace(",", ""))


def _pair_doubts(fields: Mapping[str, str]) -> Iterator[Message]:
    yield from _not_positive(fields, () if fields.get("unit") in SHARES else NUMBERS)
    off, on = fields.get("value_off", ""), fields.get("value_on", "")
    ratio, gain = fields.get("ratio_on_over_off", ""), fields.get("gain_gt1_is_better", "")
    if (off or on) and not fields.get("unit"):
        yield Message("doubt.no_unit", {"off": off, "on": on})
    if off and on and ratio and not _meet(_quotient(on, off), bounds(ratio)):
        yield Message("doubt.ratio", {"off": off, "on": on, "found": _value(on) / _value(off), "ratio": ratio})
    if ratio and gain and not (_meet(bounds(gain), bounds(ratio)) or _meet(bounds(gain), _quotient("1.0000", ratio))):
        yield Message("doubt.gain", {"gain": gain, "ratio": ratio})
    if fields.get("quality", "").upper().startswith(SUSPECT):
        yield Message("doubt.suspect", {"quality": fields["quality"]})


def _not_positive(fields: Mapping[str, str], names: Iterable[str]) -> Iterator[Message]:
    for name in names:
        written = fields.get(name, "")
        if written and bounds(written) is None:
            yield Message("doubt.not_number", {"name": name, "value": written})
        elif written and _value(written) <= 0:
            yield Message("doubt.not_positive", {"name": name, "value": written})


def _run_doubts(fields: Mapping[str, str]) -> Iterator[Message]:
    yield from _not_positive(fields, RUN_NUMBERS)
    ttft = fields.get("silicon_ttft_ms", "")
    for name in END_TO_END:
        whole = bounds(fields.get(name, ""))
        if ttft and whole is not None and _value(ttft) > whole[1]:
            yield Message("doubt.ttft_above_e2e", {"ttft": ttft, "e2e": fields[name]})


def _quotient(above: str, below: str) -> Bounds | None:
    a, b = bounds(above), bounds(below)
    if a is None or b is None:
        return None
    return a[0] / b[1], a[1] / b[0] if b[0] > 0 else inf


def _meet(one: Bounds | None, other: Bounds | None) -> bool:
    """Whether one number can have been printed as both; what is no number contradicts nothing."""
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])
