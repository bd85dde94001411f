"""Blocks of token ids as single numbers: an id stands for all tokens up to its block's end, so equal ids are equal prefixes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BASE, STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd constants of the SplitMix64 generator."""
GIVEN_UP = np.uint64(2)
"""Bits left out so that an id is a positive 64-bit number."""


def block_ids(tokens: NDArray[np.int32], block_tokens: int) -> NDArray[np.int64]:
    """An id for every ``block_tokens`` tokens, the last shorter block included: a polynomial over all tokens before its end, mixed.

    Two prefixes of a trace share an id by chance with odds of one in 2⁶² a pair.

    >>> one, other = np.arange(40, dtype=np.int32), np.arange(1, 41, dtype=np.int32)
    >>> bool((block_ids(one, 16)[:2] == block_ids(one[:33], 16)[:2]).all()), len(block_ids(one, 16))
    (True, 3)
    >>> bool((block_ids(one, 16) == block_ids(other, 16)).any())
    False
    """
    if not len(tokens):
        return np.empty(0, dtype=np.int64)
    values = tokens.astype(np.uint64) + np.uint64(1)
    values = (values ^ (values * STEP >> np.uint64(29))) * STEP
    powers = np.cumprod(np.full(len(tokens), BASE, dtype=np.uint64))
    sums = np.cumsum(values * powers, dtype=np.uint64)
    ends = np.minimum(np.arange(block_tokens, len(tokens) + block_tokens, block_tokens), len(tokens)) - 1
    found = sums[ends] ^ (sums[ends] >> np.uint64(31))
    found = (found * STEP) ^ (found >> np.uint64(27))
    named: NDArray[np.int64] = (found >> GIVEN_UP).astype(np.int64)
    return named
