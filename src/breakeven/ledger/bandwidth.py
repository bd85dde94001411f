"""Bandwidth ledger: bytes one device reads in a step.

W(n) = dense + experts·coverage; KV once per sequence, however many query tokens it has; s = KV/(W + KV).
"""

from __future__ import annotations

import numpy as np

from breakeven.stats import Array


def effective_tokens(sequences: Array | float, rows_per_sequence: Array | float, sharing: Array | float) -> Array | float:
    """n_eff = b·(1 + ν·(n/b − 1)): tokens of one sequence share experts (ν ≈ 0.5)."""
    return sequences * (1.0 + sharing * (rows_per_sequence - 1.0))


def coverage(effective: Array | float, top_k: int, experts: int) -> Array | float:
    """Share of the experts that a step reads: 1 − (1 − top_k/E)^n_eff, under even routing.

    >>> round(float(coverage(1, 8, 128)), 4), round(float(coverage(64, 8, 128)), 3)
    (0.0625, 0.984)
    """
    if top_k >= experts:
        return np.ones_like(effective)
    return np.asarray(-np.expm1(effective * np.log1p(-top_k / experts)))


def kv_share_of_traffic(kv: Array | float, weights: Array | float) -> Array | float:
    """s = KV/(W + KV): the share of a step's bytes that is cache (not the share of memory)."""
    return kv / (weights + kv)


def utilisation(bytes_per_step: Array | float, step_s: Array | float, bandwidth_bytes_per_s: Array | float) -> Array | float:
    """MBU = bytes per step / (step time · BW)."""
    return bytes_per_step / (step_s * bandwidth_bytes_per_s)


def amortised_bytes_per_token(weights: Array | float, batch: Array | float) -> Array | float:
    """Weight bytes per generated token, N·w/b: falls with the batch, while the time a user waits rises.

    140 GB at batch 1, 8 and 64, and the time at 3 TB/s in ms:

    >>> [round(float(amortised_bytes_per_token(140e9, b)) / 1e9, 1) for b in (1, 8, 64)]
    [140.0, 17.5, 2.2]
    >>> [round(float(amortised_bytes_per_token(140e9, b)) / 3e12 * 1e3, 1) for b in (1, 8, 64)]
    [46.7, 5.8, 0.7]
    """
    return weights / batch
