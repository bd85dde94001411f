"""Laws of what is counted in a trace: Poisson arrivals have the variance of Poisson, a clock has none, batches of m have m times it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.traffic.arrivals import arrivals_of, counts_in, dispersion
from breakeven.traffic.lengths import correlation, distribution

REQUESTS = 40_000


def times(between: np.ndarray) -> np.ndarray:
    return np.cumsum(between) - between[0]


@pytest.mark.parametrize("seed", range(5))
def test_poisson_arrivals_are_said_to_be_poisson_at_almost_every_window(seed: int) -> None:
    found = arrivals_of(times(np.random.default_rng(seed).exponential(0.5, REQUESTS)))
    assert found is not None and len(found.dispersions) == 4
    assert all(abs(one.index - 1.0) < (one.high - one.low) for one in found.dispersions)
    assert sum(one.kind == "poisson" for one in found.dispersions) >= 3
    assert found.variation == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("span", [1e-6, 0.05, 0.1, 3.0])
def test_traffic_of_less_than_any_window_is_one_window(span: float) -> None:
    found = arrivals_of(np.linspace(0.0, span, 5))
    assert found is not None and found.window_s <= span and found.rate == pytest.approx(4 / span)


def test_a_clock_has_no_dispersion() -> None:
    found = arrivals_of(np.arange(0.0, 4000.0, 0.25))
    assert found is not None and found.variation == 0.0
    assert all(one.index < 1e-9 and one.kind == "regular" for one in found.dispersions)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_arrivals_in_batches_of_m_have_m_times_the_dispersion(size: int) -> None:
    found = arrivals_of(np.repeat(times(np.random.default_rng(size).exponential(1.0, REQUESTS // 4)), size))
    assert found is not None
    index = {one.window_s: one.index for one in found.dispersions}
    assert index[10.0] == pytest.approx(size, rel=0.12) and all(one.kind == "bursty" for one in found.dispersions)
    assert found.at_once == pytest.approx(1.0 - 1.0 / size, abs=1e-3)


@given(st.lists(st.floats(0.0, 1000.0), min_size=2, max_size=200), st.floats(0.5, 100.0))
def test_whole_windows_count_every_arrival_in_them_once(at: list[float], window: float) -> None:
    arrived = np.sort(np.array(at))
    counted = counts_in(arrived, float(arrived[-1]), window)
    whole = len(counted) * window
    inside = int(np.sum((arrived / window).astype(int) < len(counted)))
    assert counted.sum() == inside and len(counted) >= 1
    assert whole <= max(arrived[-1], window) * (1 + 1e-6)


@given(st.integers(20, 500), st.floats(0.01, 100.0))
def test_the_index_has_no_unit_of_time(windows: int, window_s: float) -> None:
    counts = np.random.default_rng(windows).poisson(7.0, windows).astype(float)
    assert dispersion(counts, window_s).index == dispersion(counts, 1.0).index


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50))
def test_a_distribution_lies_between_its_ends(values: list[int]) -> None:
    found = distribution(np.array(values))
    assert found is not None
    assert found.least <= found.p50 <= found.p90 <= found.p99 <= found.most
    assert found.least <= found.mean * (1 + 1e-12) and found.mean <= found.most * (1 + 1e-12)


def test_what_does_not_vary_goes_with_nothing() -> None:
    assert correlation(np.array([1, 2, 3]), np.array([5, 5, 5])) is None
    assert correlation(np.array([1, 2, 3]), np.array([2, 4, 6])) == 1.0
