"""How a round is counted: greedy verification against the log, for every k at once.

What a drafter offers after t logged tokens depends on those tokens alone, never on k's earlier rounds: each k hops through the
log on its own places, and one pass over the log serves them all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breakeven.compiled import bare

Counts = NDArray[np.int64]
"""Shape (rows, ks, 3 + 3·K): rounds, past_end, cut_short, then drafts_at, accepted_at and asked_at by position."""
ROUNDS, PAST_END, CUT_SHORT, FIXED = 0, 1, 2, 3


def counts(rows: int, ks: int, most: int) -> Counts:
    """Zeros to count into."""
    return np.zeros((rows, ks, FIXED + 3 * most), np.int64)


@bare
def count_round(row: NDArray[np.int64], most: int, drafted: int, accepted: int, left: int) -> int:
    """Count a round of ``drafted`` tokens with ``left`` logged ones to come; gives the tokens it emits."""
    row[ROUNDS] += 1
    row[PAST_END] += max(drafted - left, 0)
    for i in range(drafted):
        row[FIXED + i] += 1
    for i in range(accepted):
        row[FIXED + most + i] += 1
    for i in range(min(accepted + 1, drafted, left)):
        row[FIXED + 2 * most + i] += 1
    if accepted == left:
        row[CUT_SHORT] += 1
        return accepted
    return accepted + 1
