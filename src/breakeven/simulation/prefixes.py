"""Which prompts share their beginnings: as the trace's identities have it, as a declared share, or not known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm
from typing import Literal

import numpy as np

from breakeven.messages import Message
from breakeven.simulation.arrays import Requests
from breakeven.spec.deployment import Deployment
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
    if trace is not None and (trace.hash_ids is not None or trace.prompt_ids is not None):
        return _chained(d, trace, requests)
    if d.workload.prefix_hit_rate is None:
        return Prefixes(requests=requests, known="unknown", notes=(Message("simulate.note_prefixes_unknown", {}),))
    share = float(median(d.workload.prefix_hit_rate))
    notes = (Message("simulate.note_prefixes_declared", {"share": share}),) if share else ()
    return Prefixes(requests=shared_beginning(requests, share, d.engine.block_size), known="declared", notes=notes)


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
