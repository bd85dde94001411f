"""Conversations: how many requests each has, and what time passes between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.trace import Trace
from breakeven.traffic.lengths import Distribution, distribution


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The conversations of a trace."""

    sessions: int
    requests: Distribution
    """Requests of a session."""
    pause_s: Distribution | None
    """From one arrival to the next of the same session; None where no session has two, or the file has no times."""


def sessions_of(trace: Trace) -> Sessions | None:
    """The sessions of a trace; None where the file does not tell them apart."""
    if trace.sessions is None:
        return None
    _, places, counts = np.unique(trace.sessions, return_inverse=True, return_counts=True)
    requests = distribution(counts)
    if requests is None:
        return None
    return Sessions(sessions=len(counts), requests=requests, pause_s=_pauses(trace, places))


def _pauses(trace: Trace, places: np.ndarray) -> Distribution | None:
    if trace.arrival_s is None:
        return None
    order = np.argsort(places, kind="stable")
    times, owners = trace.arrival_s[order], places[order]
    return distribution(np.diff(times)[owners[1:] == owners[:-1]])
