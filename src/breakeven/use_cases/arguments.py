"""What every use case takes: how many draws, from which seed, and the gain from which a lever pays."""

from __future__ import annotations

from breakeven.errors import InputError

THRESHOLD = 0.10
DRAWS = 512


def checked_seed(seed: int) -> int:
    """A seed that can be one."""
    if seed < 0:
        raise InputError("seed_negative", value=seed)
    return seed


def check_arguments(threshold: float, draws: int) -> None:
    """Refuse a threshold or a number of draws that no verdict can be made with."""
    if not 0.0 <= threshold < 10.0:
        raise InputError("threshold_out_of_range", value=threshold)
    if not 16 <= draws <= 100_000:
        raise InputError("draws_out_of_range", value=draws)
