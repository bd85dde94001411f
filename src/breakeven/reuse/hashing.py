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
    """Dense chained ids of the first ``lengths`` ids of each request, and the id that each of them was made of.

    A chained id stands for the whole prefix up to its block: it is numbered by (chained id before it, id). ``roots`` are what the
    first blocks hang on: 0, or −1 − session where ids mean something within a session only. Most blocks have one follower: it stands
    beside its parent, in the order of the text, and only further ones are looked up in a table.
    """
    total = lengths.sum()
    chained = np.empty(total, dtype=np.int32)
    names = np.empty(total + 1, dtype=np.int64)
    follower = np.zeros(total + 1, dtype=np.int32)
    table = np.zeros(2 * SMALLEST_TABLE, dtype=np.int64)
    mask, number, entries, at = SMALLEST_TABLE - 1, 0, 0, 0
    for request in range(len(lengths)):
        parent = roots[request]
        for place in range(starts[request], starts[request] + lengths[request]):
            name = ids[place]
            known = follower[parent] if parent >= 0 else 0
            if parent >= 0 and known == 0:
                number += 1
                follower[parent] = known = number
                names[number] = name
            elif known == 0 or names[known] != name:
                slot = mixed(name, parent) & mask
                while table[2 * slot + 1] and not (table[2 * slot] == name and table[2 * slot + 1] >> 32 == parent):
                    slot = (slot + 1) & mask
                if not table[2 * slot + 1]:
                    number += 1
                    entries += 1
                    names[number] = name
                    table[2 * slot] = name
                    table[2 * slot + 1] = parent << 32 | number
                known = table[2 * slot + 1] & LOW_HALF
                if 4 * entries >= 3 * (mask + 1):
                    table = grown(table)
                    mask = len(table) // 2 - 1
            parent = np.int64(known)
            chained[at] = known - 1
            at += 1
    return chained, names[1 : number + 1]


@compiled
def chain_tokens(tokens: Ids | Ints, starts: Ints, lengths: Ints, counts: Ints, block: int) -> tuple[Ids, int]:
    """Dense chained ids of the blocks of token ids of each request, and how many there are; blocks are compared token by token.

    As in :func:`chain_hashes`, the first block that follows another stands beside it.
    """
    total = counts.sum()
    chained = np.empty(total, dtype=np.int32)
    size = SMALLEST_TABLE
    while 3 * size < 4 * total + 4:
        size *= 2
    table = np.zeros(size, dtype=np.int32)
    blocks = np.empty((total + 1, 3), dtype=np.int64)
    follower = np.zeros(total + 1, dtype=np.int32)
    number, at = 0, 0
    for request in range(len(counts)):
        parent = 0
        for index in range(counts[request]):
            begin = starts[request] + index * block
            held = min(block, lengths[request] - index * block)
            known, slot = follower[parent], -1
            if known and not _same(tokens, blocks[known], parent, begin, held):
                slot = _slot(tokens, table, blocks, parent, begin, held)
                known = table[slot]
            if known == 0:
                number += 1
                known = number
                blocks[known] = parent, begin, held
                if slot < 0:
                    follower[parent] = known
                else:
                    table[slot] = known
            parent = known
            chained[at] = known - 1
            at += 1
    return chained, number


@compiled
def _slot(tokens: Ids | Ints, table: Ids, blocks: Ints, parent: int, begin: int, held: int) -> int:
    """Where in the table a block stands, or is to stand: a block is (parent, where it begins, how many tokens it has)."""
    key = parent
    for place in range(begin, begin + held):
        key = mixed(key, tokens[place])
    slot = key & (len(table) - 1)
    while table[slot] and not _same(tokens, blocks[table[slot]], parent, begin, held):
        slot = (slot + 1) & (len(table) - 1)
    return slot


@compiled
def _same(tokens: Ids | Ints, known: Ints, parent: int, begin: int, held: int) -> bool:
    same_place = known[0] == parent and known[2] == held
    return same_place and np.array_equal(tokens[known[1] : known[1] + held], tokens[begin : begin + held])


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
