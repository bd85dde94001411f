"""What the edges of a window cut: of what is counted as a request ends, those that run there are missed or counted whole."""

from __future__ import annotations

import numpy as np

from breakeven.observation.quantities import Quantities

AT_END = ("output_at_end", "output_llamacpp")
"""Senses of output tokens that move as a request ends."""


def share_at_edges(under_way: float, ended: float) -> float:
    """How far a sum over the requests that ended may miss what was done in the window: N/n, at most all of it. Unit: 1.

    N requests are under way at an edge and n ended: those that began before count whole, those that still run not at all.

    >>> share_at_edges(8.0, 160.0), share_at_edges(8.0, 0.0)
    (0.05, 1.0)
    """
    return min(under_way / ended, 1.0) if ended > 0.0 else 1.0


def cut_share(q: Quantities) -> float:
    """The same of an observation: by the gauge at the first and the last reading, over the requests that ended."""
    return share_at_edges(under_way(q), float(q.moved("requests_finished") or q.moved("e2e", "count") or movements(q)))


def under_way(q: Quantities) -> float:
    """Requests that run at the first and the last reading, in the mean; without a gauge, as many as begun and did not end."""
    some = q.series.get("running", ())
    if some:
        return sum(float(one.values[0] + one.values[-1]) for one in some) / 2.0
    return abs((q.rise("ttft", "count") or 0.0) - (q.rise("e2e", "count") or 0.0)) + 1.0


def movements(q: Quantities) -> int:
    """Readings that found more than the one before in what moves as a request ends: no more than ended."""
    return sum(int((np.diff(one.gained) > 0.0).sum()) for one in q.rises.get("decode_seconds", ()))


def counted_at_end(q: Quantities) -> bool:
    """Whether output tokens are counted as a request ends (llama.cpp, SGLang, TGI), and not with each step."""
    return any(one.alias.sense in AT_END for one in q.series.get("output_tokens", ())) or not q.has("output_tokens")
