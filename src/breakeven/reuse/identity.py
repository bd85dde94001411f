"""Which prompt blocks are the same: chained ids, dense, out of block hashes or token ids."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.reuse.hashing import chain_hashes, chain_tokens
from breakeven.trace import Ids, Ints, Trace


@dataclass(frozen=True, kw_only=True)
class Chains:
    """Prompt blocks of a trace by identity: an id stands for the whole prefix up to and including its block."""

    ids: Ids
    """Request after request, numbered from 0 in order of first appearance."""
    offsets: Ints
    """Where each request's ids begin; one more entry than requests."""
    lookups: Ints
    """Blocks of each request that may hit: the last token is always computed, so (I − 1)//block of them."""
    unique: int
    input_tokens: Ints
    block_tokens: int
    """Tokens that an id stands for: the engine's block, or what the trace knows identity by if that is coarser."""
    engine_block_tokens: int
    collisions: int = 0
    """Ids of the trace that occurred after more than one prefix."""
    rate: float = 1.0
    """Share of distinct blocks that are in here: below 1 for a sample."""
    blocks: int = 0
    """Blocks of all requests, sampled or not."""
    notes: tuple[Message, ...] = ()

    @property
    def requests(self) -> int:
        """Requests of the trace."""
        return len(self.lookups)


def chains(trace: Trace, block_tokens: int, partial: bool = False, within_sessions: bool = False) -> Chains:
    """Chained ids of a trace's prompt blocks at an engine's block size; a trace without identities is refused.

    Only full blocks are cached; ``partial`` counts the last, partial one too: it takes room, and never hits, since it holds the last
    token. ``within_sessions`` takes ids of block hashes to mean something within a session only.
    """
    if block_tokens < 1:
        raise InputError("reuse_block", value=block_tokens)
    if trace.prompt_ids is not None and trace.prompt_offsets is not None:
        return _of_tokens(trace, trace.prompt_ids, trace.prompt_offsets, block_tokens, partial)
    if trace.hash_ids is not None and trace.hash_offsets is not None and trace.block_tokens is not None:
        return _of_hashes(trace, trace.hash_ids, trace.hash_offsets, block_tokens, partial, within_sessions)
    raise InputError("trace_no_identity", path=trace.name)


def _of_tokens(trace: Trace, tokens: Ids, offsets: Ints, block: int, partial: bool) -> Chains:
    lengths = np.diff(offsets)
    counts = -(-lengths // block) if partial else lengths // block
    ids, unique = chain_tokens(tokens, offsets, counts, block)
    return _made(trace, ids, counts, block, block, unique)


def _of_hashes(trace: Trace, hashes: Ints, offsets: Ints, block: int, partial: bool, within_sessions: bool) -> Chains:
    known = trace.block_tokens or block  # chains() has seen to it that it is known
    given = np.diff(offsets)
    counts = np.minimum(given, -(-trace.input_tokens // known) if partial else trace.input_tokens // known)
    roots = np.zeros(trace.requests, dtype=np.int64)
    if within_sessions and trace.sessions is not None:
        roots = -1 - trace.sessions
    ids, table = chain_hashes(hashes, offsets[:-1], counts, roots)
    group = max(1, -(-block // known))
    unique = int(np.count_nonzero(table[1::2]))
    if group > 1:
        ids, counts, unique = _grouped(ids, counts, group, partial)
    collisions = _collisions(table)
    notes = (*_grain(trace, known, block, group * known), *_collided(trace, collisions), *_short(trace, given, known))
    return replace(_made(trace, ids, counts, group * known, block, unique), collisions=collisions, notes=notes)


def _made(trace: Trace, ids: Ids, counts: Ints, block: int, engine_block: int, unique: int) -> Chains:
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Chains(
        ids=ids,
        offsets=offsets,
        lookups=np.minimum(counts, np.maximum(trace.input_tokens - 1, 0) // block),
        unique=unique,
        input_tokens=trace.input_tokens,
        block_tokens=block,
        engine_block_tokens=engine_block,
        blocks=len(ids),
    )


def _grouped(ids: Ids, counts: Ints, group: int, partial: bool) -> tuple[Ids, Ints, int]:
    """Whole groups of blocks: a chained id stands for all before it, so the last id of a group stands for the group."""
    starts = np.cumsum(counts) - counts
    groups = -(-counts // group) if partial else counts // group
    owner = np.repeat(np.arange(len(counts)), groups)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(groups) - groups, groups)
    picked = ids[starts[owner] + np.minimum((within + 1) * group, counts[owner]) - 1]
    _, first, inverse = np.unique(picked, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int32)
    number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return number[inverse], groups, len(first)


def _collisions(table: Ints) -> int:
    """Ids that stand in the table under more than one parent."""
    ids = np.sort(table[0::2][table[1::2] != 0])
    again = ids[1:] == ids[:-1]
    return int(np.count_nonzero(again & ~np.concatenate(([False], again[:-1])))) if len(again) else 0


def _grain(trace: Trace, known: int, block: int, taken: int) -> tuple[Message, ...]:
    """What to say where identity is not known at the engine's own blocks."""
    if taken == block:
        return ()
    return (Message("reuse.grain", {"path": trace.name, "known": known, "block": block, "taken": taken}),)


def _collided(trace: Trace, collisions: int) -> tuple[Message, ...]:
    return (Message("reuse.collisions", {"path": trace.name, "collisions": collisions}),) if collisions else ()


def _short(trace: Trace, given: Ints, known: int) -> tuple[Message, ...]:
    """Requests whose ids are not as many as their prompts have blocks: what no id covers cannot hit, ids beyond the prompt are left out."""
    fewer = int(np.count_nonzero(given < trace.input_tokens // known))
    more = int(np.count_nonzero(given > -(-trace.input_tokens // known)))
    return (Message("reuse.ids_uneven", {"path": trace.name, "fewer": fewer, "more": more}),) if fewer or more else ()
