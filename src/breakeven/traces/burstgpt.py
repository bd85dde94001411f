"""BurstGPT traces: seconds from the first day, counts of tokens, model and kind of log; newer ones with sessions and elapsed times."""

from __future__ import annotations

import numpy as np

from breakeven.reading import Reading
from breakeven.reading.cells import DAMAGED, Batch, batches, counts, header_of, numbers
from breakeven.reading.finish import trace_of
from breakeven.reading.rows import Rows
from breakeven.reading.source import Source
from breakeven.trace import Trace

TIME, MODEL, PROMPT, OUTPUT, KIND = "Timestamp", "Model", "Request tokens", "Response tokens", "Log Type"
SESSION, ELAPSED = "Session ID", "Elapsed time"
NS = 1e9
LATEST_S = 1e9


def sniff(head: bytes) -> bool:
    """Whether the first line names this trace's columns."""
    return {TIME, MODEL, PROMPT, OUTPUT} <= set(header_of(head, ","))


def read(source: Source, reading: Reading) -> Trace:
    """The requests of a file; those without a response failed, by its own description, and are set apart."""
    rows = Rows(source, reading, "burstgpt")
    names = header_of(source.head, ",")
    for batch in batches(source, len(names)):
        _take(rows, batch, names)
    return trace_of(rows)


def _take(rows: Rows, batch: Batch, names: list[str]) -> None:
    cells = dict(zip(names, batch.columns, strict=True))
    at = numbers(cells[TIME])
    prompt, output = counts(cells[PROMPT]), counts(cells[OUTPUT])
    bad = ~((at >= 0) & (at <= LATEST_S)) | (prompt == DAMAGED) | (output == DAMAGED)
    arrival = np.round(np.where(bad, 0.0, at) * NS).astype(np.int64)
    columns = {"arrival": arrival, "input": prompt, "output": output}
    group = rows.reading.group or MODEL
    if group in cells:
        columns["group"] = rows.places(rows.groups, cells[group].to_list(), ~bad)
    if SESSION in cells:
        columns["session"] = rows.places(rows.sessions, cells[SESSION].to_list(), ~bad)
    if ELAPSED in cells:
        elapsed = numbers(cells[ELAPSED])
        columns["e2e"] = np.where((elapsed > 0) & (elapsed <= LATEST_S), elapsed, np.nan)
    rows.take(batch.numbers, columns, bad, batch.damaged)
