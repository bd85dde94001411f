"""Open addressing for numba: a key is two integers, kept whole, so that nothing ever rests on a hash being unique."""

from __future__ import annotations

import numpy as np

from breakeven.compiled import compiled
from breakeven.trace import Ids, Ints

SMALLEST_TABLE = 1 << 12
LOW_HALF = (1 << 32) - 1
HASH_MASK = (1 << 31) - 1


@compiled
def mixed(one: int, other: int) -> int:
    """64 bits of two integers, spread evenly: the finaliser of SplitMix64 (Steele et al. 2014) over both."""
    x = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(other)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(x ^ (x >> np.uint64(31)))  # type: ignore[return-value]


@compiled
def grown(table: Ints) -> Ints:
    """The same entries in a table of twice the size. An entry is (id, parent << 32 | number); numbers count from 1, so 0 is empty."""
    wider = np.zeros(2 * len(table), dtype=np.int64)
    mask = len(wider) // 2 - 1
    for old in range(0, len(table), 2):
        rest = table[old + 1]
        if rest:
            slot = mixed(table[old], rest >> 32) & mask
            while wider[2 * slot + 1]:
                slot = (slot + 1) & mask
            wider[2 * slot] = table[old]
            wider[2 * slot + 1] = rest
    return wider


@compiled
def chain_hashes(ids: Ids | Ints, starts: Ints, lengths: Ints, roots: Ints) -> tuple[Ids, Ints]:
    """Dense chained ids of the first ``lengths`` ids of each request, and the table they stand in.

    A chained id stands for the whole prefix up to its block: it is numbered by (chained id before it, id). ``roots`` are what the
    first blocks hang on: 0, or −1 − session where ids mean something within a session only.
    """
    chained = np.empty(lengths.sum(), dtype=np.int32)
    table = np.zeros(2 * SMALLEST_TABLE, dtype=np.int64)
    mask, number, at = SMALLEST_TABLE - 1, 0, 0
    for request in range(len(lengths)):
        parent = roots[request]
        for place in range(starts[request], starts[request] + lengths[request]):
            if 4 * number >= 3 * (mask + 1):
                table = grown(table)
                mask = len(table) // 2 - 1
            slot = mixed(ids[place], parent) & mask
            while table[2 * slot + 1] and not (table[2 * slot] == ids[place] and table[2 * slot + 1] >> 32 == parent):
                slot = (slot + 1) & mask
            if not table[2 * slot + 1]:
                number += 1
                table[2 * slot] = ids[place]
                table[2 * slot + 1] = parent << 32 | number
            parent = table[2 * slot + 1] & LOW_HALF
            chained[at] = parent - 1
            at += 1
    return chained, table


@compiled
def chain_tokens(tokens: Ids | Ints, starts: Ints, lengths: Ints, counts: Ints, block: int) -> tuple[Ids, int]:
    """Dense chained ids of the blocks of token ids of each request, and how many there are; blocks are compared token by token."""
    total = counts.sum()
    chained = np.empty(total, dtype=np.int32)
    size = SMALLEST_TABLE
    while 3 * size < 4 * total + 4:
        size *= 2
    table = np.zeros(size, dtype=np.int32)
    first = np.empty(total, dtype=np.int64)
    parents = np.empty(total, dtype=np.int32)
    sizes = np.empty(total, dtype=np.int32)
    number, at = 0, 0
    for request in range(len(counts)):
        parent = 0
        for index in range(counts[request]):
            begin = starts[request] + index * block
            held = min(block, lengths[request] - index * block)
            key = parent
            for place in range(begin, begin + held):
                key = mixed(key, tokens[place])
            slot = key & (size - 1)
            while table[slot]:
                known = table[slot] - 1
                if (
                    parents[known] == parent
                    and sizes[known] == held
                    and np.array_equal(tokens[first[known] : first[known] + held], tokens[begin : begin + held])
                ):
                    break
                slot = (slot + 1) & (size - 1)
            if not table[slot]:
                first[number], parents[number], sizes[number] = begin, parent, held
                number += 1
                table[slot] = number
            parent = table[slot]
            chained[at] = parent - 1
            at += 1
    return chained, number


@compiled
def sampled_hashes(
    values: Ids | Ints, starts: Ints, lengths: Ints, counts: Ints, lookups: Ints, group: int, roots: Ints, limit: int, seed: int, kept: Ints
) -> tuple[Ints, Ints]:
    """How many blocks of each request are sampled, and how many of those may hit; their hashes are written to ``kept``.

    A block's hash is of its whole prefix, and it is sampled if 31 bits of it are below the limit: in every request or in none. With
    ``kept`` empty they are only counted.
    """
    sampled = np.zeros(len(counts), dtype=np.int64)
    hitting = np.zeros(len(counts), dtype=np.int64)
    at = 0
    for request in range(len(counts)):
        key = mixed(seed, roots[request])
        for index in range(counts[request]):
            for place in range(index * group, min((index + 1) * group, lengths[request])):
                key = mixed(key, values[starts[request] + place])
            if (key >> 33) & HASH_MASK < limit:
                if len(kept):
                    kept[at] = key
                at += 1
                sampled[request] += 1
                hitting[request] += index < lookups[request]
    return sampled, hitting
