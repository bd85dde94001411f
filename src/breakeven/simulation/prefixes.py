"""Which prompts share their beginnings: as the trace's identities have it, as a declared share, or not known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import Literal

import numpy as np

from breakeven.messages import Message
from breakeven.simulation.arrays import Requests
from breakeven.spec.deployment import Deployment
from breakeven.spec.parallel import layout
from breakeven.stats import median
from breakeven.trace import Trace

Known = Literal["trace", "declared", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Prefixes:
    """Requests with their chained ids, and where those are from."""

    requests: Requests
    known: Known
    notes: tuple[Message, ...] = ()


def prefixes(d: Deployment, trace: Trace | None, requests: Requests) -> Prefixes:
    """The chained ids of prompts; where nobody knows which prompts repeat, none does, and that is said."""
    ranks = layout(d.model, d.engine).ranks
    if trace is not None and (trace.hash_ids is not None or trace.prompt_ids is not None):
        found = _chained(d, trace, requests)
        return replace(found, requests=of_ranks(found.requests, ranks, d.replicas), notes=(*found.notes, *_unused(d)))
    if d.workload.prefix_hit_rate is None:
        return Prefixes(requests=requests, known="unknown", notes=(Message("simulate.note_prefixes_unknown", {}),))
    share = float(median(d.workload.prefix_hit_rate))
    notes = (Message("simulate.note_prefixes_declared", {"share": share}),) if share else ()
    shared = shared_beginning(requests, share, d.engine.block_size)
    return Prefixes(requests=of_ranks(shared, ranks, d.replicas), known="declared", notes=notes)


def _unused(d: Deployment) -> tuple[Message, ...]:
    """A declared share gives way to the identities of a trace; that is said, since advise takes the share."""
    rate = d.workload.prefix_hit_rate
    if rate is None or d.provenance.get("workload.prefix_hit_rate") != "declared":
        return ()
    return (Message("simulate.note_prefixes_unused", {"share": float(median(rate))}),)


def of_ranks(requests: Requests, ranks: int, replicas: int) -> Requests:
    """Ranks of attention data parallelism have caches of their own, to which a replica's requests are taken to be dealt in turn.

    No two of them share an id; the pool is one (:func:`breakeven.simulation.costs.engine_of`).
    """
    if ranks == 1 or requests.chain_ids is None or requests.chain_offsets is None:
        return requests
    turn = np.arange(len(requests.input_tokens)) // replicas % ranks
    own = requests.chain_ids * ranks + np.repeat(turn, np.diff(requests.chain_offsets))
    return replace(requests, chain_ids=np.unique(own, return_inverse=True)[1].astype(np.int64))


def shared_beginning(requests: Requests, share: float, block_tokens: int) -> Requests:
    """A share of every prompt, in whole blocks, that is the beginning of one and the same text.

    Only the first to come computes it, and it is stored once: the j-th block of it has the id j.
    """
    blocks = (share * requests.input_tokens / block_tokens + 0.5).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(blocks))).astype(np.int64)
    ids = np.arange(offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1], blocks)
    return replace(requests, chain_ids=ids, chain_offsets=offsets, chain_tokens=block_tokens)


def _chained(d: Deployment, trace: Trace, requests: Requests) -> Prefixes:
    """The trace's own identities, chained as the engine's cache chains blocks."""
    from breakeven import reuse

    block = d.engine.block_size
    found = reuse.chains(trace, block)
    if found.block_tokens % block:
        # Whole blocks of the engine alone can hit: then a piece that is whole in both.
        found = reuse.chains(trace, lcm(found.block_tokens, block))
    offsets = np.asarray(found.offsets[: len(requests.input_tokens) + 1], dtype=np.int64)
    ids = np.asarray(found.ids[: offsets[-1]], dtype=np.int64)
    chained = replace(requests, chain_ids=ids, chain_offsets=offsets, chain_tokens=found.block_tokens)
    return Prefixes(requests=chained, known="trace", notes=found.notes)
