"""What the edges of a window cut: of what is counted as a request ends, those that run there are missed or counted whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.observation.quantities import Quantities

AT_END = ("output_at_end", "output_llamacpp")
"""Senses of output tokens that move as a request ends."""
WRITTEN = "decode_output_tokens"


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


@dataclass(frozen=True, kw_only=True)
class UnderWay:
    """Output tokens that sequences under way had at the edges of the window, all replicas together: they are counted once they end."""

    first: float
    last: float
    sequences: float
    """At both edges together."""

    @property
    def more(self) -> float:
        """What is to be added to those of requests that ended, to have what was generated in the window."""
        return self.last - self.first


def written(q: Quantities) -> UnderWay | None:
    """What llama.cpp's slots had written at the first and the last reading; None where one is not told, or a replica began anew.

    A reading that tells no number of running requests is none of an idle replica: what was written by then is not known.
    """
    counted = [one for some in q.rises.values() for one in some]
    if any(one.resets for one in counted):
        return None
    moments = [(source, float(times[place])) for place in (0, -1) for source, times in q.read_at.items()]
    tokens = [0.0 if _at(q, "running", *moment) == 0.0 else _at(q, WRITTEN, *moment) for moment in moments]
    known = [value for value in tokens if value is not None]
    if not q.has(WRITTEN) or len(known) < len(tokens):
        return None
    servers = len(q.read_at)
    decoding = sum(_at(q, "running_decode", *moment) or 0.0 for moment in moments)
    return UnderWay(first=sum(known[:servers]), last=sum(known[servers:]), sequences=decoding)


def _at(q: Quantities, quantity: str, source: str, at_s: float) -> float | None:
    """A replica's gauge at a reading; None where it was not told just then."""
    some = [one for one in q.series.get(quantity, ()) if one.source == source and at_s in one.times]
    return sum(float(one.values[int(np.searchsorted(one.times, at_s))]) for one in some) if some else None


def movements(q: Quantities) -> int:
    """Readings that found more than the one before in what moves as a request ends: no more than ended."""
    return sum(int((np.diff(one.gained) > 0.0).sum()) for one in q.rises.get("decode_seconds", ()))


def counted_at_end(q: Quantities) -> bool:
    """Whether output tokens are counted as a request ends (llama.cpp, SGLang, TGI), and not with each step."""
    return any(one.alias.sense in AT_END for one in q.series.get("output_tokens", ())) or not q.has("output_tokens")
