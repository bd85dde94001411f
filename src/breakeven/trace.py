"""What a trace is: arrivals, lengths and, where recorded, the identity of prompt blocks, as frozen arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.spec.workload import Lengths

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LONGEST_REQUEST = 10**9
"""Tokens beyond which a line is damaged rather than long."""
SHOWN_LINES = 5


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Requests in order of arrival. Every array is read-only and has one entry a request."""

    name: str
    form: str
    """The reader that made it: ``azure``, ``mooncake`` …"""
    arrival_s: Floats
    """Seconds from the first arrival."""
    input_tokens: Ints
    output_tokens: Ints
    hash_ids: Ints | None = None
    """Ids of prompt blocks, request after request; equal ids are equal blocks."""
    hash_offsets: Ints | None = None
    """Where each request's ids begin in ``hash_ids``; one more entry than requests."""
    block_tokens: int | None = None
    """Tokens in a block that an id stands for."""
    damaged: int = 0
    """Lines that could not be read, and are not in the arrays."""
    damaged_lines: tuple[int, ...] = ()
    """The numbers of the first of them, from 1."""

    @property
    def requests(self) -> int:
        """Requests in the trace."""
        return len(self.arrival_s)


def make_trace(trace: Trace) -> Trace:
    """A trace sorted by arrival, counted from its first, its arrays frozen; one without a request is refused."""
    if trace.requests == 0:
        raise InputError("trace_empty", path=trace.name, damaged=trace.damaged)
    order = np.argsort(trace.arrival_s, kind="stable")
    ids, offsets = _sorted_ids(trace, order)
    arrival = trace.arrival_s[order]
    sorted_trace = replace(
        trace,
        arrival_s=arrival - arrival[0],
        input_tokens=trace.input_tokens[order],
        output_tokens=trace.output_tokens[order],
        hash_ids=ids,
        hash_offsets=offsets,
    )
    for array in (sorted_trace.arrival_s, sorted_trace.input_tokens, sorted_trace.output_tokens, ids, offsets):
        if array is not None:
            array.setflags(write=False)
    return sorted_trace


def _sorted_ids(trace: Trace, order: Ints) -> tuple[Ints | None, Ints | None]:
    if trace.hash_ids is None or trace.hash_offsets is None:
        return None, None
    if bool(np.all(order[1:] > order[:-1])):
        return trace.hash_ids, trace.hash_offsets
    starts, ends = trace.hash_offsets[:-1][order], trace.hash_offsets[1:][order]
    pieces = [trace.hash_ids[start:end] for start, end in zip(starts, ends, strict=True)]
    return np.concatenate(pieces), np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int64)


def lengths(trace: Trace) -> Lengths:
    """Moments of prompt and output lengths, and the quantiles of the output's."""
    prompt, output = trace.input_tokens.astype(np.float64), trace.output_tokens.astype(np.float64)
    return Lengths(
        requests=trace.requests,
        mean_input=float(prompt.mean()),
        mean_output=float(output.mean()),
        mean_input_squared=float((prompt**2).mean()),
        mean_output_squared=float((output**2).mean()),
        mean_input_output=float((prompt * output).mean()),
        output_quantiles=tuple(float(value) for value in np.quantile(output, np.linspace(0, 1, 101))),
    )


def request_rate(trace: Trace) -> float:
    """Arrivals a second: n − 1 intervals over the time from the first to the last."""
    if trace.requests < 2:
        raise InputError("trace_one_request", path=trace.name)
    span = float(trace.arrival_s[-1])
    if span <= 0:
        raise InputError("trace_no_rate", path=trace.name, requests=trace.requests)
    return (trace.requests - 1) / span


def damage(trace: Trace) -> tuple[Message, ...]:
    """What to say of the lines that could not be read."""
    if not trace.damaged:
        return ()
    shown = ", ".join(str(line) for line in trace.damaged_lines)
    return (Message("warning.trace_damaged", {"path": trace.name, "damaged": trace.damaged, "requests": trace.requests, "lines": shown}),)


def first_lines(lines: Sequence[int]) -> tuple[int, ...]:
    """The line numbers that are shown."""
    return tuple(lines[:SHOWN_LINES])
