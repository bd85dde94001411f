"""Exact LRU stack distances of chained blocks, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import compiled
from breakeven.trace import Ids, Ints


@compiled
def _ones(word: Any) -> int:
    """Set bits of a word, counted in parallel (Warren 2012, figure 5-2)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]


@compiled
def _added(tree: Ids, word: int, count: int) -> None:
    """Add to one word's count (Fenwick 1994)."""
    word += 1
    while word < len(tree):
        tree[word] += count
        word += word & -word


@compiled
def _below(tree: Ids, bits: NDArray[np.uint64], time: int) -> int:
    """Blocks last used before a time."""
    word = time >> 6
    found = _ones(bits[word] & ((np.uint64(1) << np.uint64(time & 63)) - np.uint64(1)))
    while word > 0:
        found += tree[word]
        word -= word & -word
    return found


@compiled
def _cleared(tree: Ids, bits: NDArray[np.uint64], last: Ints, ids: Ids, begin: int, end: int) -> None:
    """Take blocks out of the stack. Neighbours in a chain are mostly neighbours in time, so a word's count is changed once."""
    word, count = -1, 0
    for place in range(begin, end):
        time = last[ids[place]]
        if time >> 6 != word:
            if count:
                _added(tree, word, -count)
            word, count = time >> 6, 0
        bits[word] &= ~(np.uint64(1) << np.uint64(time & 63))
        count += 1
    if count:
        _added(tree, word, -count)


@compiled
def _pushed(tree: Ids, bits: NDArray[np.uint64], last: Ints, ids: Ids, begin: int, end: int, clock: int) -> int:
    """Put the blocks of a chain on top, its tail first, so that its head is the most recent."""
    word, count = clock >> 6, 0
    for place in range(end - 1, begin - 1, -1):
        if clock >> 6 != word:
            _added(tree, word, count)
            word, count = clock >> 6, 0
        bits[word] |= np.uint64(1) << np.uint64(clock & 63)
        last[ids[place]] = clock
        count += 1
        clock += 1
    if count:
        _added(tree, word, count)
    return clock


@compiled
def distances(ids: Ids, offsets: Ints, lookups: Ints, unique: int) -> Ids:
    """Stack distance of every block at its request's lookup; 0 where it cannot hit: unseen, or beyond the blocks looked up.

    A block hits at a capacity of C blocks if its distance is from 1 to C (Mattson et al. 1970). Requests put their blocks on top
    tail first, so distances rise along a chain: where a block hits, all before it do. A block used just before its follower in the
    chain lies directly beneath it, so that only breaks in time are counted: bits by time of last use, and a Fenwick tree over words.
    """
    found = np.zeros(len(ids), dtype=np.int32)
    last = np.full(unique, -1, dtype=np.int64)
    words = (len(ids) >> 6) + 1
    bits = np.zeros(words, dtype=np.uint64)
    tree = np.zeros(words + 1, dtype=np.int32)
    clock, held = 0, 0
    for request in range(len(offsets) - 1):
        begin, end = offsets[request], offsets[request + 1]
        seen, before, distance = begin, -1, 0
        while seen < end and last[ids[seen]] >= 0:
            time = last[ids[seen]]
            distance = distance + 1 if time == before - 1 else held - _below(tree, bits, time)
            before = time
            if seen - begin < lookups[request]:
                found[seen] = distance
            seen += 1
        _cleared(tree, bits, last, ids, begin, seen)
        clock = _pushed(tree, bits, last, ids, begin, end, clock)
        held += end - seen
    return found
