"""Curves of traces too long to follow every block: spatially hashed samples, with an error bound (SHARDS, Waldspurger et al. 2015)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.reuse.hashing import HASH_MASK, chain_hashes, sampled_hashes
from breakeven.reuse.hit_rates import ReuseCurve, block_hit_rate, curve
from breakeven.reuse.identity import Blocks, Chains, blocks_of, chains, chains_of, lookups_of
from breakeven.trace import Ints, Trace

MOST_BLOCKS = 100_000_000
"""Prompt blocks beyond which a trace is sampled."""
KEPT_BLOCKS = 4_000_000
SPLITS = 8
STUDENT = 3.499
"""Two-sided 99 % quantile of Student's t with 7 degrees of freedom: at each capacity, so that all of them together keep 95 %."""
GRID = 64
SEEDS = 1 << 63
"""Compiled loops take whole numbers of 64 bits."""


def curve_of(
    trace: Trace, block_tokens: int, *, partial: bool = False, within_sessions: bool = False, rate: float | None = None, seed: int = 0
) -> ReuseCurve:
    """The reuse curve of a trace: exact up to 100 M prompt blocks, beyond them, or at the rate asked for, of a sample with its error."""
    if rate is None:
        blocks = int(blocks_of(trace, block_tokens, partial, within_sessions).counts.sum())
        rate = 1.0 if blocks <= MOST_BLOCKS else KEPT_BLOCKS / blocks
    if rate == 1:
        return curve(chains(trace, block_tokens, partial, within_sessions))
    return sampled_curve(sample(trace, block_tokens, rate, seed, partial=partial, within_sessions=within_sessions), seed)


def sample(trace: Trace, block_tokens: int, rate: float, seed: int = 0, *, partial: bool = False, within_sessions: bool = False) -> Chains:
    """Chains of a share of the distinct blocks, chosen by a hash of their whole prefix.

    Single blocks may be chosen: a block's distance is above those of all before it in its chain, so that it hits without their being
    looked at. A sampled block has a distance of R times its true one.
    """
    limit = round(rate * (HASH_MASK + 1))
    if not 0 < limit <= HASH_MASK:
        raise InputError("reuse_rate", value=rate)
    cut = blocks_of(trace, block_tokens, partial, within_sessions)
    counts, lookups, kept = _sampled(cut, lookups_of(trace, cut), limit, seed)
    ids, names = chain_hashes(kept, np.cumsum(counts) - counts, counts, np.zeros(trace.requests, dtype=np.int64))
    found = chains_of(trace, block_tokens, cut, ids, counts, len(names))
    return replace(found, lookups=lookups, rate=limit / (HASH_MASK + 1))


def _sampled(cut: Blocks, lookups: Ints, limit: int, seed: int) -> tuple[Ints, Ints, Ints]:
    """Sampled blocks of each request, how many of them may hit, and their hashes: counted first, so that only those take room."""

    def run(kept: Ints) -> tuple[Ints, Ints]:
        return sampled_hashes(cut.values, cut.starts, cut.lengths, cut.counts, lookups, cut.group, cut.roots, limit, seed % SEEDS, kept)

    kept = np.zeros(run(np.zeros(0, dtype=np.int64))[0].sum() + 1, dtype=np.int64)
    return *run(kept), kept


def sampled_curve(chained: Chains, seed: int = 0) -> ReuseCurve:
    """The curve of a sample, with the half-width that eighths of it show: t·s/√8 at each capacity, and where they differ most.

    That 95 % of samples keep it at every capacity holds where the sample has thousands of distinct blocks, as a test finds.
    """
    found = curve(chained)
    grid = np.unique(np.geomspace(1, max(found.unique, 1), GRID).round())
    eighth = np.random.default_rng(seed).integers(SPLITS, size=max(chained.unique, 1))
    rates = np.array([block_hit_rate(curve(_only(chained, eighth == part), clipped=False), grid) for part in range(SPLITS)])
    widths = STUDENT * np.std(rates, axis=0, ddof=1) / np.sqrt(SPLITS)
    error = float(np.max(widths))
    note = Message("reuse.sampled", {"blocks": found.blocks, "rate": found.rate, "error": error})
    return replace(found, error=error, errors=(grid, widths), notes=(*found.notes, note))


def _only(chained: Chains, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Chains:
    """The sample cut down to some of its blocks, an eighth of them."""
    stays = chosen[chained.ids]
    before: Ints = np.concatenate(([0], np.cumsum(stays)))
    return replace(
        chained,
        ids=chained.ids[stays],
        offsets=before[chained.offsets],
        lookups=before[chained.offsets[:-1] + chained.lookups] - before[chained.offsets[:-1]],
        rate=chained.rate / SPLITS,
    )
