"""The logged token sequences of a trace, as a replay reads them: prompts, outputs, groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.errors import InputError, NotModelledError
from breakeven.trace import Ids, Ints, Trace

MOST_TOKENS = 2**31 - 1
"""Places in a log are kept in 32 bits."""


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """Token ids of prompts and outputs, request after request, in order of arrival."""

    prompt_ids: Ids
    prompt_offsets: Ints
    output_ids: Ids
    output_offsets: Ints
    groups: Ints
    """The group of each request: places in ``group_names``; zeros where the log names none."""
    group_names: tuple[str, ...]

    @property
    def requests(self) -> int:
        """Requests in the log."""
        return len(self.output_offsets) - 1

    @property
    def output_tokens(self) -> Ints:
        """Logged output tokens a request."""
        return np.diff(self.output_offsets)


def sequences(trace: Trace) -> Sequences:
    """What a trace holds for a replay; one without the token ids of its outputs is refused.

    Copies, since a trace's arrays are read-only and compiled code would be compiled once more for such.
    """
    if trace.output_ids is None or trace.output_offsets is None:
        raise InputError("replay_no_tokens", path=trace.name)
    if len(trace.output_ids) > MOST_TOKENS or (trace.prompt_ids is not None and len(trace.prompt_ids) > MOST_TOKENS):
        raise NotModelledError("replay_too_long", path=trace.name)
    prompts, offsets = trace.prompt_ids, trace.prompt_offsets
    if prompts is None or offsets is None:
        prompts, offsets = np.zeros(0, np.int32), np.zeros(trace.requests + 1, np.int64)
    groups = np.zeros(trace.requests, np.int64) if trace.groups is None else trace.groups.astype(np.int64)
    return Sequences(
        prompt_ids=np.array(prompts),
        prompt_offsets=np.array(offsets),
        output_ids=np.array(trace.output_ids),
        output_offsets=np.array(trace.output_offsets),
        groups=groups,
        group_names=trace.group_names if trace.groups is not None else (),
    )
