"""What a trace is: arrivals, lengths and, where recorded, the identity of prompt blocks, as frozen arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.spec.workload import Acceptance, Lengths

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
LONGEST_REQUEST = 10**9
"""Tokens beyond which a line is damaged rather than long."""
SHOWN_LINES = 5


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Requests in order of arrival. Every array is read-only and has one entry a request."""

    name: str
    form: str
    """The reader that made it: ``azure``, ``mooncake`` …"""
    arrival_s: Floats | None
    """Seconds from the first arrival; None where the file has no times (:func:`arrivals` refuses by name)."""
    input_tokens: Ints
    output_tokens: Ints | None
    """None where the file does not say (:func:`outputs` refuses by name)."""
    hash_ids: Ints | None = None
    """Ids of prompt blocks, request after request; equal ids are equal blocks."""
    hash_offsets: Ints | None = None
    """Where each request's ids begin in ``hash_ids``; one more entry than requests."""
    block_tokens: int | None = None
    """Tokens in a block that an id stands for."""
    prompt_ids: Ids | None = None
    """Token ids of the prompts, request after request; kept only where asked for."""
    prompt_offsets: Ints | None = None
    output_ids: Ids | None = None
    """Token ids that were generated, request after request; kept only where asked for."""
    output_offsets: Ints | None = None
    cached_tokens: Ints | None = None
    """Prompt tokens that the engine said it took from its prefix cache."""
    ttft_s: Floats | None = None
    """Times to the first token as measured, NaN where a request has none."""
    e2e_s: Floats | None = None
    groups: NDArray[np.int32] | None = None
    """Which route, model, tenant or session a request belongs to: places in ``group_names``."""
    group_names: tuple[str, ...] = ()
    sessions: Ints | None = None
    """Which conversation a request belongs to, as numbers from 0."""
    acceptance: Acceptance | None = None
    """Draft acceptance as the file states it."""
    notes: tuple[Message, ...] = ()
    """What there is to say of the file: times out of order, zones mixed, lengths approximated …"""
    damaged: int = 0
    """Lines that could not be read, and are not in the arrays."""
    damaged_lines: tuple[int, ...] = ()
    """The numbers of the first of them, from 1."""
    damaged_records: tuple[int, ...] = ()
    """Which elements of the file they are, from 1, where its records are no lines."""
    set_apart: int = 0
    """Records that were read and are no requests that were served, so not in the arrays; ``notes`` says why."""

    @property
    def requests(self) -> int:
        """Requests in the trace."""
        return len(self.input_tokens)


PER_REQUEST = ("arrival_s", "input_tokens", "output_tokens", "cached_tokens", "ttft_s", "e2e_s", "groups", "sessions")
RAGGED = (("hash_ids", "hash_offsets"), ("prompt_ids", "prompt_offsets"), ("output_ids", "output_offsets"))


def make_trace(trace: Trace) -> Trace:
    """A trace sorted by arrival, counted from its first, its arrays frozen; one without a request is refused."""
    if trace.requests == 0:
        raise InputError("trace_empty", path=trace.name, damaged=trace.damaged, apart=trace.set_apart)
    arrays: dict[str, Any] = {name: getattr(trace, name) for name in (*PER_REQUEST, *(name for pair in RAGGED for name in pair))}
    if trace.arrival_s is not None:
        if bool(np.any(trace.arrival_s[1:] < trace.arrival_s[:-1])):
            order = np.argsort(trace.arrival_s, kind="stable")
            arrays |= {name: arrays[name][order] for name in PER_REQUEST if arrays[name] is not None}
            for values, offsets in RAGGED:
                arrays[values], arrays[offsets] = _sorted_ragged(arrays[values], arrays[offsets], order)
        if arrays["arrival_s"][0] != 0.0:
            arrays["arrival_s"] = arrays["arrival_s"] - arrays["arrival_s"][0]
    for array in arrays.values():
        if array is not None:
            array.setflags(write=False)
    return replace(trace, **arrays)


def _sorted_ragged(values: Any, offsets: Ints | None, order: Ints) -> tuple[Any, Ints | None]:
    if values is None or offsets is None:
        return None, None
    starts, ends = offsets[:-1][order], offsets[1:][order]
    pieces = [values[start:end] for start, end in zip(starts, ends, strict=True)]
    return np.concatenate(pieces), np.concatenate(([0], np.cumsum(ends - starts))).astype(np.int64)


def arrivals(trace: Trace) -> Floats:
    """Seconds from the first arrival; a file without times is refused."""
    if trace.arrival_s is None:
        raise InputError("trace_no_times", path=trace.name)
    return trace.arrival_s


def outputs(trace: Trace) -> Ints:
    """Generated tokens a request; a file that does not tell them is refused."""
    if trace.output_tokens is None:
        raise InputError("trace_no_outputs", path=trace.name)
    return trace.output_tokens


def lengths(trace: Trace) -> Lengths:
    """Moments of prompt and output lengths, and the quantiles of the output's."""
    prompt, output = trace.input_tokens.astype(np.float64), outputs(trace).astype(np.float64)
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
    span = float(arrivals(trace)[-1])
    if span <= 0:
        raise InputError("trace_no_rate", path=trace.name, requests=trace.requests)
    return (trace.requests - 1) / span


def damage(trace: Trace) -> tuple[Message, ...]:
    """What to say of the records that could not be read: by their lines, or as elements where a line may hold many."""
    if not trace.damaged:
        return ()
    told: dict[str, object] = {"path": trace.name, "damaged": trace.damaged, "requests": trace.requests}
    single = "" if trace.damaged > 1 else "_one"
    if not trace.damaged_records:
        return (Message(f"warning.trace_damaged{single}", {**told, "lines": ", ".join(map(str, trace.damaged_lines))}),)
    # Of a table's elements no line is known: their own numbers stand in its place.
    if len(set(trace.damaged_lines)) == 1 or trace.damaged_lines == trace.damaged_records:
        return (Message(f"warning.trace_damaged_elements{single}", {**told, "elements": ", ".join(map(str, trace.damaged_records))}),)
    records = ", ".join(f"{record}:{line}" for record, line in zip(trace.damaged_records, trace.damaged_lines, strict=True))
    return (Message("warning.trace_damaged_records", {**told, "records": records}),)
