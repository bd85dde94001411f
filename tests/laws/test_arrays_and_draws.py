"""Arrays in give arrays out, with the values that numbers give one by one; draws are the same for the same seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import api, evaluator, judge
from breakeven.draws import Draws
from breakeven.efficiencies import prior
from breakeven.spec.workload import Acceptance
from breakeven.stats import Range, Spread

OPEN = {"input_tokens": 2000.0, "output_tokens": 200.0, "request_rate": 3.0}
CLOSED = {"input_tokens": 2000.0, "output_tokens": 200.0, "concurrency": 24.0}
PINNED = {"batch": 24.0, "input_tokens": 2000.0, "output_tokens": 200.0}
BARE = {"batch": 24.0, "context_tokens": 2000.0}
AXES = [
    (OPEN, "request_rate", [0.1, 1.0, 4.0, 9.0, 40.0]),
    (OPEN, "input_tokens", [100.0, 1000.0, 8000.0]),
    (OPEN, "output_tokens", [10.0, 200.0, 900.0]),
    (OPEN, "prefix_hit_rate", [0.0, 0.3, 0.95]),
    (CLOSED, "concurrency", [1.0, 8.0, 300.0]),
    (CLOSED, "input_tokens", [100.0, 1000.0, 8000.0]),
    (CLOSED, "output_tokens", [2.0, 200.0, 900.0]),
    (CLOSED, "prefix_hit_rate", [0.0, 0.3, 0.95]),
    (PINNED, "batch", [1.0, 8.0, 200.0]),
    (PINNED, "output_tokens", [10.0, 200.0, 900.0]),
    (BARE, "batch", [1.0, 8.0, 200.0]),
    (BARE, "context_tokens", [0.0, 1000.0, 30000.0]),
]
METRICS = ("tpot", "ttft", "e2e", "throughput", "capacity", "cost")


def arms(build, base, lever: str, setting: str):
    d = build("llama-3.1-8b", engine={"max_num_seqs": 48}, **base)
    return d, api.lever_named(lever).apply(d, setting)


@pytest.mark.parametrize(
    ("lever", "setting"),
    [
        ("batching", "128"),
        ("kv_quant", "fp8"),
        ("prefix_cache", "on"),
        ("speculation", "eagle3 k=3"),
        ("weight_quant", "int4_marlin"),
    ],
)
@pytest.mark.parametrize(("base", "field", "values"), AXES)
def test_arrays_give_what_numbers_give_one_by_one(build, lever, setting, base, field, values) -> None:
    base = {"prefix_hit_rate": 0.2, "acceptance": Acceptance(alpha=0.7), **base}
    for exact in (True, False):
        for d in arms(build, base, lever, setting):
            together = evaluator.evaluate(replace(d, workload=replace(d.workload, **{field: np.array(values)})), exact=exact)
            for i, value in enumerate(values):
                one = evaluator.evaluate(replace(d, workload=replace(d.workload, **{field: value})), exact=exact)
                for metric in METRICS:
                    a, b = judge.metric_of(together, metric), judge.metric_of(one, metric)
                    assert (a is None) == (b is None)
                    if a is not None:
                        found = np.broadcast_to(a, (len(values),))[i]
                        tolerance = 2e-3 if exact and base.get("request_rate") else 1e-9
                        assert found == b or np.isclose(found, b, rtol=tolerance), metric


@pytest.mark.parametrize("field", ["length", "alpha", "rate"])
def test_arrays_of_acceptance_give_what_numbers_give(build, field) -> None:
    from breakeven.spec.engine import Speculative

    values = np.array([1.2, 2.0, 3.9]) if field == "length" else np.array([0.1, 0.5, 0.95])
    spec = Speculative(method="eagle3", num_speculative_tokens=3)
    found = api.evaluate(build(engine={"speculative": spec}, **BARE, acceptance=Acceptance(**{field: values}))).tpot_s
    each = [
        float(api.evaluate(build(engine={"speculative": spec}, **BARE, acceptance=Acceptance(**{field: float(v)}))).tpot_s) for v in values
    ]
    assert np.allclose(found, each, rtol=1e-9)


UNSURE = {
    "input_tokens": Spread(mean=2000.0, p95=5000.0),
    "output_tokens": Range(low=100.0, high=400.0),
    "request_rate": Range(low=1.0, high=4.0),
    "prefix_hit_rate": Range(low=0.0, high=0.6),
    "acceptance": Acceptance(alpha=Range(low=0.5, high=0.8)),
}


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(build) -> None:
    d = build(engine={"enable_prefix_caching": True}, **UNSURE)
    a, b, other = (api.evaluate(d, draws=64, seed=seed) for seed in (7, 7, 8))
    for metric in METRICS:
        assert judge.metric_of(a, metric).tobytes() == judge.metric_of(b, metric).tobytes()
    assert a.e2e_s.tobytes() != other.e2e_s.tobytes()


def test_a_whole_advice_is_the_same_for_the_same_seed(build) -> None:
    d = build(**UNSURE)
    first, second = (api.advise(d, draws=32, seed=3) for _ in range(2))
    assert {n: (x.verdict, x.setting, x.metrics, x.boundaries) for n, x in first.levers.items()} == {
        n: (x.verdict, x.setting, x.metrics, x.boundaries) for n, x in second.levers.items()
    }
    assert first.best == second.best


def test_draws_without_spread_are_the_median_world(build, monkeypatch) -> None:
    sure = {"tpot_between": 0.0, "tpot_within": 0.0, "ttft_between": 0.0, "ttft_within": 0.0}
    real = evaluator.prior
    monkeypatch.setattr(evaluator, "prior", lambda engine, calibration=None: replace(real(engine), **sure))
    point_like = {
        "input_tokens": Range(low=2000.0, high=2000.0),
        "output_tokens": Range(low=200.0, high=200.0),
        "request_rate": Range(low=3.0, high=3.0),
        "prefix_hit_rate": Range(low=0.3, high=0.3),
    }
    drawn = api.evaluate(build(engine={"enable_prefix_caching": True}, **point_like), draws=16)
    middle = api.evaluate(build(engine={"enable_prefix_caching": True}, **point_like))
    for metric in METRICS:
        assert np.allclose(judge.metric_of(drawn, metric), judge.metric_of(middle, metric), rtol=1e-9)


def test_the_median_of_the_draws_is_the_median_world(build) -> None:
    d = build(batch=16.0, context_tokens=2000.0)
    drawn, middle = api.evaluate(d, draws=4096).tpot_s, float(api.evaluate(d).tpot_s)
    assert np.isclose(np.median(drawn), middle, rtol=0.01)
    e = prior(d.engine)
    assert np.isclose(np.std(np.log(drawn)), (e.tpot_between**2 + e.tpot_within**2) ** 0.5, rtol=0.05)


def test_what_two_arms_share_cancels_in_their_ratio(build) -> None:
    d = build(batch=16.0, context_tokens=2000.0)
    on = api.lever_named("kv_quant").apply(d, "fp8")
    drawn = judge.gain_draws(api.evaluate(d, draws=128), api.evaluate(on, draws=128), "tpot")
    assert np.ptp(drawn) < 1e-12


def test_a_levers_own_error_does_not_cancel(build) -> None:
    d = build(batch=16.0, context_tokens=2000.0)
    both = judge.arms(api.lever_named("kv_quant"), d, "fp8", Draws(512, 0))
    drawn = judge.gain_draws(both.point_off, both.point_on, "tpot")
    assert np.isclose(np.std(np.log(drawn)), both.sigma.step, rtol=0.03)
    assert both.sigma.step > 0


def test_a_name_has_the_same_draws_in_every_arm() -> None:
    world = Draws(32, 5)
    assert world.normal("acceptance:eagle3") is world.normal("acceptance:eagle3")
    assert not np.array_equal(world.normal("acceptance:eagle3"), world.normal("acceptance:mtp"))
    assert not np.array_equal(world.normal("a"), Draws(32, 6).normal("a"))
    assert not world.normal("a").flags.writeable
