"""Runs held against each other pair by pair: exact where nothing differs, and intervals that hold what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from breakeven.simulation.pairs import paired

OFF, ON = 5.0, 4.0


def queue_like(seed: int, requests: int, memory: float) -> tuple[np.ndarray, np.ndarray]:
    """Two runs that share most of a slowly moving load: means 5 and 4."""
    noise = np.random.default_rng(seed).standard_normal((3, requests + 2000))
    load, one, other = lfilter([1.0], [1.0, -memory], noise, axis=1)[:, 2000:] * (1 - memory**2) ** 0.5
    return OFF + load + 0.3 * one, ON + 0.8 * load + 0.3 * other


@pytest.mark.parametrize("memory", [0.0, 0.9, 0.98])
def test_nine_intervals_in_ten_hold_the_truth_however_long_the_load_remembers(memory: float) -> None:
    runs = [paired(*queue_like(seed, 5000, memory)) for seed in range(300)]
    found = [one for one in runs if one is not None and one.low is not None and one.high is not None]
    assert len(found) == 300
    ratio = np.mean([one.low <= OFF / ON <= one.high for one in found])
    difference = np.mean([one.difference_low <= ON - OFF <= one.difference_high for one in found])
    assert 0.86 <= ratio <= 0.95
    assert 0.86 <= difference <= 0.95


def test_taken_as_independent_the_same_pairs_would_hold_it_far_less_often() -> None:
    """What the batches are for."""
    held = 0
    for seed in range(300):
        off, on = queue_like(seed, 5000, 0.98)
        half = 1.645 * float(np.std(on - off)) / len(off) ** 0.5
        held += abs(float(np.mean(on - off)) - (ON - OFF)) <= half
    assert held / 300 < 0.5


def test_a_run_against_itself_is_exactly_one() -> None:
    times = np.random.default_rng(1).exponential(1.0, 1000)
    one = paired(times, times)
    assert one is not None
    assert (one.gain, one.low, one.high, one.difference, one.difference_low, one.difference_high) == (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)


def test_only_requests_that_are_done_in_both_are_pairs() -> None:
    off, on = np.full(40, 2.0), np.full(40, 1.0)
    off[:3], on[2:6] = np.nan, np.nan
    one = paired(off, on)
    assert one is not None and (one.pairs, one.gain) == (34, 2.0)


def test_a_few_pairs_have_no_interval_and_none_has_no_gain() -> None:
    one = paired(np.array([2.0, 4.0]), np.array([1.0, 2.0]))
    assert one is not None and (one.gain, one.low, one.high, one.batches) == (2.0, None, None, 0)
    assert paired(np.array([np.nan]), np.array([1.0])) is None
