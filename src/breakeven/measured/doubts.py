"""Rows that cannot be true as they are written: named, counted, and left out of fits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from math import inf, isfinite

from breakeven.measured.columns import is_pair
from breakeven.measured.row import NotUnderstood, Row
from breakeven.measured.words.drafts import acceptance
from breakeven.measured.words.lever_names import lever
from breakeven.measured.words.metrics import metric
from breakeven.messages import Message

NUMBERS = ("value_off", "value_on", "ratio_on_over_off", "gain_gt1_is_better")
RUN_NUMBERS = ("isl", "osl", "concurrency", "silicon_ttft_ms", "silicon_tpot_ms")
WIDTHS = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
SHARES = ("fraction", "share", "%", "percent")
"""Units in which nothing at all is a possible value: hit rates, acceptance rates."""
END_TO_END = ("silicon_e2e_ms", "e2e_ms", "e2el_ms", "e2e_latency_ms", "request_latency_ms")
NAMES = ("case_id", "id")
CONDITIONS = (
    "source",
    "hardware",
    "n_gpus",
    "parallelism",
    "engine",
    "model",
    "weight_dtype",
    "kv_dtype",
    "lever",
    "lever_setting",
    "batch_or_concurrency",
    "context_or_input_len",
    "output_len",
)
"""Columns that say what was measured, as against what was found."""
SUSPECT = "D"
"""Quality of rows that their own collector calls suspect."""
Bounds = tuple[float, float]


def doubts_of(rows: Collection[Row]) -> dict[str, Message]:
    """Place of a row to what is wrong with it, for the rows that something is wrong with."""
    found: dict[str, Message] = {}
    seen: dict[tuple[tuple[str, str], ...], Row] = {}
    for row in rows:
        first = seen.setdefault(_content(row), row)
        doubt = doubt_of(row) or (None if first is row else Message("doubt.duplicate", {"first": first.id, "where": first.where}))
        if doubt is not None:
            found[row.where] = doubt
    return _later_than_the_end(rows) | found


def _later_than_the_end(rows: Iterable[Row]) -> dict[str, Message]:
    """Rows whose first token comes after the end of the whole request, as another row of the same conditions has it."""
    ends: dict[tuple[str, ...], tuple[str, str]] = {}
    firsts: list[tuple[Row, tuple[str, ...], str]] = []
    for row in rows:
        kind = _time_kind(row.fields)
        for arm in ("value_off", "value_on") if kind else ():
            conditions = (*(row.fields.get(name, "") for name in CONDITIONS), row.fields.get("unit", ""), arm)
            written = row.fields.get(arm, "")
            if kind == "e2e" and written:
                ends[conditions] = (written, row.id)
            elif kind == "ttft" and written:
                firsts.append((row, conditions, written))
    found = {}
    for row, conditions, written in firsts:
        end, other = ends.get(conditions, ("", ""))
        first, last = bounds(written), bounds(end)
        if first is not None and last is not None and first[0] > last[1]:
            found[row.where] = Message("doubt.ttft_above_other", {"ttft": written, "e2e": end, "other": other})
    return found


def _time_kind(fields: Mapping[str, str]) -> str:
    """The kind of a time that is measured in seconds or milliseconds."""
    if fields.get("unit") not in ("s", "ms") or not is_pair(fields):
        return ""
    try:
        return metric(fields.get("metric", ""), fields["unit"]).kind
    except NotUnderstood:
        return ""


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
        value = Decimal(_bare(written))
    except InvalidOperation:
        return None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or not isfinite(float(value)):
        return None
    unit = Decimal(1).scaleb(exponent)
    return float(value - unit), float(value + unit)


def _bare(written: str) -> str:
    """The digits of a number: without a sign for about, a per cent sign, and commas between thousands."""
    return written.strip("~≈% ").replace(",", "")


def _value(written: str) -> float:
    return float(_bare(written))


def _pair_doubts(fields: Mapping[str, str]) -> Iterator[Message]:
    yield from _not_positive(fields, () if fields.get("unit") in SHARES else NUMBERS)
    off, on = fields.get("value_off", ""), fields.get("value_on", "")
    ratio, gain = fields.get("ratio_on_over_off", ""), fields.get("gain_gt1_is_better", "")
    if (off or on) and not fields.get("unit"):
        yield Message("doubt.no_unit", {"off": off, "on": on})
    if off and on and ratio and not _meet(_quotient(on, off), bounds(ratio)):
        yield Message("doubt.ratio", {"off": off, "on": on, "found": _value(on) / _value(off), "ratio": ratio})
    if ratio and gain:
        yield from _gain_doubts(fields, ratio, gain)
    if gain:
        yield from _acceptance_doubts(fields, gain)
    if fields.get("quality", "").upper().startswith(SUSPECT):
        yield Message("doubt.suspect", {"quality": fields["quality"]})


def _gain_doubts(fields: Mapping[str, str], ratio: str, gain: str) -> Iterator[Message]:
    """The gain is the ratio, or its inverse where less is better; which of them, the metric says."""
    same, inverse = _meet(bounds(gain), bounds(ratio)), _meet(bounds(gain), _quotient("1.0000", ratio))
    if not same and not inverse:
        yield Message("doubt.gain", {"gain": gain, "ratio": ratio})
        return
    try:
        inverts = metric(fields.get("metric", ""), fields.get("unit", "")).inverts
    except NotUnderstood:
        return
    if not (inverse if inverts else same):
        key = "doubt.less_is_better" if inverts else "doubt.more_is_better"
        yield Message(key, {"metric": fields["metric"], "gain": gain, "ratio": ratio})


def _acceptance_doubts(fields: Mapping[str, str], gain: str) -> Iterator[Message]:
    """A gain of speculation above the tokens that a round yields: a round takes a step at least."""
    for name in ("lever_setting", "notes"):
        try:
            accepted = acceptance(fields.get(name, "")) if lever(fields.get("lever", "")) == "speculation" else None
        except NotUnderstood:
            continue
        length, least = accepted.length if accepted is not None else None, bounds(gain)
        if isinstance(length, float) and least is not None and least[0] > length:
            yield Message("doubt.above_acceptance", {"gain": _value(gain), "length": length})


def _not_positive(fields: Mapping[str, str], names: Iterable[str]) -> Iterator[Message]:
    for name in names:
        written = fields.get(name, "")
        if written and bounds(written) is None:
            yield Message("doubt.not_number", {"name": name, "value": written})
        elif written and _value(written) <= 0:
            yield Message("doubt.not_positive", {"name": name, "value": written})


def _run_doubts(fields: Mapping[str, str]) -> Iterator[Message]:
    yield from _not_positive(fields, RUN_NUMBERS)
    for name in WIDTHS:
        if fields.get(name) and bounds(fields[name]) is None:
            yield Message("doubt.not_number", {"name": name, "value": fields[name]})
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
