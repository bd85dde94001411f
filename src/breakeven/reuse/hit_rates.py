"""The reuse curve: the share of prompts that a prefix cache serves, at every capacity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.reuse.identity import Chains
from breakeven.reuse.stack import distances
from breakeven.stats import Array
from breakeven.trace import Floats, Ids, Ints


@dataclass(frozen=True, kw_only=True)
class ReuseCurve:
    """Hits at every capacity. ``hits`` and ``touched`` are at 0, 1, 2 … blocks of the sample; beyond their end they stay."""

    requests: int
    tokens: int
    """Prompt tokens of all requests."""
    blocks: int
    """Prompt blocks of all requests."""
    unique: int
    """Distinct blocks; of a sample an estimate."""
    block_tokens: int
    engine_block_tokens: int
    hits: Floats
    """Blocks that hit."""
    touched: Floats | None
    """Requests with at least one hit; a sample of blocks does not tell."""
    rate: float = 1.0
    error: float = 0.0
    """Half-width of the 95 % interval of the hit rates of a sample, where it is widest; 0 where it is exact."""
    errors: tuple[Floats, Floats] | None = None
    """Capacities in blocks and the half-width at each (:func:`error_at`)."""
    notes: tuple[Message, ...] = ()

    @property
    def capacities(self) -> Ints:
        """Capacities in blocks at which ``hits`` and ``touched`` are given."""
        return np.ceil(np.maximum((np.arange(len(self.hits)) - 1) / self.rate + 1, 0)).astype(np.int64)

    @property
    def unbounded(self) -> float:
        """Share of prompt tokens that a cache without end would serve."""
        return float(self.hits[-1] * self.block_tokens / self.tokens)

    @property
    def unbounded_blocks(self) -> float:
        """Share of prompt blocks that a cache without end would serve."""
        return float(self.hits[-1] / self.blocks) if self.blocks else 0.0


def curve(chained: Chains, *, clipped: bool = True) -> ReuseCurve:
    """The hit rate at every capacity in one pass: one histogram of stack distances, summed up.

    ``clipped`` False leaves estimates of a sample that are below 0 or fall: their spread tells the error.
    """
    found = distances(chained.ids, chained.offsets, chained.lookups, chained.unique)
    hits = _up_to(found)
    return ReuseCurve(
        requests=chained.requests,
        tokens=int(chained.input_tokens.sum()),
        blocks=chained.blocks,
        unique=round(chained.unique / chained.rate),
        block_tokens=chained.block_tokens,
        engine_block_tokens=chained.engine_block_tokens,
        hits=hits if chained.rate == 1 else _of_all(hits, chained, clipped),
        touched=_up_to(found[chained.offsets[:-1][np.diff(chained.offsets) > 0]]) if chained.rate == 1 else None,
        rate=chained.rate,
        notes=chained.notes,
    )


def _up_to(found: Ids) -> Floats:
    """How many distances are from 1 to C, for C = 0, 1, 2 …"""
    counts = np.bincount(found, minlength=1)
    counts[0] = 0
    return np.cumsum(counts).astype(np.float64)


def _of_all(hits: Floats, chained: Chains, clipped: bool) -> Floats:
    """Hits of all blocks from those of a sample: (hits + N·R − n)/R, N blocks of which n were sampled at a rate of R.

    The few blocks that are used most, mostly at short distances, are in the sample or not by chance; what they bring too few or too
    many is N·R − n (SHARDS-adj, Waldspurger et al. 2015, section 3.3).
    """
    missing = chained.blocks * chained.rate - len(chained.ids)
    found = (hits + missing) / chained.rate
    found[0] = 0.0
    return np.clip(found, 0.0, chained.blocks) if clipped else found


def hit_rate(found: ReuseCurve, capacity_tokens: Array | float) -> Array:
    """Share of prompt tokens served from a cache of so many tokens, in whole blocks."""
    return _at(found, found.hits, np.asarray(capacity_tokens) / found.block_tokens) * found.block_tokens / found.tokens


def block_hit_rate(found: ReuseCurve, capacity_blocks: Array | float) -> Array:
    """Share of prompt blocks served from a cache of so many blocks."""
    return _at(found, found.hits, np.asarray(capacity_blocks)) / max(found.blocks, 1)


def touched_share(found: ReuseCurve, capacity_tokens: Array | float) -> Array:
    """Share of requests with at least one hit in a cache of so many tokens."""
    if found.touched is None:
        raise InputError("reuse_sampled", rate=found.rate)
    return _at(found, found.touched, np.asarray(capacity_tokens) / found.block_tokens) / found.requests


def error_at(found: ReuseCurve, capacity_tokens: Array | float) -> Array:
    """Half-width of the 95 % interval of a sample's hit rate at a capacity, straight between those where it was told; 0 if exact.

    Of one capacity that is asked for; at small ones, which the few blocks that are used most decide, it is widest.
    """
    blocks = np.asarray(capacity_tokens) / found.block_tokens
    if found.errors is None:
        return np.zeros(blocks.shape)
    return np.asarray(np.interp(blocks, *found.errors))


def _at(found: ReuseCurve, sums: Floats, blocks: Array) -> Array:
    """A sum at capacities in blocks, whole ones only; :func:`sampled_distance` of the last block that fits is its place."""
    whole = np.floor(blocks)
    place = np.where(whole < 1, 0.0, np.minimum(np.floor(sampled_distance(whole, found.rate)), len(sums) - 1.0))
    return np.asarray(sums[place.astype(np.int64)])


def sampled_distance(distance: Array | float, rate: float) -> Array | float:
    """Mean distance in a sample of a block that is in it: itself, and its share of the d − 1 above it, 1 + (d − 1)·R.

    >>> sampled_distance(1, 0.1), sampled_distance(21, 0.1)
    (1.0, 3.0)
    """
    return 1.0 + (distance - 1.0) * rate


def hit_tokens(chained: Chains, capacity_tokens: float = np.inf) -> Ints:
    """Prompt tokens of each request served from a cache of so many tokens; a sample of blocks does not tell."""
    if chained.rate < 1:
        raise InputError("reuse_sampled", rate=chained.rate)
    found = distances(chained.ids, chained.offsets, chained.lookups, chained.unique)
    hit = (found > 0) & (found <= np.floor(capacity_tokens / chained.block_tokens))
    sums = np.concatenate(([0], np.cumsum(hit)))
    return np.asarray((sums[chained.offsets[1:]] - sums[chained.offsets[:-1]]) * chained.block_tokens, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class GroupReuse:
    """What one group of requests (a route, a model, a tenant) has of the cache they share."""

    name: str
    requests: int
    tokens: int
    hit_tokens: int

    @property
    def hit_rate(self) -> float:
        """Share of its prompt tokens that are served from the cache."""
        return self.hit_tokens / self.tokens


def by_group(groups: Ids | None, names: tuple[str, ...], chained: Chains, capacity_tokens: float = np.inf) -> tuple[GroupReuse, ...]:
    """The hits of each group in a cache of so many tokens that all groups share; none where the trace names no groups."""
    if groups is None:
        return ()
    counts, tokens, hits = (
        np.bincount(groups, weights=weights, minlength=len(names))
        for weights in (None, chained.input_tokens, hit_tokens(chained, capacity_tokens))
    )
    return tuple(
        GroupReuse(name=name, requests=int(counts[place]), tokens=int(tokens[place]), hit_tokens=int(hits[place]))
        for place, name in enumerate(names)
        if counts[place]
    )
