"""Draws of uncertain values."""

from __future__ import annotations

from math import exp, isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.stats import Q95, Range, Spread, draw, is_uncertain, log_normal_sigma, median, normal_draws, uniform_draws


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n", [64, 512, 1000])
def test_normal_draws_are_stratified(n: int) -> None:
    found = np.sort(normal_draws(n, rng()))
    assert np.allclose(found, -found[::-1])
    assert abs(found.mean()) < 1e-12
    assert isclose(float(found.std()), 1.0, rel_tol=0.05)
    assert isclose(float(np.quantile(found, 0.95)), Q95, rel_tol=0.1)


def test_uniform_draws_take_one_from_each_slice() -> None:
    found = np.sort(uniform_draws(100, rng()))
    assert np.array_equal(np.floor(found * 100), np.arange(100))


@given(mean=st.floats(0.1, 1e5), stretch=st.floats(1.01, 3.5))
def test_a_spread_has_the_mean_and_the_quantile_it_states(mean: float, stretch: float) -> None:
    found = draw(Spread(mean=mean, p95=mean * stretch), 20000, rng())
    assert isclose(float(found.mean()), mean, rel_tol=0.02)
    assert isclose(float(np.quantile(found, 0.95)), mean * stretch, rel_tol=0.02)
    assert found.min() > 0


@given(sigma=st.floats(0.01, 1.6))
def test_sigma_of_a_log_normal_is_found_again(sigma: float) -> None:
    assert isclose(log_normal_sigma(1.0, exp(Q95 * sigma - sigma**2 / 2)), sigma, rel_tol=1e-6)


def test_certain_values_are_themselves() -> None:
    array = np.array([1.0, 2.0])
    assert draw(3.0, 16, rng()) == 3.0
    assert draw(array, 16, rng()) is array
    assert median(array) is array
    assert median(3.0) == 3.0
    assert not is_uncertain(3.0)
    assert not is_uncertain(array)


def test_the_middle_of_a_range_and_of_a_spread() -> None:
    assert median(Range(low=1.0, high=3.0)) == 2.0
    spread = Spread(mean=100.0, p95=200.0)
    assert isclose(float(median(spread)), float(np.median(draw(spread, 9999, rng()))), rel_tol=1e-3)
    assert median(spread) < 100
    assert is_uncertain(spread)
    assert is_uncertain(Range(low=0.0, high=1.0))


def test_a_range_stays_within_its_bounds() -> None:
    found = draw(Range(low=-1.0, high=5.0), 512, rng())
    assert -1 < found.min() < -0.9
    assert 4.9 < found.max() < 5
