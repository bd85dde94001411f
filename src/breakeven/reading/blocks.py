"""Blocks of token ids as single numbers: equal blocks have equal ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SPREAD, STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd constants of the splitmix64 generator."""
KEPT_BITS = np.uint64(2)
"""Bits given up so that an id is a positive 64-bit number."""


def block_ids(tokens: NDArray[np.int32], block_tokens: int) -> NDArray[np.int64]:
    """An id for every ``block_tokens`` tokens, the last shorter block included: a polynomial over the tokens, modulo 2⁶⁴, mixed.

    >>> one, two = block_ids(np.arange(20, dtype=np.int32), 16), block_ids(np.arange(17, dtype=np.int32), 16)
    >>> bool(one[0] == two[0]), bool(one[1] == two[1])
    (True, False)
    """
    blocks = -(-len(tokens) // block_tokens)
    padded = np.zeros(blocks * block_tokens, dtype=np.uint64)
    padded[: len(tokens)] = tokens.astype(np.uint64) + np.uint64(1)
    powers = np.cumprod(np.full(block_tokens, SPREAD, dtype=np.uint64))
    mixed = (padded * STEP ^ (padded >> np.uint64(7))).reshape(blocks, block_tokens)
    found = (mixed * powers).sum(axis=1, dtype=np.uint64)
    found ^= found >> np.uint64(31)
    named: NDArray[np.int64] = (found * STEP >> KEPT_BITS).astype(np.int64)
    return named
