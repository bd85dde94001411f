"""Counts of rounds added up over requests, by group, with intervals from resampling requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from breakeven.replay.result import Drafting, Interval
from breakeven.replay.rounds import CUT_SHORT, FIXED, PAST_END, ROUNDS, Counts
from breakeven.replay.sequences import Sequences
from breakeven.trace import Ints

MOST_ROWS = 16384
"""Requests beyond so many are counted in bundles of neighbours, which are then resampled whole."""
MOST_GROUPS = 16
"""With figures of their own, by requests; the others are counted together."""
RESAMPLES = 500
SHARES = (0.05, 0.95)


def rows_of(log: Sequences) -> tuple[Ints, Ints]:
    """The row that each request is counted in, and the group of each row; a row never spans two groups."""
    order = np.argsort(log.groups, kind="stable")
    bundle = -(-max(log.requests, 1) // MOST_ROWS)
    sizes = np.bincount(log.groups, minlength=max(len(log.group_names), 1))
    rows = -(-sizes // bundle)
    firsts, before = np.cumsum(rows) - rows, np.cumsum(sizes) - sizes
    row_of = np.empty(log.requests, np.int64)
    grouped = log.groups[order]
    row_of[order] = firsts[grouped] + (np.arange(log.requests) - before[grouped]) // bundle
    return row_of, np.repeat(np.arange(len(rows)), rows)


def draftings(counted: Counts, requests: int, output_tokens: Ints, ks: tuple[int, ...], seed: int) -> tuple[Drafting, ...]:
    """One entry a k of the rows given; ``output_tokens`` are those of their requests."""
    most = (counted.shape[2] - FIXED) // 3
    totals = counted.sum(axis=0)
    emitted = int(np.maximum(output_tokens - 1, 0).sum())
    intervals = list(_intervals(counted, most, seed)) if requests > 1 else [None] * len(ks)
    return tuple(_drafting(k, row, most, requests, emitted, found) for k, row, found in zip(ks, totals, intervals, strict=True))


def by_group(counted: Counts, group_of: Ints, log: Sequences, ks: tuple[int, ...], seed: int) -> Mapping[str | None, tuple[Drafting, ...]]:
    """The largest groups in the order of their names, and all others together under None. Rows stand by group: each is a slice."""
    if not log.group_names:
        return {}
    sizes = np.bincount(log.groups, minlength=len(log.group_names))
    output = log.output_tokens[np.argsort(log.groups, kind="stable")]
    row_ends, ends = np.searchsorted(group_of, np.arange(len(sizes) + 1)), np.concatenate(([0], np.cumsum(sizes)))
    own = np.sort(np.argsort(-sizes, kind="stable")[: MOST_GROUPS if len(sizes) > MOST_GROUPS + 1 else None])
    found: dict[str | None, tuple[Drafting, ...]] = {}
    for i in own.tolist():
        rows, of = counted[row_ends[i] : row_ends[i + 1]], output[ends[i] : ends[i + 1]]
        found[log.group_names[i]] = draftings(rows, int(sizes[i]), of, ks, seed)
    if len(own) < len(sizes):
        rest, of = ~np.isin(group_of, own), output[~np.repeat(np.isin(np.arange(len(sizes)), own), sizes)]
        found[None] = draftings(counted[rest], len(of), of, ks, seed)
    return found


def _drafting(
    k: int, row: NDArray[np.int64], most: int, requests: int, emitted: int, found: tuple[Interval, tuple[Interval, ...]] | None
) -> Drafting:
    drafts, accepted, asked = (tuple(int(n) for n in part[:k]) for part in np.split(row[FIXED:], 3))
    return Drafting(
        k=k,
        requests=requests,
        rounds=int(row[ROUNDS]),
        emitted=emitted,
        drafts_at=drafts,
        accepted_at=accepted,
        asked_at=asked,
        past_end=int(row[PAST_END]),
        cut_short=int(row[CUT_SHORT]),
        length_interval=found[0] if found else None,
        cumulative_intervals=found[1][:k] if found else None,
    )


def _intervals(counted: Counts, most: int, seed: int) -> Iterator[tuple[Interval, tuple[Interval, ...]] | None]:
    """90 % of the acceptance length and of p_i for each k: rows drawn with replacement, the same for every k."""
    rows, ks, _ = counted.shape
    part = counted[:, :, [ROUNDS, *range(FIXED + most, FIXED + 2 * most)]].reshape(rows, -1).astype(np.float64)
    random = np.random.default_rng(seed)
    drawn = np.stack([np.bincount(random.integers(rows, size=rows), minlength=rows) @ part for _ in range(RESAMPLES)])
    drawn = drawn.reshape(RESAMPLES, ks, 1 + most)
    with_rounds = drawn[:, 0, 0] > 0
    for i in range(ks):
        if not with_rounds.any():
            yield None
            continue
        shares = drawn[with_rounds, i, 1:] / drawn[with_rounds, i, :1]
        low, high = np.quantile(shares, SHARES, axis=0)
        length = 1.0 + np.quantile(shares.sum(axis=1), SHARES)
        yield (float(length[0]), float(length[1])), tuple((float(a), float(b)) for a, b in zip(low, high, strict=True))
