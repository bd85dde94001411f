"""Prefix reuse of a trace: chained block hashes, stack distances, and the hit rate at every capacity. Loads numba: import it on use."""

from __future__ import annotations

from breakeven.reuse.hit_rates import GroupReuse, ReuseCurve, block_hit_rate, by_group, curve, hit_rate, hit_tokens, touched_share
from breakeven.reuse.identity import Chains, chains

__all__ = [
    "Chains",
    "GroupReuse",
    "ReuseCurve",
    "block_hit_rate",
    "by_group",
    "chains",
    "curve",
    "hit_rate",
    "hit_tokens",
    "touched_share",
]
