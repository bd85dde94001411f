"""Crossings and intervals of a curve, and the quantiles of draws that may be unbounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import breakeven as be
from breakeven.advice import Axis
from breakeven.boundaries import crossings, gain_along, pays_on
from breakeven.draws import MEDIAN, Draws
from breakeven.errors import InputError
from breakeven.judge import Arms, interval, quantile, ratio
from breakeven.lever import Sigma

X = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def of(
    gain: list[float], level: float = 1.0, *, logarithmic: bool = False
) -> tuple[list[float], tuple[tuple[float | None, float | None], ...]]:
    values = np.array(gain)
    return list(crossings(X, values, level, logarithmic=logarithmic)), pays_on(X, values, level, logarithmic=logarithmic)


@pytest.mark.parametrize(("gain", "at", "pays"), [
    ([0.5, 0.5, 0.5, 0.5, 0.5], [], ()),
    ([1.5, 1.5, 1.5, 1.5, 1.5], [], ((None, None),)),
    ([0.5, 1.5, 1.5, 1.5, 1.5], [1.5], ((1.5, None),)),
    ([1.5, 1.5, 1.5, 0.5, 0.5], [6.0], ((None, 6.0),)),
    ([0.5, 1.5, 0.5, 1.5, 0.5], [1.5, 3.0, 6.0, 12.0], ((1.5, 3.0), (6.0, 12.0))),
    ([1.5, 0.5, 0.5, 0.5, 1.5], [1.5, 12.0], ((None, 1.5), (12.0, None))),
    ([0.5, 1.0, 1.5, 1.5, 0.5], [2.0, 12.0], ((2.0, 12.0),)),
    ([1.0, 1.0, 1.0, 1.5, 1.5], [], ((None, None),)),
    ([1.0, 1.0, 1.0, 0.5, 0.5], [4.0], ((None, 4.0),)),
    ([0.5, 0.5, 1.0, 1.0, 1.0], [4.0], ((4.0, None),)),
    ([0.0, 0.0, 0.0, np.inf, np.inf], None, None),
])  # fmt: skip
def test_a_level_is_crossed_where_the_line_between_neighbours_meets_it(gain, at, pays) -> None:
    found, intervals = of(gain)
    if at is None:
        assert len(found) == 1
        assert 4.0 <= found[0] <= 8.0
        assert len(intervals) == 1
        return
    assert found == pytest.approx(at)
    assert intervals == pays


def test_on_a_logarithmic_axis_the_line_is_straight_there() -> None:
    assert of([0.5, 1.5, 1.5, 1.5, 1.5], logarithmic=True)[0] == pytest.approx([2**0.5])


@given(gain=st.lists(st.sampled_from([0.5, 0.9, 1.0, 1.1, 1.5]), min_size=5, max_size=5))
def test_intervals_hold_exactly_the_points_that_pay(gain: list[float]) -> None:
    _, intervals = of(gain, 1.1)
    for x, value in zip(X, gain, strict=True):
        inside = any((start is None or start <= x) and (end is None or x <= end) for start, end in intervals)
        assert inside or value < 1.1
        if value < 1.1:
            assert not any((start is None or start < x) and (end is None or x < end) for start, end in intervals)


def test_quantiles_lie_between_draws_and_keep_infinities_apart() -> None:
    assert quantile(np.array([3.0, 1.0, 2.0]), 0.5) == 2.0
    assert quantile(np.array([1.0, 2.0]), 0.5) == 1.5
    assert quantile(np.array([1.0, np.inf]), 0.05) == 1.0
    assert quantile(np.array([1.0, np.inf]), 0.95) == np.inf
    assert quantile(np.array([-np.inf, 0.0, 1.0]), 0.05) == -np.inf
    assert quantile(np.full(5, np.inf), 0.5) == np.inf
    assert quantile(np.array([7.0]), 0.05) == 7.0


@given(draws=st.lists(st.one_of(st.floats(0, 1e6), st.just(float("inf"))), min_size=1, max_size=40), q=st.floats(0, 1))
def test_a_quantile_is_never_not_a_number(draws: list[float], q: float) -> None:
    found = quantile(np.array(draws), q)
    assert min(draws) <= found <= max(draws)


def test_an_unbounded_end_of_an_interval_is_none() -> None:
    found = interval(np.array([1.0] * 60 + [np.inf] * 40))
    assert (found.median, found.low, found.high) == (1.0, 1.0, None)
    assert interval(2.0).median == 2.0


@pytest.mark.parametrize(("off", "on", "time", "gain"), [
    (2.0, 1.0, True, 2.0), (2.0, 1.0, False, 0.5), (np.inf, 1.0, True, np.inf), (1.0, np.inf, True, 0.0), (np.inf, np.inf, True, 1.0),
    (0.0, 0.0, False, 1.0), (0.0, 3.0, False, np.inf), (3.0, 0.0, False, 0.0),
])  # fmt: skip
def test_a_ratio_is_defined_where_an_arm_is_unbounded_or_nothing(off, on, time, gain) -> None:
    assert float(ratio(np.array(off), np.array(on), time=time)) == gain


class TestEqualArms:
    """A lever that changes nothing gains nothing on a curve, where there is a curve."""

    @staticmethod
    def both(**flags: object) -> Arms:
        d, _ = be.load(flags={"model": "llama-3.1-8b", "hardware": "h100-sxm", **flags})
        point = be.evaluate(d)
        return Arms(lever="batching", setting="", off=d, on=d, sigma=Sigma(), point_off=point, point_on=point, fits_off=True, fits_on=True)

    def test_have_a_gain_of_one_wherever_there_is_a_point(self) -> None:
        pinned, open_loop = self.both(batch=8, context=1000), self.both(rate=2, input=500, output=100)
        for arms, axis, metric in ((pinned, "context_tokens", "tpot"), (pinned, "batch", "tpot"), (open_loop, "request_rate", "e2e")):
            for draws in (MEDIAN, Draws(8, 0)):
                found = gain_along(arms, axis, np.array([10.0, 20.0]), metric, draws)
                assert found is not None and found.shape == ((2, 8) if draws.size else (2,)) and np.all(found == 1.0)

    def test_have_none_where_a_metric_has_no_meaning(self) -> None:
        assert gain_along(self.both(batch=8, context=1000), "batch", np.array([1.0, 2.0]), "e2e", MEDIAN) is None

    @pytest.mark.parametrize("axis", ["request_rate", "output_tokens"])
    def test_have_none_where_the_load_has_no_lengths_to_be_moved_with(self, axis: Axis) -> None:
        """A batch and a context say nothing of requests: what cannot be evaluated is refused, as it is of two arms that differ."""
        for draws in (MEDIAN, Draws(8, 0)):
            with pytest.raises(InputError):
                gain_along(self.both(batch=8, context=1000), axis, np.array([1.0, 2.0]), "tpot", draws)
