"""Prefix reuse of a trace: chained block hashes, stack distances, and the hit rate at every capacity. Loads numba: import it on use."""

from __future__ import annotations

from breakeven.reuse.dealing import dealt
from breakeven.reuse.divergence import Divergence, Split, divergence
from breakeven.reuse.hit_rates import GroupReuse, ReuseCurve, block_hit_rate, by_group, curve, error_at, hit_rate, hit_tokens, touched_share
from breakeven.reuse.identity import Chains, chains
from breakeven.reuse.sampling import curve_of, sample, sampled_curve

__all__ = [
    "Chains",
    "Divergence",
    "GroupReuse",
    "ReuseCurve",
    "Split",
    "block_hit_rate",
    "by_group",
    "chains",
    "curve",
    "curve_of",
    "dealt",
    "divergence",
    "error_at",
    "hit_rate",
    "hit_tokens",
    "sample",
    "sampled_curve",
    "touched_share",
]
