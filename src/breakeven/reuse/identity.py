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


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """How the prompts of a trace are cut: blocks of ``group`` values each, of which only equal sequences from the start are equal."""

    values: Ids | Ints
    """Token ids, or the trace's own block ids."""
    starts: Ints
    lengths: Ints
    """Values of each request that are used."""
    counts: Ints
    """Blocks of each request."""
    group: int
    block_tokens: int
    roots: Ints
    notes: tuple[Message, ...] = ()


def blocks_of(trace: Trace, block_tokens: int, partial: bool, within_sessions: bool) -> Blocks:
    """The blocks of a trace's prompts: whole groups of the trace's own blocks, else of token ids at the engine's size."""
    if block_tokens < 1:
        raise InputError("reuse_block", value=block_tokens)
    roots = np.zeros(trace.requests, dtype=np.int64)
    if within_sessions and trace.sessions is not None:
        roots = -1 - trace.sessions
    if trace.hash_ids is None and trace.prompt_ids is not None and trace.prompt_offsets is not None:
        lengths = np.diff(trace.prompt_offsets)
        return _cut(trace.prompt_ids, trace.prompt_offsets, lengths, block_tokens, block_tokens, partial, 0 * roots)
    if trace.hash_ids is None or trace.hash_offsets is None or trace.block_tokens is None:
        raise InputError("trace_no_identity", path=trace.name)
    known, given, prompts = trace.block_tokens, np.diff(trace.hash_offsets), trace.input_tokens
    notes = () if within_sessions else _of_sessions(trace, given)
    lengths = np.minimum(given, -(-prompts // known) if partial else prompts // known)
    group = -(-block_tokens // known)
    cut = _cut(trace.hash_ids, trace.hash_offsets, lengths, group, group * known, partial, roots)
    return replace(cut, notes=(*_grain(trace, known, block_tokens, group * known), *_uneven(trace, given, known), *notes))


def _cut(values: Ids | Ints, offsets: Ints, lengths: Ints, group: int, block: int, partial: bool, roots: Ints) -> Blocks:
    counts = -(-lengths // group) if partial else lengths // group
    used = lengths if partial else counts * group
    return Blocks(values=values, starts=offsets[:-1], lengths=used, counts=counts, group=group, block_tokens=block, roots=roots)


def chains(trace: Trace, block_tokens: int, partial: bool = False, within_sessions: bool = False) -> Chains:
    """Chained ids of a trace's prompt blocks at an engine's block size; a trace without identities is refused.

    Only full blocks are cached; ``partial`` counts the last, partial one too: it takes room, and never hits, since it holds the last
    token. ``within_sessions`` takes ids of block hashes to mean something within a session only.
    """
    cut = blocks_of(trace, block_tokens, partial, within_sessions)
    if trace.hash_ids is None and trace.prompt_ids is not None:
        ids, unique = chain_tokens(cut.values, cut.starts, cut.lengths, cut.counts, cut.group)
        return chains_of(trace, block_tokens, cut, ids, cut.counts, unique)
    ids, names = chain_hashes(cut.values, cut.starts, cut.lengths, cut.roots)
    unique, collisions = len(names), _collisions(names)
    if cut.group > 1:
        ids, unique = _grouped(ids, cut)
    found = chains_of(trace, block_tokens, cut, ids, cut.counts, unique)
    return replace(found, collisions=collisions, notes=(*found.notes, *_collided(trace, collisions)))


def lookups_of(trace: Trace, cut: Blocks) -> Ints:
    """Blocks of each request that may hit: those that end before the last token."""
    return np.asarray(np.minimum(cut.counts, np.maximum(trace.input_tokens - 1, 0) // cut.block_tokens))


def chains_of(trace: Trace, engine_block_tokens: int, cut: Blocks, ids: Ids, counts: Ints, unique: int) -> Chains:
    """Chains of ids as they are, ``counts`` of them a request."""
    return Chains(
        ids=ids,
        offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        lookups=lookups_of(trace, cut),
        unique=unique,
        input_tokens=trace.input_tokens,
        block_tokens=cut.block_tokens,
        engine_block_tokens=engine_block_tokens,
        blocks=int(cut.counts.sum()),
        notes=cut.notes,
    )


def _grouped(ids: Ids, cut: Blocks) -> tuple[Ids, int]:
    """Whole groups of blocks: a chained id stands for all before it, so the last id of a group stands for the group."""
    starts = np.cumsum(cut.lengths) - cut.lengths
    owner = np.repeat(np.arange(len(cut.counts)), cut.counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(cut.counts) - cut.counts, cut.counts)
    picked = ids[starts[owner] + np.minimum((within + 1) * cut.group, cut.lengths[owner]) - 1]
    _, first, inverse = np.unique(picked, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int32)
    number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return number[inverse], len(first)


def _collisions(names: Ints) -> int:
    """Ids that more than one chained id was made of: that occurred after more than one prefix."""
    ids = np.sort(names)
    again = ids[1:] == ids[:-1]
    return int(np.count_nonzero(again & ~np.concatenate(([False], again[:-1])))) if len(again) else 0


def _grain(trace: Trace, known: int, block: int, taken: int) -> tuple[Message, ...]:
    """What to say where identity is not known at the engine's own blocks."""
    if taken == block:
        return ()
    return (Message("reuse.grain", {"path": trace.name, "known": known, "block": block, "taken": taken}),)


def _collided(trace: Trace, collisions: int) -> tuple[Message, ...]:
    return (Message("reuse.collisions", {"path": trace.name, "collisions": collisions}),) if collisions else ()


def _uneven(trace: Trace, given: Ints, known: int) -> tuple[Message, ...]:
    """Requests whose ids are not as many as their prompts have blocks: what no id covers cannot hit, ids beyond the prompt are left out."""
    fewer = int(np.count_nonzero(given < trace.input_tokens // known))
    more = int(np.count_nonzero(given > -(-trace.input_tokens // known)))
    return (Message("reuse.ids_uneven", {"path": trace.name, "fewer": fewer, "more": more}),) if fewer or more else ()


def _of_sessions(trace: Trace, given: Ints) -> tuple[Message, ...]:
    """Where most sessions' ids count from one number on without a gap, as ids do that mean something within a session only."""
    asked = np.flatnonzero(given)
    if trace.sessions is None or trace.hash_ids is None or trace.hash_offsets is None or not len(asked):
        return ()
    found, which = np.unique(trace.sessions[asked], return_inverse=True)
    first, last = np.full(len(found), np.iinfo(np.int64).max), np.full(len(found), np.iinfo(np.int64).min)
    np.minimum.at(first, which, np.minimum.reduceat(trace.hash_ids, trace.hash_offsets[asked]))
    np.maximum.at(last, which, np.maximum.reduceat(trace.hash_ids, trace.hash_offsets[asked]))
    # Sessions of one id, a system prompt's, say nothing; ids given out over all sessions lie further apart than a session has ids.
    dense = (last > first) & (last - first < np.bincount(which, weights=given[asked]))
    counting = int(np.unique(first[dense], return_counts=True)[1].max(initial=0))
    if counting < 2 or 2 * counting <= len(found):
        return ()
    return (Message("reuse.ids_of_sessions", {"path": trace.name, "counting": counting, "sessions": len(found)}),)
