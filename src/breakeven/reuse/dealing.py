"""A trace dealt to caches of their own: replicas, or ranks of attention data parallelism."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven.reuse.identity import Chains


def dealt(chained: Chains, caches: int) -> Chains:
    """The chains that so many caches see of requests dealt to them in turn; curves of it are at the capacity of one of them.

    The requests of one cache stand together, one cache after the other, and no two caches share an id: a stack passed from one to the
    next tells each its own distances. Requests are therefore in another order, and places of divergence are not to be read off it.
    """
    if caches <= 1:
        return chained
    order = np.argsort(np.arange(chained.requests) % caches, kind="stable")
    counts = np.diff(chained.offsets)[order]
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    places = np.repeat(chained.offsets[:-1][order] - offsets[:-1], counts) + np.arange(offsets[-1])
    own = np.repeat(order % caches, counts) * np.int64(chained.unique) + chained.ids[places]
    names, ids = np.unique(own, return_inverse=True)
    return replace(
        chained,
        ids=ids.astype(np.int32),
        offsets=offsets,
        lookups=chained.lookups[order],
        input_tokens=chained.input_tokens[order],
        unique=len(names),
    )
