"""Azure LLM inference traces (2023, 2024): ``TIMESTAMP,ContextTokens,GeneratedTokens``, no identity of prompts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from breakeven.trace import LONGEST_REQUEST, Floats, Trace, first_lines, make_trace

HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens"
Row = tuple[str, int, int]


def sniff(head: bytes) -> bool:
    """Whether a file begins as these traces do."""
    return head.removeprefix(b"\xef\xbb\xbf").startswith(HEADER)


def read(path: Path) -> Trace:
    """The requests of a file; lines that cannot be read are counted."""
    rows: list[Row] = []
    numbers: list[int] = []
    damaged: list[int] = []
    with path.open("rb") as handle:
        next(handle)
        for number, line in enumerate(handle, start=2):
            if not line.strip():
                continue
            row = _row(line)
            if row is None:
                damaged.append(number)
            else:
                rows.append(row)
                numbers.append(number)
    arrivals = _arrivals([row[0] for row in rows])
    good = np.isfinite(arrivals)
    damaged = sorted(damaged + [numbers[place] for place in np.flatnonzero(~good)])
    counts = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 2)[good]
    return make_trace(
        Trace(
            name=path.name,
            form="azure",
            arrival_s=arrivals[good],
            input_tokens=counts[:, 0],
            output_tokens=counts[:, 1],
            damaged=len(damaged),
            damaged_lines=first_lines(damaged),
        )
    )


def _row(line: bytes) -> Row | None:
    """Time stamp and token counts of a line, or none when it is damaged."""
    stamp, _, rest = line.partition(b",")
    prompt, comma, output = rest.partition(b",")
    try:
        found = stamp[:27].decode("ascii").partition("+")[0].rstrip("Z"), int(prompt), int(output)
    except ValueError:
        return None
    # numpy also reads "today" and wraps years that nanoseconds cannot hold.
    if found[0][:2] not in ("19", "20"):
        return None
    within = 0 < found[1] <= LONGEST_REQUEST and 0 < found[2] <= LONGEST_REQUEST
    return found if comma and within else None


def _arrivals(stamps: list[str]) -> Floats:
    """Seconds since the epoch's day of the first; NaN where a stamp is none, for the caller to take out."""
    try:
        times = np.array(stamps, dtype="datetime64[ns]")
    except ValueError:
        times = np.array([_stamp(stamp) for stamp in stamps], dtype="datetime64[ns]")
    seconds = (times - times[~np.isnat(times)].min(initial=np.datetime64("2262-01-01", "ns"))) / np.timedelta64(1, "s")
    return np.asarray(np.where(np.isnat(times), np.nan, seconds), dtype=np.float64)


def _stamp(text: str) -> np.datetime64:
    try:
        return np.datetime64(text, "ns")
    except ValueError:
        return np.datetime64("NaT", "ns")
