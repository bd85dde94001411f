"""From the columns that a file left to a trace: what all, some or none of its records say, and the notes on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.reading.rows import CROWDED, MANY, NO_TIME, NONE, Rows
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
    """The columns as they are; requests that lack what the others have are set apart."""
    columns = {name: np.frombuffer(values, dtype=values.typecode) for name, values in rows.columns.items()}
    kept = _kept(rows, columns)
    for name in ("arrival", "input", "output", "cached", "ttft", "e2e", "session", "group"):
        columns[name] = columns[name] if kept is None else columns[name][kept]
    arrival = None if (columns["arrival"] == NO_TIME).any() else columns["arrival"]
    notes = (*rows.notes, *_notes(rows, arrival), *rows.source.notes())
    hashes, prompts, completions = (_ragged(rows, columns, name, kept) for name in ("hash", "prompt", "completion"))
    return Trace(
        name=rows.source.path.name,
        form=rows.form,
        arrival_s=None if arrival is None else (arrival - arrival.min()) / 1e9,
        input_tokens=columns["input"].astype(np.int64),
        output_tokens=None if (columns["output"] == NONE).any() else columns["output"].astype(np.int64),
        hash_ids=hashes[0],
        hash_offsets=hashes[1],
        block_tokens=rows.block_tokens if hashes[0] is not None else None,
        prompt_ids=prompts[0],
        prompt_offsets=prompts[1],
        output_ids=completions[0],
        output_offsets=completions[1],
        cached_tokens=_cached(columns["cached"]),
        ttft_s=None if np.isnan(columns["ttft"]).all() else columns["ttft"].copy(),
        e2e_s=None if np.isnan(columns["e2e"]).all() else columns["e2e"].copy(),
        groups=_groups(rows, columns["group"]),
        group_names=tuple(rows.groups) + (("",) if rows.groups and (columns["group"] == NONE).any() else ()),
        sessions=_sessions(columns["session"]),
        acceptance=acceptance,
        notes=notes,
        damaged=rows.bad.count,
        damaged_lines=tuple(rows.bad_lines),
        damaged_records=() if rows.in_lines else tuple(rows.bad.first),
        set_apart=sum(numbers.count for numbers in rows.apart.values()),
    )


def _kept(rows: Rows, columns: dict[str, Array]) -> NDArray[np.bool_] | None:
    """Which requests stay: all, or those that say what most say."""
    lacking = {"no_time": (rows.untimed, columns["arrival"] == NO_TIME), "output_unsaid": (rows.unsaid, columns["output"] == NONE)}
    kept = np.ones(len(columns["input"]), dtype=np.bool_)
    for reason, (numbers, missing) in lacking.items():
        if 0 < numbers.count < len(missing):
            rows.apart[reason] = numbers
            kept &= ~missing
    return None if kept.all() else kept


def _ragged(rows: Rows, columns: dict[str, Array], name: str, kept: NDArray[np.bool_] | None) -> tuple[Any, Any]:
    values, sizes = columns[name], np.frombuffer(rows.sizes[name], dtype=np.int32)
    if not len(values):
        return None, None
    if kept is not None:
        values, sizes = values[np.repeat(kept, sizes)], sizes[kept]
    return values, np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _cached(cached: Array) -> Array | None:
    # vLLM leaves prompt_tokens_details out of a response that hit nothing.
    return None if (cached == NONE).all() else np.maximum(cached, 0).astype(np.int64)


def _groups(rows: Rows, groups: Array) -> Array | None:
    return np.where(groups == NONE, len(rows.groups), groups).astype(np.int32) if rows.groups else None


def _sessions(sessions: Array) -> Array | None:
    """Numbers of conversations; a request without one is a conversation of its own."""
    if (sessions == NONE).all():
        return None
    alone = sessions == NONE
    found = sessions.astype(np.int64)
    found[alone] = sessions.max() + 1 + np.arange(alone.sum())
    return found


def _notes(rows: Rows, arrival: Array | None) -> list[Message]:
    path, requests = rows.source.path.name, len(rows.columns["input"])
    notes = [
        Message(f"trace.apart_{reason}", {"path": path, "count": numbers.count, "numbers": numbers.shown()})
        for reason, numbers in rows.apart.items()
    ]
    if arrival is not None and len(arrival) > 1:
        steps = np.diff(arrival)
        late, same = int((steps < 0).sum()), int((np.diff(np.sort(arrival)) == 0).sum() if (steps < 0).any() else (steps == 0).sum())
        if late:
            notes.append(Message("trace.unsorted", {"path": path, "late": late}))
        if len(arrival) >= MANY and same > CROWDED * (len(arrival) - 1):
            notes.append(Message("trace.crowded", {"path": path, "same": same, "requests": len(arrival)}))
    if rows.tally["zoned"] and rows.tally["unzoned"]:
        notes.append(Message("trace.zones", {"path": path, "unzoned": rows.tally["unzoned"], "zoned": rows.tally["zoned"]}))
    if rows.tally["inexact"]:
        notes.append(Message("trace.approximated", {"path": path, "requests": requests}))
    return notes
