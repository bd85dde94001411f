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


def trace_of(rows: Rows, acceptance: Acceptance | None = None) -> Trace:
    """The requests as a trace; a file in which none was found is refused."""
    if not len(rows.columns["input"]):
        _refuse(rows)
    if rows.reading.group is not None and not rows.groups:
        raise InputError("trace_no_group", path=str(rows.source.path), group=rows.reading.group)
    return make_trace(_unsorted(rows, acceptance))


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


def _unsorted(rows: Rows, acceptance: Acceptance | None) -> Trace:
    """The columns as they are, each given up once it is an array; requests that lack what the others have are set apart."""
    kept = _kept(rows)
    arrival = _one(rows, "arrival", kept)
    notes = (*rows.notes, *_notes(rows, arrival), *rows.source.notes())
    hashes, prompts, completions = (_ragged(rows, name, kept) for name in RAGGED)
    groups, cached = _one(rows, "group", kept), _one(rows, "cached", kept)
    output, prompt = _one(rows, "output", kept), _one(rows, "input", kept)
    return Trace(
        name=rows.source.path.name,
        form=rows.form,
        arrival_s=None if arrival is None else (arrival - arrival.min()) / 1e9,
        input_tokens=np.empty(0, dtype=np.int64) if prompt is None else prompt.astype(np.int64),
        output_tokens=None if output is None else output.astype(np.int64),
        hash_ids=hashes[0],
        hash_offsets=hashes[1],
        block_tokens=rows.block_tokens if hashes[0] is not None else None,
        prompt_ids=prompts[0],
        prompt_offsets=prompts[1],
        output_ids=completions[0],
        output_offsets=completions[1],
        # vLLM leaves prompt_tokens_details out of a response that hit nothing.
        cached_tokens=None if cached is None else np.maximum(cached, 0).astype(np.int64),
        ttft_s=_one(rows, "ttft", kept),
        e2e_s=_one(rows, "e2e", kept),
        groups=None if groups is None else np.where(groups == NONE, len(rows.groups), groups).astype(np.int32),
        group_names=() if groups is None else (*rows.groups, *(("",) if (groups == NONE).any() else ())),
        sessions=_sessions(_one(rows, "session", kept)),
        acceptance=acceptance,
        notes=notes,
        damaged=rows.bad.count,
        damaged_lines=tuple(rows.bad_lines),
        damaged_records=() if rows.in_lines else tuple(rows.bad.first),
        set_apart=sum(numbers.count for numbers in rows.apart.values()),
    )


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


def _one(rows: Rows, name: str, kept: NDArray[np.bool_] | None) -> Array | None:
    """A column of the requests that stay, or none where none of them says anything."""
    found = rows.columns[name].taken()
    if found is None:
        return None
    found = found if kept is None else found[kept]
    missing = np.isnan(found) if COLUMNS[name][0] == "d" else found == COLUMNS[name][1]
    return None if missing.all() else found


def _ragged(rows: Rows, name: str, kept: NDArray[np.bool_] | None) -> tuple[Any, Any]:
    values, sizes = rows.columns[name].taken(), rows.columns[f"{name}_size"].taken()
    if values is None or sizes is None:
        return None, None
    if kept is not None:
        values, sizes = values[np.repeat(kept, sizes)], sizes[kept]
    return values, np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _sessions(sessions: Array | None) -> Array | None:
    """Numbers of conversations; a request without one is a conversation of its own."""
    if sessions is None:
        return None
    alone = sessions == NONE
    found = sessions.astype(np.int64)
    found[alone] = sessions.max() + 1 + np.arange(alone.sum())
    return found


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
