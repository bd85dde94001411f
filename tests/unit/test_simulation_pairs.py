"""Runs held against each other pair by pair: exact where nothing differs, and intervals that hold what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from breakeven.simulation.pairs import paired
from breakeven.simulation.result import Paired

OFF, ON = 5.0, 4.0


def queue_like(seed: int, requests: int, memory: float) -> tuple[np.ndarray, np.ndarray]:
    """Two runs that share most of a slowly moving load: means 5 and 4."""
    noise = np.random.default_rng(seed).standard_normal((3, requests + 2000))
    load, one, other = lfilter([1.0], [1.0, -memory], noise, axis=1)[:, 2000:] * (1 - memory**2) ** 0.5
    return OFF + load + 0.3 * one, ON + 0.8 * load + 0.3 * other


def queue(seed: int, requests: int, load: float) -> tuple[np.ndarray, np.ndarray]:
    """Stays in an M/M/1 that begins empty, and the same customers served in four fifths of the time."""
    rng = np.random.default_rng(seed)
    gaps, service = rng.exponential(1.0, requests), rng.exponential(load, requests)
    return stays(gaps, service), stays(gaps, 0.8 * service)


def stays(gaps: np.ndarray, service: np.ndarray) -> np.ndarray:
    """Lindley 1952."""
    steps = np.concatenate(([0.0], np.cumsum(service[:-1] - gaps[1:])))
    return steps - np.minimum.accumulate(steps) + service


def mean_stay(load: float) -> float:
    """E[S]/(1 − ρ), at one arrival a second."""
    return load / (1.0 - load)


def held(runs: list[Paired | None], gain: float, difference: float) -> tuple[int, float, float]:
    """How many runs have an interval, and the shares of these that hold the truth."""
    found = [one for one in runs if one is not None and one.low is not None]
    ratio = [one.low <= gain <= one.high for one in found]
    return len(found), float(np.mean(ratio)), float(np.mean([one.difference_low <= difference <= one.difference_high for one in found]))


@pytest.mark.parametrize(("memory", "requests"), [(0.0, 5000), (0.9, 5000), (0.98, 20000)])
def test_about_nine_intervals_in_ten_hold_the_truth_of_a_normal_load_with_a_memory(memory: float, requests: int) -> None:
    given, ratio, difference = held([paired(*queue_like(seed, requests, memory)) for seed in range(300)], OFF / ON, ON - OFF)
    assert given >= 285
    assert 0.85 <= ratio <= 0.97
    assert 0.85 <= difference <= 0.97


@pytest.mark.parametrize(("load", "requests"), [(0.5, 5000), (0.8, 5000), (0.8, 20000), (0.9, 50000)])
def test_about_nine_intervals_in_ten_hold_the_truth_of_a_queue_that_is_watched_for_long(load: float, requests: int) -> None:
    before, after = mean_stay(load), mean_stay(0.8 * load)
    given, ratio, difference = held([paired(*queue(seed, requests, load)) for seed in range(300)], before / after, after - before)
    assert given >= 240
    assert 0.85 <= ratio <= 0.97
    assert 0.85 <= difference <= 0.97


@pytest.mark.parametrize("load", [0.9, 0.95])
def test_a_busy_queue_watched_for_a_short_time_has_no_interval(load: float) -> None:
    runs = [paired(*queue(seed, 5000, load)) for seed in range(300)]
    assert sum(one is not None and one.low is not None for one in runs) <= 15


@pytest.mark.parametrize("load", [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95])
def test_at_any_load_about_one_run_in_ten_shows_an_interval_that_misses(load: float) -> None:
    """Where some runs have one and some have not, those that have it are the lucky ones: of all runs the share still holds."""
    gain = mean_stay(load) / mean_stay(0.8 * load)
    runs = [paired(*queue(seed, 5000, load)) for seed in range(300)]
    assert sum(one is not None and one.low is not None and not one.low <= gain <= one.high for one in runs) / 300 <= 0.13


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
