"""Tables of one metric a row (``Metric,avg,min,…``; then ``Metric,Value``), as aiperf and genai-perf write them, as named metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from breakeven.measured.benchmark import Record

METRIC = "Metric"
HEADS = ("avg", "Value")
NAMED = re.compile(r"^(?P<name>[^()]+?)\s*(?:\((?P<unit>[^()]*)\))?$")


def metrics_of_table(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Each row as a metric: its name in small letters, its mean, and the unit that stands in brackets behind the name.

    >>> metrics_of_table([Record(where="f", fields={"Metric": "Request Latency (ms)", "avg": "1,630.2"})])
    {'request_latency': {'avg': '1630.2', 'unit': 'ms'}}
    """
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        named = NAMED.match(str(record.fields.get(METRIC, "")).strip())
        value = next((record.fields[head] for head in HEADS if record.fields.get(head)), None)
        if named is not None and value is not None:
            name = "_".join(named["name"].lower().split())
            found[name] = {"avg": str(value).replace(",", ""), "unit": named["unit"] or ""}
    return found
