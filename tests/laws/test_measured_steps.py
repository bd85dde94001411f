"""Measured steps over width: they stand inside their widths, join the roofline at their ends, and speculation reads them at b·(k + 1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from breakeven import api
from breakeven.ledger.step import roofline_s, step_time
from breakeven.spec.calibration import Calibration, StepCurve
from breakeven.spec.engine import Speculative

CONTEXT = 1000.0
STAIRCASE = {1.0: 0.020, 2.0: 0.036, 4.0: 0.038, 8.0: 0.061, 32.0: 0.150}
MODELS = st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gemma-2-9b"])
curves = st.lists(st.tuples(st.floats(1.0, 300.0), st.floats(0.001, 1.0)), min_size=1, max_size=6, unique_by=lambda point: point[0]).map(
    lambda points: dict(zip(sorted(n for n, _ in points), sorted(s for _, s in points), strict=True))
)


def curve_of(d, points: dict[float, float], context: float = CONTEXT, **engine) -> StepCurve:
    settings_of = replace(d.engine, speculative=None, **engine)
    return StepCurve(model=d.model, engine=settings_of, context_tokens=context, rows=tuple(points), step_s=tuple(points.values()))


def measured(d, *found: StepCurve):
    return replace(d, calibration=Calibration(values={}, curves=found))


def pinned(build, model="llama-3.1-8b", batch=4.0, context=CONTEXT, **rest):
    return build(model, batch=batch, context_tokens=context, **rest)


@settings(max_examples=30, deadline=None)
@given(model=MODELS, points=curves)
def test_at_its_own_conditions_a_step_is_the_measured_one(build, model, points) -> None:
    d = pinned(build, model, batch=np.array(list(points)))
    found = api.evaluate(measured(d, curve_of(d, points)))
    np.testing.assert_allclose(found.step_s / found.time_factor, list(points.values()), rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(model=MODELS, points=curves, context=st.floats(1.0, 30000.0), rows=st.integers(1, 5))
def test_a_step_never_gets_cheaper_with_width_and_never_jumps(build, model, points, context, rows) -> None:
    d = pinned(build, model, context=context)
    cost = api.evaluate(measured(d, curve_of(d, points))).cost
    if rows > 1:
        spec = Speculative(method="ngram", num_speculative_tokens=rows - 1)
        cost = api.evaluate(measured(replace(d, engine=replace(d.engine, speculative=spec)), curve_of(d, points))).cost
    at = np.geomspace(1.0, 2000.0, 4001)
    seconds = np.asarray(step_time(cost, at))
    assert np.all(np.diff(seconds) >= -1e-12 * seconds[1:])
    widths, times = np.array(cost.widths.rows), np.asarray(cost.widths.step_s).reshape(len(cost.widths.rows))
    steepest = np.max(np.diff(times) / np.diff(widths), initial=0.0)
    for end in (width for width in (min(points), max(points)) if width > rows):
        off = 1e-9 * end
        near = np.asarray(step_time(cost, np.array([end - off, end, end + off]) / rows))
        assert np.all(np.abs(near - near[1]) <= 1.01 * steepest * off + 1e-7 * near[1])


@pytest.mark.parametrize("batch", [0.25, 64.0, 500.0])
def test_outside_the_widths_measured_the_roofline_goes_on_in_proportion(build, batch) -> None:
    points = {2.0: 0.036, 32.0: 0.150}
    d = pinned(build)
    cost = api.evaluate(measured(d, curve_of(d, points))).cost
    end = 2.0 if batch < 2.0 else 32.0
    expected = points[end] * roofline_s(cost, batch) / roofline_s(cost, end)
    assert float(step_time(cost, batch)) == pytest.approx(float(expected), rel=1e-12)


def test_verification_reads_the_curve_at_all_its_rows(build) -> None:
    """A sequence has one cache and one sampler however many rows it verifies, and the roofline says what those beyond b sequences take."""
    spec = Speculative(method="ngram", num_speculative_tokens=3)
    d = pinned(build, batch=8.0, engine={"speculative": spec})
    cost = api.evaluate(measured(d, curve_of(d, STAIRCASE))).cost
    bare = replace(cost, draft_fixed_s=0.0, draft_per_sequence_s=0.0, draft_launch_s=0.0)
    plain = api.evaluate(pinned(build)).cost
    expected = STAIRCASE[32.0] * roofline_s(cost, 8.0) / roofline_s(plain, 32.0)
    assert float(step_time(bare, 8.0)) == pytest.approx(float(expected), rel=1e-12)
    assert 0.8 * STAIRCASE[32.0] < expected < STAIRCASE[32.0]


def test_the_price_of_speculation_stands_beside_what_was_measured(build) -> None:
    spec = Speculative(method="eagle3", num_speculative_tokens=3)
    d = pinned(build, engine={"speculative": spec})
    plain, known = api.evaluate(d).cost, api.evaluate(measured(d, curve_of(d, STAIRCASE))).cost
    drafting = step_time(plain, 4.0) - roofline_s(plain, 4.0)
    zero = replace(known, draft_fixed_s=0.0, draft_per_sequence_s=0.0, draft_launch_s=0.0, draft_read_s=0.0, draft_compute_s=0.0)
    assert step_time(known, 4.0) - step_time(zero, 4.0) == pytest.approx(float(drafting), rel=1e-9)


def test_an_arm_in_another_format_keeps_what_the_format_saves(build) -> None:
    d = pinned(build, context=CONTEXT)
    on = replace(d, engine=replace(d.engine, quantization="fp8"))
    own = curve_of(d, {1.0: 0.020, 64.0: 0.060})
    off_s, on_s = (api.evaluate(measured(arm, own)).step_s for arm in (d, on))
    plain = api.evaluate(on).step_s / api.evaluate(d).step_s
    assert on_s / off_s == pytest.approx(float(plain), rel=5e-3)
    both = measured(on, own, curve_of(d, {1.0: 0.015, 4.0: 0.016, 64.0: 0.050}, quantization="fp8"))
    found = api.evaluate(both)
    assert float(found.step_s / found.time_factor) == pytest.approx(0.016, rel=1e-12)


def test_curves_at_two_contexts_are_joined_straight_in_between(build) -> None:
    d = pinned(build, context=np.array([500.0, 1000.0, 2000.0, 3000.0, 6000.0]))
    short, long = curve_of(d, STAIRCASE, context=1000.0), curve_of(d, {1.0: 0.03, 4.0: 0.058, 32.0: 0.3}, context=3000.0)
    found = api.evaluate(measured(d, long, short))
    seconds = found.step_s / found.time_factor
    np.testing.assert_allclose(seconds[[1, 3]], [0.038, 0.058], rtol=1e-12)
    assert seconds[0] < seconds[1] < seconds[2] < seconds[3] < seconds[4]


@settings(max_examples=20, deadline=None)
@given(points=curves, batch=st.floats(1.0, 400.0))
def test_draws_and_arrays_of_batches_agree_with_one_at_a_time(build, points, batch) -> None:
    d = pinned(build, batch=batch)
    known = measured(d, curve_of(d, points))
    whole = api.evaluate(replace(known, workload=replace(known.workload, batch=np.array([1.0, batch, 50.0])))).step_s
    assert whole[1] == pytest.approx(float(api.evaluate(known).step_s), rel=1e-12)
    drawn = api.evaluate(known, draws=16)
    assert np.median(drawn.step_s) == pytest.approx(float(api.evaluate(known).step_s), rel=0.2)
    assume(min(points) <= batch <= max(points))
    np.testing.assert_allclose(drawn.step_s / drawn.time_factor, drawn.step_s[0] / drawn.time_factor[0], rtol=1e-9)


def test_a_curve_of_another_spread_is_not_read(build) -> None:
    d = pinned(build, engine={"tensor_parallel_size": 2})
    other = curve_of(d, STAIRCASE, tensor_parallel_size=4)
    assert float(api.evaluate(measured(d, other)).step_s) == float(api.evaluate(d).step_s)


def test_the_books_close_over_a_measured_step(build) -> None:
    points = {1.0: 0.020, 2.0: 0.036, 64.0: 0.2}
    for model in ("llama-3.1-8b", "qwen3-30b-a3b"):
        d = build(model, input_tokens=1000, output_tokens=200, request_rate=0.5)
        advice = api.advise(measured(d, curve_of(d, points)), draws=32)
        assert sum(advice.ledgers.step_parts_s.values()) == pytest.approx(advice.operating_point.step_s, rel=1e-9)


def test_a_curve_of_few_widths_has_the_stairs_of_one_with_many(build) -> None:
    """Kernels cut rows into the same tiles at every context, so that one context has to be measured finely and the others need not."""
    fine = {1.0: 0.010, 2.0: 0.020, 3.0: 0.030, 4.0: 0.028, 8.0: 0.036}
    coarse = {1.0: 0.014, 4.0: 0.040, 8.0: 0.052}
    d = pinned(build, batch=3.0, context=2000.0)
    found = api.evaluate(measured(d, curve_of(d, fine, context=1000.0), curve_of(d, coarse, context=2000.0)))
    straight = 0.014 + (0.040 - 0.014) * 2 / 3
    stairs = 0.030 / (0.010 + (0.028 - 0.010) * 2 / 3)
    assert float(found.step_s / found.time_factor) == pytest.approx(straight * stairs, rel=0.02)
    four = api.evaluate(
        measured(replace(d, workload=replace(d.workload, batch=4.0)), curve_of(d, fine), curve_of(d, coarse, context=2000.0))
    )
    assert float(four.step_s / four.time_factor) == pytest.approx(0.040, rel=1e-9)


def test_what_was_measured_to_fall_falls(build) -> None:
    d = pinned(build, batch=np.array([3.0, 4.0]))
    found = api.evaluate(measured(d, curve_of(d, {1.0: 0.010, 3.0: 0.030, 4.0: 0.028})))
    np.testing.assert_allclose(found.step_s / found.time_factor, [0.030, 0.028], rtol=1e-12)
