"""Iteration statistics in JSON (trtllm-serve): a list of iterations, taken from the engine by reading it, to samples."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping

from breakeven.adapter import QUANTITIES
from breakeven.errors import InputError
from breakeven.exposition.places import adapter
from breakeven.exposition.samples import LARGEST, Sample, Samples
from breakeven.registry import names

LATENCY = "iterLatencyMS"
"""What gauges are weighted by, so that their mean is over time."""
QUOTED_NAME = re.compile(rb'\{"[^"]*"\s*[,}]')
COUNTED = "iterations"
"""No field of theirs: one for each."""


def is_json(body: bytes, content_type: str) -> bool:
    """Whether a page is JSON, by what it begins with; after a brace it may be a metric's name in quotes, so that the type has to agree."""
    head = body.lstrip()[:64]
    return head[:1] in (b"[", b"{") and (not QUOTED_NAME.match(head) or "json" in content_type.lower())


def iterations(body: bytes, target: str) -> Samples:
    """Sums of counters, sums and counts of what is a histogram, means over time of gauges, over the iterations of one page."""
    rows = _rows(body, target)
    kinds = {
        (alias.family, QUANTITIES[quantity])
        for name in names("adapters")
        if adapter(name).form == "json"
        for quantity, aliases in adapter(name).quantities.items()
        for alias in aliases
    }
    every = [dict(_flat(row)) for row in rows]
    flat = [{**{field: value for field, value in row.items() if math.isfinite(value)}, COUNTED: 1.0} for row in every]
    found: list[Sample] = []
    for family, kind in sorted(kinds):
        values = [(row[family], row.get(LATENCY, 1.0)) for row in flat if family in row]
        if values:
            found += _merged(family, kind, values)
    asked = {family for family, _ in kinds}
    wrong = [field for row in every for field, value in row.items() if field in asked and not math.isfinite(value)]
    return Samples(found=tuple(found), not_numbers=tuple(wrong))


def _merged(family: str, kind: str, values: list[tuple[float, float]]) -> Iterator[Sample]:
    total = math.fsum(value for value, _ in values)
    if kind == "counter":
        yield Sample(f"{family}_total", {}, total)
    elif kind == "histogram":
        yield Sample(f"{family}_sum", {}, total)
        yield Sample(f"{family}_count", {}, float(len(values)))
    else:
        weight = math.fsum(weight for _, weight in values)
        yield Sample(family, {}, math.fsum(value * w for value, w in values) / weight if weight > 0 else total / len(values))


def _rows(body: bytes, target: str) -> list[dict[str, object]]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError("page_json_damaged", target=target, bytes=len(body)) from error
    rows = found if isinstance(found, list) else [found]
    if not all(isinstance(row, dict) for row in rows) or (isinstance(found, dict) and "iter" not in found):
        raise InputError("page_json_other", target=target)
    return rows


def _flat(row: Mapping[str, object], within: str = "") -> Iterator[tuple[str, float]]:
    """Numbers by the path of their fields; a whole number that is too large for one is infinite."""
    for field, value in row.items():
        if isinstance(value, Mapping) and not within:
            yield from _flat(value, f"{field}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{within}{field}", float(value) if abs(value) <= LARGEST else math.inf
