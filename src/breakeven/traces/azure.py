"""Azure inference traces (2023, 2024, and 2025 with images): times and counts of tokens, no identity of prompts."""

from __future__ import annotations

import numpy as np

from breakeven.reading import Reading
from breakeven.reading.cells import DAMAGED, Batch, batches, counts, header_of, times_ns
from breakeven.reading.finish import trace_of
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import Trace

HEADERS = (["TIMESTAMP", "ContextTokens", "GeneratedTokens"], ["TIMESTAMP", "NumImages", "ContextTokens", "GeneratedTokens"])
"""2023 and 2024; the multimodal ones of 2025, whose ContextTokens are those of text and images."""


def sniff(head: bytes) -> bool:
    """Whether a file begins as these traces do."""
    return header_of(head, ",") in HEADERS


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file; lines that cannot be read are counted."""
    rows = Rows(source, reading, "azure")
    width = len(header_of(source.head, ","))
    for batch in batches(source, width):
        _take(rows, batch, width)
    return trace_of(rows)


def _take(rows: Rows, batch: Batch, width: int) -> None:
    arrival, bad, zoned = times_ns(batch.columns[0])
    prompt, output = (counts(batch.columns[place]) for place in (width - 2, width - 1))
    rows.take(
        batch.numbers,
        {"arrival": arrival, "input": prompt, "output": output},
        bad | (prompt == DAMAGED) | (output == DAMAGED),
        batch.damaged,
    )
    sound = ~bad
    rows.tally["zoned"] += int(np.count_nonzero(zoned & sound))
    rows.tally["unzoned"] += int(np.count_nonzero(~zoned & sound))
