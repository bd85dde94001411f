"""A rate that varies: equal rates are one rate, the mean over groups closes Little's law, and what a mean batch hides is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import breakeven as be
from breakeven import api
from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.evaluator import evaluate
from breakeven.occupancy import occupancy_of
from breakeven.origin.arrival_rates import arrival_rates, factors_of, spill
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import ArrivalRates
from breakeven.statement import check

NODES = ArrivalRates(factors=(0.25, 1.75), weights=(0.5, 0.5), window_s=600.0, windows=144)
FIGURES = ("batch", "tpot_s", "ttft_s", "e2e_s", "wait_s", "request_rate", "max_request_rate", "throughput", "prefill_share", "step_s")


def deployment(rate: float, rates: ArrivalRates | None = None, **engine: object) -> Deployment:
    return be.Deployment(
        model=be.model("llama-3.1-8b"),
        hardware=be.hardware("h100-sxm"),
        engine=be.engine("vllm", "0.11", **engine),
        workload=be.Workload(input_tokens=1000.0, output_tokens=250.0, request_rate=rate, arrivals=rates),
    )


def varying(factors: list[float], weights: list[float], window_s: float = 60.0) -> ArrivalRates:
    """Groups with those weights in proportion, and factors scaled to a mean of 1."""
    share = np.array(weights) / sum(weights)
    scaled = np.array(factors) / (share @ np.array(factors))
    levels = tuple((level, wait) for level, wait in spill(np.sort(scaled), window_s))
    return ArrivalRates(factors=tuple(map(float, scaled)), weights=tuple(map(float, share)), window_s=window_s, windows=60, spill=levels)


class TestEqualRates:
    @pytest.mark.parametrize("draws", [0, 32])
    @pytest.mark.parametrize("exact", [True, False])
    def test_are_exactly_one_rate(self, draws: int, exact: bool) -> None:
        rates = ArrivalRates(factors=(1.0,) * 8, weights=(0.125,) * 8, window_s=60.0, windows=60)
        one = evaluate(deployment(6.0), Draws(draws), exact=exact)
        same = evaluate(deployment(6.0, rates), Draws(draws), exact=exact)
        assert all(np.array_equal(getattr(one, name), getattr(same, name)) for name in FIGURES)

    def test_are_one_rate_in_the_limit(self) -> None:
        rates = varying([1.0 - 1e-9, 1.0 + 1e-9], [1.0, 1.0])
        one, near = evaluate(deployment(6.0)), evaluate(deployment(6.0, rates))
        assert near.rate_groups is not None
        assert all(np.allclose(getattr(one, name), getattr(near, name), rtol=1e-6, atol=1e-9) for name in FIGURES)

    def test_give_the_advice_of_one_rate(self) -> None:
        rates = ArrivalRates(factors=(1.0, 1.0), weights=(0.5, 0.5), window_s=60.0, windows=60)
        one, same = (api.advise(deployment(6.0, rates), draws=64) for rates in (None, rates))
        assert one.operating_point == same.operating_point and one.best == same.best
        assert {name: lever.metrics for name, lever in one.levers.items()} == {name: lever.metrics for name, lever in same.levers.items()}


class TestMeansOverGroups:
    def test_are_by_tokens_requests_and_time(self) -> None:
        """Put together by hand from two deployments that each have one of the rates."""
        rate = 6.0
        found = evaluate(deployment(rate, NODES))
        calm, busy = (evaluate(deployment(rate * factor)) for factor in NODES.factors)
        shares = [weight * factor for weight, factor in zip(NODES.weights, NODES.factors, strict=True)]
        assert found.tpot_s == pytest.approx(shares[0] * calm.tpot_s + shares[1] * busy.tpot_s, rel=1e-9)
        assert found.batch == pytest.approx((calm.batch + busy.batch) / 2, rel=1e-9)
        assert found.ttft_s is not None and calm.ttft_s is not None and busy.ttft_s is not None
        assert found.ttft_s == pytest.approx(shares[0] * calm.ttft_s + shares[1] * busy.ttft_s, rel=1e-6)
        assert found.max_request_rate == calm.max_request_rate

    @settings(max_examples=60)
    @given(
        st.lists(st.floats(0.01, 20.0), min_size=2, max_size=6),
        st.floats(0.05, 80.0),
        st.integers(1, 256),
        st.sampled_from([0, 16]),
        st.booleans(),
    )
    def test_close_every_book_at_any_load(self, factors: list[float], rate: float, cap: int, draws: int, exact: bool) -> None:
        d = deployment(rate, varying(factors, [1.0 + i for i in range(len(factors))]), max_num_seqs=cap)
        point = evaluate(d, Draws(draws), exact=exact)
        check(point, d)
        assert np.all(np.asarray(point.batch) <= np.asarray(point.cap) * (1 + 1e-9))
        assert np.all(np.asarray(point.saturated) == (rate >= np.asarray(point.max_request_rate)))
        assert np.all(np.isfinite(np.asarray(point.e2e_s)) == ~np.asarray(point.saturated))

    def test_a_rate_twice_as_high_is_twice_as_high_in_every_group(self) -> None:
        once, twice = evaluate(deployment(3.0, NODES)), evaluate(deployment(6.0, NODES))
        alone = evaluate(deployment(6.0 * NODES.factors[1]))
        assert twice.rate_groups is not None and once.rate_groups is not None
        assert float(twice.rate_groups.batch[1]) == pytest.approx(float(alone.batch), rel=1e-12)
        assert float(twice.rate_groups.batch[1]) > float(once.rate_groups.batch[1])

    def test_arrays_along_an_axis_give_what_they_give_one_by_one(self) -> None:
        rates = np.array([1.0, 4.0, 9.0])
        together = evaluate(replace(d := deployment(1.0, NODES), workload=replace(d.workload, request_rate=rates)))
        singly = [evaluate(deployment(float(rate), NODES)) for rate in rates]
        for name in FIGURES:
            assert np.broadcast_to(getattr(together, name), 3) == pytest.approx(
                [float(getattr(point, name)) for point in singly], rel=1e-3
            ), name


class TestOverload:
    def test_bursts_above_what_can_be_served_wait_but_the_queue_has_an_end(self) -> None:
        """A tenth of the time asks for five times what is served; over all there is room."""
        rates = varying([0.5, 5.5], [9.0, 1.0], window_s=60.0)
        most = float(evaluate(deployment(1.0, max_num_seqs=16)).max_request_rate)
        found = evaluate(d := deployment(0.8 * most, rates, max_num_seqs=16))
        assert not found.saturated and found.rate_groups is not None
        assert float(found.rate_groups.saturated_share) == pytest.approx(0.1)
        assert 1.0 < float(found.wait_s) < 600.0
        advised = api.advise(d, draws=32)
        over_time = advised.operating_point.batch_over_time
        assert over_time is not None and over_time.saturated_share == pytest.approx(0.1)
        assert "judge.warn_windows_saturated" in {warning.key for warning in advised.warnings}

    def test_at_a_mean_rate_beyond_it_nothing_is_calm(self) -> None:
        most = float(evaluate(deployment(1.0, max_num_seqs=16)).max_request_rate)
        found = evaluate(deployment(1.01 * most, NODES, max_num_seqs=16))
        one = evaluate(deployment(1.01 * most, max_num_seqs=16))
        assert bool(found.saturated) and found.batch == one.batch and found.tpot_s == pytest.approx(one.tpot_s) and np.isinf(found.e2e_s)

    @given(st.lists(st.floats(0.0, 5.0), min_size=2, max_size=30).filter(lambda x: sum(x) > 0.1))
    def test_what_is_left_behind_is_the_queue_of_a_fluid(self, rates: list[float]) -> None:
        """Against the queue followed in a thousand steps a window."""
        factors = np.array(rates) / np.mean(rates)
        for level, wait in spill(factors, 60.0)[4::9]:
            queue, area, steps = 0.0, 0.0, 1000
            for factor in factors:
                for _ in range(steps):
                    before, queue = queue, max(0.0, queue + (factor - level) / steps)
                    area += (before + queue) / 2 / steps
            assert wait == pytest.approx(60.0 * area / len(factors), rel=2e-3, abs=60e-3)


class TestWindowsOfATrace:
    @pytest.mark.parametrize("seed", range(6))
    def test_poisson_arrivals_are_one_rate(self, seed: int) -> None:
        found = arrival_rates(np.cumsum(np.random.default_rng(seed).exponential(0.2, 20_000)))
        assert found is None or max(found.factors) - min(found.factors) < 0.2

    def test_two_rates_are_found_without_the_chance_in_the_counts(self) -> None:
        """Ten minutes at 1 and ten at 9 a second, in turn."""
        rng = np.random.default_rng(1)
        at = np.concatenate(
            [np.sort(rng.uniform(600.0 * i, 600.0 * (i + 1), rng.poisson(600 * (1, 9)[i % 2]))) for i in range(24)] + [[0.0, 14_400.0]]
        )
        found = arrival_rates(np.sort(at))
        assert found is not None and found.windows == pytest.approx(240, abs=1)
        assert np.mean(found.factors[:4]) == pytest.approx(0.2, abs=0.01) and np.mean(found.factors[4:]) == pytest.approx(1.8, abs=0.01)
        raw = np.histogram(at, 240)[0] / (len(at) / 240)
        kept = factors_of(np.histogram(at, 240)[0].astype(float))
        assert kept is not None and kept.std() < raw.std()

    def test_too_few_windows_tell_nothing(self) -> None:
        assert arrival_rates(np.linspace(0.0, 300.0, 1000)) is None

    @given(st.integers(0, 10**6), st.integers(8, 60))
    def test_groups_keep_the_mean_and_the_time(self, seed: int, windows: int) -> None:
        rng = np.random.default_rng(seed)
        at = np.sort(
            np.concatenate([rng.uniform(60.0 * i, 60.0 * (i + 1), rng.integers(0, 800)) for i in range(windows)] + [[0.0, 60.0 * windows]])
        )
        found = arrival_rates(at)
        if found is not None:
            assert np.dot(found.factors, found.weights) == pytest.approx(1.0, abs=1e-9)
            assert sum(found.weights) == pytest.approx(1.0) and min(found.factors) > 0.0


class TestOccupancy:
    def test_of_one_rate_has_the_mean_of_its_operating_point(self) -> None:
        for rate in (0.2, 3.0, 12.0):
            d = deployment(rate)
            found = occupancy_of(d, np.array([1.0]), np.array([1.0]))
            assert found.shares.sum() == pytest.approx(1.0, abs=1e-9)
            assert found.mean == pytest.approx(float(evaluate(d).batch), rel=1e-6)
            assert found.mean <= found.seen_by_a_token <= found.seen_by_a_sequence

    def test_at_the_cap_it_stays_there(self) -> None:
        d = deployment(500.0, max_num_seqs=8)
        found = occupancy_of(d, np.array([1.0]), np.array([1.0]))
        assert found.mean == 8.0 and found.quantile(0.01) == 8.0 and found.saturated == 1.0

    def test_a_token_sees_the_bursts(self) -> None:
        """Nine tenths of the time nearly idle: the mean over time says little of where tokens are made."""
        rates = varying([0.02, 9.82], [9.0, 1.0])
        d = deployment(1.0, rates)
        found = occupancy_of(d, np.array(rates.factors), np.array(rates.weights))
        assert found.few > 0.85 and found.mean < 4.0 < 15.0 < found.seen_by_a_token


def test_trap_1_a_verdict_at_the_mean_is_right_for_no_moment() -> None:
    """Idle nights, bursts by day: at the mean rate drafting pays; where the tokens are made it costs."""
    rates = varying([0.02, 9.82], [9.0, 1.0], window_s=600.0)
    d = deployment(1.7)
    drafts = be.Speculative(method="ngram", num_speculative_tokens=3)
    known = be.Acceptance(cumulative=(0.5, 0.3, 0.18), k=3, method="ngram")
    d = replace(d, engine=replace(d.engine, speculative=drafts), workload=replace(d.workload, acceptance=known))
    over_time = api.advise(replace(d, workload=replace(d.workload, arrivals=rates)), objective="tpot")
    at_the_mean = api.advise(d, objective="tpot")
    seen, meant = over_time.levers["speculation"], at_the_mean.levers["speculation"]
    assert (meant.verdict, seen.verdict) == ("pays", "undecided")
    assert meant.metrics["tpot"].gain > 1.7 and seen.metrics["tpot"].gain < 1.0
    spread = over_time.operating_point.batch_over_time
    assert spread is not None and spread.share_below_four > 0.85
    assert at_the_mean.operating_point.effective_batch < 4.0 < 100.0 < spread.seen_by_a_token
    times = []
    for speculative in (None, drafts):
        pinned = replace(d.workload, request_rate=None, batch=np.array([2.0, spread.seen_by_a_token]), context_tokens=1125.0)
        times.append(evaluate(replace(d, engine=replace(d.engine, speculative=speculative), workload=pinned)).tpot_s)
    night, burst = times[0] / times[1]
    assert night > 1.5 and burst < 1.0


@pytest.mark.parametrize(
    "rates",
    [
        ArrivalRates(factors=(1.0, 2.0), weights=(0.5, 0.5), window_s=60.0, windows=60),
        ArrivalRates(factors=(1.0,), weights=(0.5, 0.5), window_s=60.0, windows=60),
        ArrivalRates(factors=(0.0, 2.0), weights=(0.5, 0.5), window_s=60.0, windows=60),
        ArrivalRates(factors=(2.0, 2.0), weights=(0.25, 0.25), window_s=60.0, windows=60),
        ArrivalRates(factors=(), weights=(), window_s=60.0, windows=60),
        ArrivalRates(factors=(0.5, 1.5), weights=(0.5, 0.5), window_s=0.0, windows=60),
    ],
)
def test_groups_that_cannot_be_are_refused_in_one_line(rates: ArrivalRates) -> None:
    with pytest.raises(InputError, match="arrivals"):
        api.advise(deployment(1.0, rates))


def test_groups_without_an_open_loop_are_refused() -> None:
    d = deployment(1.0, NODES)
    with pytest.raises(InputError, match="arrivals"):
        api.advise(replace(d, workload=replace(d.workload, request_rate=None, concurrency=4.0)))
