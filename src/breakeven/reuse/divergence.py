"""Where prompts that share a prefix part, and how many prompt tokens are computed again because of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.errors import InputError
from breakeven.reuse.identity import Chains
from breakeven.stats import Flags
from breakeven.trace import Floats, Ids, Ints

SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Split:
    """One place where prompts with an equal prefix go on differently."""

    position_tokens: int
    """Tokens of the shared prefix, in whole blocks: the texts part within the block that follows. 0 where nothing is shared."""
    requests: int
    """Requests that reach it and go on."""
    continuations: int
    """Different blocks they go on with."""
    lost_tokens: int
    """Prompt tokens after it of the requests that left every path taken before them; the first path is nobody's loss."""
    share: float
    """The same over all prompt tokens."""


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """What becomes of the prompt tokens in a cache without end; the four shares add up to 1."""

    reused: float
    """Found in the cache."""
    diverged: float
    """After a split: the beginning was known, and another text had followed it."""
    extended: float
    """New at the end of a known text (the next turn of a conversation), or of the first prompt of all."""
    tails: float
    """In the last block, or beyond the blocks that the trace knows, of prompts that are known as far as blocks go."""
    positions: Ints
    """Positions in tokens of splits, ascending …"""
    position_share: Floats
    """… and the share of all prompt tokens that is lost after splits there."""
    splits: tuple[Split, ...]
    """The splits that cost most, those first."""


def divergence(chained: Chains, shown: int = SHOWN) -> Divergence:
    """The splits of a trace's prompts by what they cost. A sample of blocks knows no neighbours, and is refused."""
    if chained.rate < 1:
        raise InputError("reuse_sampled", rate=chained.rate)
    before, depth = _before(chained)
    new = _first_appearance(chained.ids)
    leaves, known = _leaving(chained, new)
    hits = np.minimum(known, chained.lookups)
    lost = chained.input_tokens - hits * chained.block_tokens
    split = (leaves >= 0) & ~_first_child(before, new)[leaves]
    total = max(int(chained.input_tokens.sum()), 1)
    positions, inverse = np.unique(hits[split] * chained.block_tokens, return_inverse=True)
    return Divergence(
        reused=float(hits.sum() * chained.block_tokens / total),
        diverged=float(lost[split].sum() / total),
        extended=float(lost[(leaves >= 0) & ~split].sum() / total),
        tails=float(lost[leaves < 0].sum() / total),
        positions=positions,
        position_share=np.bincount(inverse, weights=lost[split] / total, minlength=len(positions)).astype(np.float64),
        splits=_splits(chained, before, depth, before[leaves[split]], lost[split], shown),
    )


def _splits(chained: Chains, before: Ints, depth: Ints, at: Ints, lost: Ints, shown: int) -> tuple[Split, ...]:
    """The places that requests left, by the tokens lost there, and what else is to be said of them."""
    size, total = chained.unique + 1, max(int(chained.input_tokens.sum()), 1)
    reaching = np.bincount(before, minlength=size)
    children = np.bincount(before[_first_appearance(chained.ids)], minlength=size)
    place = np.zeros(size, dtype=np.int64)
    place[before] = depth * chained.block_tokens
    cost = np.bincount(at, weights=lost, minlength=size).astype(np.int64)
    return tuple(
        Split(
            position_tokens=int(place[node]),
            requests=int(reaching[node]),
            continuations=int(children[node]),
            lost_tokens=int(cost[node]),
            share=float(cost[node] / total),
        )
        for node in np.argsort(-cost, kind="stable")[: min(shown, np.count_nonzero(cost))]
    )


def _before(chained: Chains) -> tuple[Ints, Ints]:
    """What each block hangs on (0 nothing, else chained id + 1), and its place in its chain."""
    counts = np.diff(chained.offsets)
    depth = np.arange(len(chained.ids)) - np.repeat(chained.offsets[:-1], counts)
    before = np.concatenate(([0], chained.ids[:-1].astype(np.int64) + 1))[: len(chained.ids)]
    return np.where(depth == 0, 0, before), depth


def _first_appearance(ids: Ids) -> Flags:
    """Ids count from 0 in order of first appearance, so a new one is higher than all before it."""
    return np.asarray(np.diff(np.maximum.accumulate(ids), prepend=-1) > 0) if len(ids) else np.zeros(0, dtype=bool)


def _leaving(chained: Chains, new: Flags) -> tuple[Ints, Ints]:
    """Of each request where its first new block is (−1 if all are known), and how many known ones stand before it."""
    seen = np.concatenate(([0], np.cumsum(~new)))
    known = seen[chained.offsets[1:]] - seen[chained.offsets[:-1]]
    leaves = chained.offsets[:-1] + known
    return np.where(leaves < chained.offsets[1:], leaves, -1), known


def _first_child(before: Ints, new: Flags) -> Flags:
    """Whether a block is the first that hangs on its place; requests are in order of arrival. One entry more, for no block."""
    first = np.zeros(len(before) + 1, dtype=bool)
    places = np.flatnonzero(new)
    first[places[np.unique(before[places], return_index=True)[1]]] = True
    return first
