"""Which outputs are known when a request is drafted for: those that had ended when it arrived, as far as a log tells."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from breakeven.replay.sequences import Sequences
from breakeven.replay.suffix import INSERT, REMOVE, REPLAY
from breakeven.trace import Floats, Ints, Trace


@dataclass(frozen=True, kw_only=True)
class Acts:
    """What is done to the tree of outputs, in order."""

    kinds: Ints
    requests: Ints
    most_tokens: int
    """The most tokens in the tree at any time."""
    most_outputs: int
    """The most outputs in the tree at any time."""


@dataclass
class _Cache:
    """The outputs in the tree, the oldest first, and what was done to it."""

    tokens: Ints
    kept: int
    acts: list[tuple[int, int]] = field(default_factory=list)
    inside: OrderedDict[int, None] = field(default_factory=OrderedDict)
    held: int = 0
    most_tokens: int = 0
    most_outputs: int = 0

    def enter(self, kind: int, request: int) -> None:
        while self.kept and len(self.inside) >= self.kept:
            self.forget(next(iter(self.inside)))
        self.acts.append((kind, request))
        self.inside[request] = None
        self.held += int(self.tokens[request])
        self.most_tokens, self.most_outputs = max(self.most_tokens, self.held), max(self.most_outputs, len(self.inside))

    def forget(self, request: int) -> None:
        self.acts.append((REMOVE, request))
        del self.inside[request]
        self.held -= int(self.tokens[request])


def schedule(trace: Trace, log: Sequences, kept: int) -> Acts:
    """Requests in order of arrival; an output is known to those that arrive when it has ended, by the log's times.

    Where the log has no times of ends, requests count as answered one after the other: then all that came before is known.
    """
    tokens = log.output_tokens
    cache, ends = _Cache(tokens=tokens, kept=kept), _ends(trace)
    pending: list[tuple[float, int]] = []
    for request in range(log.requests):
        while pending and ends is not None and trace.arrival_s is not None and pending[0][0] <= trace.arrival_s[request]:
            cache.enter(INSERT, heapq.heappop(pending)[1])
        if tokens[request] == 0:
            continue  # never drafted for, so the engine never opens it
        if kept == 0:
            cache.acts.append((REPLAY, request))
            continue
        cache.enter(REPLAY, request)
        last = request + 1 == log.requests
        if ends is not None and trace.arrival_s is not None and not last and ends[request] > trace.arrival_s[request + 1]:
            cache.forget(request)
            heapq.heappush(pending, (float(ends[request]), request))
    acts = np.array(cache.acts, np.int64).reshape(-1, 2)
    return Acts(
        kinds=np.ascontiguousarray(acts[:, 0]),
        requests=np.ascontiguousarray(acts[:, 1]),
        most_tokens=cache.most_tokens,
        most_outputs=cache.most_outputs,
    )


def _ends(trace: Trace) -> Floats | None:
    """Seconds at which requests had ended; one without a time of its own counts as never ended. None where no request has one."""
    if trace.arrival_s is None or trace.e2e_s is None or not np.isfinite(trace.e2e_s).any():
        return None
    return np.where(np.isfinite(trace.e2e_s), trace.arrival_s + trace.e2e_s, np.inf)
