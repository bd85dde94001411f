"""From the columns that a file left to a trace: what all, some or none of its records say, and the notes on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.reading.columns import COLUMNS, NONE, RAGGED
from breakeven.reading.rows import CROWDED, MANY, Rows
from breakeven.reading.source import HEAD_BYTES
from breakeven.spec.workload import Acceptance
from breakeven.trace import Trace, make_trace

Array = NDArray[Any]
STEP, NS = 2**20, 1e9


def trace_of(rows: Rows, acceptance: Acceptance | None = None) -> Trace:
    """The requests as a trace; a file in which none was found is refused."""
    if not len(rows.columns["input"]):
        _refuse(rows)
    if rows.reading.group is not None and not rows.groups:
        raise InputError("trace_no_group", path=str(rows.source.path), group=rows.reading.group)
    return make_trace(_sorted(rows, acceptance))


def _refuse(rows: Rows) -> None:
    """Says why nothing was found: an encoding that was taken for UTF-8, or no sound request."""
    path, head = str(rows.source.path), rows.source.head
    if rows.bad.count:
        try:
            # A character of up to four bytes may be cut where the head ends.
            (head[:-4] if len(head) == HEAD_BYTES else head).decode()
        except UnicodeDecodeError as error:
            raise InputError("trace_encoding", path=path, byte=error.start + 1) from None
    raise InputError("trace_empty", path=path, damaged=rows.bad.count, apart=sum(numbers.count for numbers in rows.apart.values()))


def _sorted(rows: Rows, acceptance: Acceptance | None) -> Trace:
    """The columns in order of arrival, each given up once it is an array; requests that lack what the others have are set apart."""
    chosen: Array | None = _kept(rows)
    arrival = _one(rows, "arrival", chosen)
    notes = (*rows.notes, *_notes(rows, arrival), *rows.source.notes())
    if arrival is not None and bool((arrival[1:] < arrival[:-1]).any()):
        order = np.argsort(arrival, kind="stable")
        arrival = arrival[order]
        chosen = order if chosen is None else np.flatnonzero(chosen)[order]
    hashes, prompts, completions = (_ragged(rows, name, chosen) for name in RAGGED)
    groups, cached, lengths = _one(rows, "group", chosen), _wide(rows, "cached", chosen), _wide(rows, "input", chosen)
    return Trace(
        name=rows.source.path.name,
        form=rows.form,
        arrival_s=None if arrival is None else _seconds(arrival),
        input_tokens=np.empty(0, dtype=np.int64) if lengths is None else lengths,
        output_tokens=_wide(rows, "output", chosen),
        hash_ids=hashes[0],
        hash_offsets=hashes[1],
        block_tokens=rows.block_tokens if hashes[0] is not None else None,
        prompt_ids=prompts[0],
        prompt_offsets=prompts[1],
        output_ids=completions[0],
        output_offsets=completions[1],
        # vLLM leaves prompt_tokens_details out of a response that hit nothing.
        cached_tokens=None if cached is None else np.maximum(cached, 0),
        ttft_s=_one(rows, "ttft", chosen),
        e2e_s=_one(rows, "e2e", chosen),
        groups=None if groups is None else np.where(groups == NONE, len(rows.groups), groups).astype(np.int32),
        group_names=() if groups is None else (*rows.groups, *(("",) if (groups == NONE).any() else ())),
        sessions=_sessions(_wide(rows, "session", chosen)),
        acceptance=acceptance,
        notes=notes,
        damaged=rows.bad.count,
        damaged_lines=tuple(rows.bad_lines),
        damaged_records=() if rows.in_lines else tuple(rows.bad.first),
        set_apart=sum(numbers.count for numbers in rows.apart.values()),
    )


def _seconds(arrival: Array) -> NDArray[np.float64]:
    """Sorted nanoseconds as seconds from the first, written where they stood: both are of 8 bytes."""
    start, found = arrival[0], arrival.view(np.float64)
    for first in range(0, len(arrival), STEP):
        part = slice(first, first + STEP)
        found[part] = (arrival[part] - start) / NS
    return found


def _wide(rows: Rows, name: str, chosen: Array | None) -> NDArray[np.int64] | None:
    found = _one(rows, name, chosen)
    return None if found is None else found.astype(np.int64)


def _kept(rows: Rows) -> NDArray[np.bool_] | None:
    """Which requests stay: all, or those that say what most say."""
    size, kept = len(rows.columns["input"]), None
    for reason, name, numbers in (("no_time", "arrival", rows.untimed), ("output_unsaid", "output", rows.unsaid)):
        if 0 < numbers.count < size:
            rows.apart[reason] = numbers
            column = rows.columns[name]
            said = np.frombuffer(column.values, dtype=column.kind) != column.empty
            says = np.concatenate((np.zeros(column.unsaid, dtype=np.bool_), said))
            kept = says if kept is None else kept & says
    return kept


def _one(rows: Rows, name: str, chosen: Array | None) -> Array | None:
    """A column of the requests chosen, by a mask or by places; none where none of them says anything."""
    found = rows.columns[name].taken()
    if found is None:
        return None
    found = found if chosen is None else found[chosen]
    missing = np.isnan(found) if COLUMNS[name][0] == "d" else found == COLUMNS[name][1]
    return None if missing.all() else found


def _ragged(rows: Rows, name: str, chosen: Array | None) -> tuple[Any, Any]:
    """Lists of ids of the requests chosen, one after another, and where each begins."""
    values, sizes = rows.columns[name].taken(), rows.columns[f"{name}_size"].taken()
    if values is None or sizes is None:
        return None, None
    if chosen is not None:
        starts = (np.cumsum(sizes, dtype=np.int64) - sizes)[chosen]
        sizes = sizes[chosen]
        values = values[np.repeat(starts - (np.cumsum(sizes, dtype=np.int64) - sizes), sizes) + np.arange(sizes.sum())]
    return values, np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _sessions(sessions: Array | None) -> Array | None:
    """Numbers of conversations; a request without one is a conversation of its own."""
    if sessions is not None:
        alone = sessions == NONE
        sessions[alone] = sessions.max() + 1 + np.arange(alone.sum())
    return sessions


def _notes(rows: Rows, arrival: Array | None) -> list[Message]:
    path = rows.source.path.name
    notes = [
        Message(f"trace.apart_{reason}", {"path": path, "count": numbers.count, "numbers": numbers.shown()})
        for reason, numbers in rows.apart.items()
    ]
    if arrival is not None:
        notes += _of_times(path, arrival)
    if rows.tally["zoned"] and rows.tally["unzoned"]:
        notes.append(Message("trace.zones", {"path": path, "unzoned": rows.tally["unzoned"], "zoned": rows.tally["zoned"]}))
    if rows.tally["inexact"]:
        notes.append(Message("trace.approximated", {"path": path, "requests": rows.tally["inexact"]}))
    return notes


def _of_times(path: str, arrival: Array) -> list[Message]:
    """Times out of order, and times that most requests share with another."""
    notes = []
    late = int(np.count_nonzero(arrival[1:] < arrival[:-1]))
    if late:
        notes.append(Message("trace.unsorted", {"path": path, "late": late}))
        arrival = np.sort(arrival)
    same = int(np.count_nonzero(arrival[1:] == arrival[:-1]))
    if len(arrival) >= MANY and same > CROWDED * (len(arrival) - 1):
        notes.append(Message("trace.crowded", {"path": path, "same": same, "requests": len(arrival)}))
    return notes
