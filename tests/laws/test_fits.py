"""Fits of serving runs that the model made itself: what rows say is found, what they do not say stays, and what is odd pulls little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from breakeven import api
from breakeven.calibration import leave_out as leaving
from breakeven.calibration.evidence import Evidence, weights
from breakeven.calibration.fit import BEND, Fit, _slope, fit, rooted
from breakeven.calibration.leave_out import fit_runs, leave_groups_out, parameters_of
from breakeven.calibration.parameters import Parameter, values_of
from breakeven.evaluator import evaluate
from breakeven.measured.run import Run
from breakeven.messages import Message
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Workload

CENTRES = {p.name: p.centre for p in parameters_of([])}
TRUE = {
    **CENTRES,
    "step.layer_s": 60e-6,
    "step.bandwidth_dense": 0.72,
    "step.sequence_s": 45e-6,
    "prefill.mfu_dense": 0.75,
    "ttft.start_s": 90e-3,
    "scale.sglang.ttft.layer_s": 2.0,
}
MOVED = {name: value for name, value in TRUE.items() if CENTRES.get(name) != value}
LOADS, PROMPTS = (1.0, 8.0, 32.0, 128.0), (128.0, 1024.0, 4096.0)
DEPLOYED = (
    ("llama-3.1-8b", "h100-sxm", "vllm"),
    ("llama-3.2-3b", "b200-sxm", "vllm"),
    ("llama-3.2-3b", "h100-sxm", "sglang"),
    ("qwen2.5-7b", "b200-sxm", "sglang"),
    ("qwen3-8b", "h100-sxm", "trtllm"),
    ("llama-3.1-8b", "b200-sxm", "trtllm"),
)


def made(model: str, device: str, engine: str, load: float, prompt: float, miss: Sequence[float]) -> Run:
    """A run whose times are the model's with numbers that are known, times exp(miss)."""
    hardware = api.hardware(device, 1)
    settings = api.engine(engine, "1.0", hardware.device, enable_prefix_caching=False, max_num_seqs=1024)
    d = Deployment(
        model=api.model(model),
        hardware=hardware,
        engine=settings,
        workload=Workload(input_tokens=prompt, output_tokens=256.0, concurrency=load),
    )
    point = evaluate(replace(d, calibration=Calibration(values=TRUE)))
    assert point.ttft_s is not None
    group = f"{model} | {device} | {engine}"
    return Run(
        id="",
        where=f"made.csv:{group}:{load}:{prompt}",
        deployment=d,
        group=group,
        batch_of_runs=group,
        tpot_s=float(point.tpot_s * np.exp(miss[0])),
        ttft_s=float(point.ttft_s * np.exp(miss[1])),
    )


def runs_of(noise: float, odd: float = 0.0, seed: int = 2) -> list[Run]:
    """Of ``odd`` of them both times are five times too long or too short, by turns."""
    rng = np.random.default_rng(seed)
    conditions = [(*deployed, load, prompt) for deployed in DEPLOYED for load in LOADS for prompt in PROMPTS]
    misses = noise * rng.standard_normal((len(conditions), 2))
    places = rng.permutation(len(conditions))[: round(odd * len(conditions))]
    misses[places] += np.log(5.0) * (-1.0) ** np.arange(len(places))[:, None]
    return [made(*condition, miss) for condition, miss in zip(conditions, misses, strict=True)]


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return runs_of(0.02)


@pytest.fixture(scope="module")
def found(runs) -> Fit:
    return fit_runs(runs)


def off(one: Fit, name: str) -> float:
    """How far a number lies from the truth, in its own standard deviations."""
    place = [p.name for p in one.parameters].index(name)
    return abs(float(one.logs[place]) - np.log(TRUE[name])) / float(one.covariance[place, place]) ** 0.5


@pytest.mark.parametrize("odd", [0.0, 0.1])
def test_known_numbers_are_found_within_their_intervals(odd) -> None:
    one = fit_runs(runs_of(0.02, odd))
    assert {name for name in MOVED if off(one, name) > 1.645} == set()
    assert all(abs(np.log(one.values[name] / TRUE[name])) < abs(np.log(CENTRES.get(name, 1.0) / TRUE[name])) for name in MOVED)


def test_what_is_left_over_is_the_noise(runs, found) -> None:
    tpot = found.residuals[: len(runs)]
    assert np.std(tpot) < 0.06
    np.testing.assert_allclose(tpot, leaving.misses(runs, found.values)[0], atol=1e-12)


def test_with_a_tenth_far_off_the_others_are_still_predicted() -> None:
    odd, clean = runs_of(0.02, 0.1), runs_of(0.02)
    one = fit_runs(odd)
    tpot, _ = leaving.misses(clean, one.values)
    assert np.median(np.abs(tpot)) < 0.06
    far = np.array([a.tpot_s != b.tpot_s for a, b in zip(odd, clean, strict=True)])
    assert far.sum() == 7
    assert np.abs(leaving.misses(odd, one.values)[0][far]).min() > np.log(4.0)


def test_what_no_row_says_anything_of_stays_at_its_centre(found) -> None:
    """Dense models on one device: nothing of experts, of MLA, of links."""
    for name in ("step.bandwidth_experts", "step.moe_layer_s", "step.mla_layer_s", "step.allreduce_s", "parallel.expert_imbalance"):
        parameter = next(p for p in found.parameters if p.name == name)
        place = found.parameters.index(parameter)
        assert found.values[name] == pytest.approx(CENTRES[name], rel=1e-4), name
        assert found.covariance[place, place] ** 0.5 == pytest.approx(parameter.deviation, rel=1e-3), name


def test_no_number_leaves_its_bounds(runs) -> None:
    """However far the times lie off; what is pushed comes to lie near its bound."""
    slow = [replace(run, tpot_s=run.tpot_s * 100, ttft_s=None) for run in runs]
    fast = [replace(run, tpot_s=run.tpot_s / 100, ttft_s=None) for run in runs]
    for one in (fit_runs(slow), fit_runs(fast)):
        assert all(p.low <= one.values[p.name] <= p.high for p in one.parameters)
    assert fit_runs(fast).values["step.bandwidth_dense"] > 0.9


def test_the_same_rows_give_the_same_bytes(runs, found) -> None:
    again = fit_runs(runs)
    assert again.logs.tobytes() == found.logs.tobytes()
    assert again.covariance.tobytes() == found.covariance.tobytes()


def test_rows_in_doubt_are_in_no_fit(runs, found) -> None:
    doubted = [replace(run, tpot_s=run.tpot_s * 9, doubt=Message("runs.doubt_copy", {})) for run in runs[:5]]
    assert fit_runs([*runs, *doubted]).logs.tobytes() == found.logs.tobytes()


def line(measured: Sequence[float], deviation: float = 1.0) -> tuple[Evidence, tuple[Parameter, ...]]:
    """One number, measured directly, that is hardly held beforehand."""
    known = np.asarray(measured, dtype=float)
    evidence = Evidence(
        measured=known,
        deviation=np.full(len(known), deviation),
        weight=np.ones(len(known)),
        groups=("g",) * len(known),
        predict=lambda values: np.broadcast_to(np.log(values["x"]), (len(known), np.size(values["x"]))),
    )
    return evidence, (Parameter(name="x", centre=1.0, deviation=1e3, low=1e-9, high=1e9),)


def fitted(measured: Sequence[float]) -> float:
    evidence, parameters = line(measured)
    return float(fit([evidence], parameters).logs[0])


def test_an_odd_row_moves_it_less_than_least_squares_would_and_less_the_further_it_is_off() -> None:
    near = [0.1, -0.1, 0.05, -0.05, 0.0]
    pulls = [fitted([*near, far]) / np.mean([*near, far]) for far in (1.0, 5.0, 50.0)]
    assert 1.0 > pulls[0] > pulls[1] > pulls[2] > 0.0
    assert fitted([*near, 1e4]) == pytest.approx(fitted([*near, 50.0]), rel=0.05)


def test_near_rows_are_weighed_as_in_least_squares() -> None:
    assert fitted([0.01, 0.02, 0.06]) == pytest.approx(0.03, rel=1e-3)


def test_a_row_that_did_not_measure_a_quantity_says_nothing() -> None:
    assert fitted([0.2, np.nan, 0.4]) == pytest.approx(fitted([0.2, 0.4]), rel=1e-6)
    evidence, parameters = line([0.2, np.nan])
    assert np.isnan(fit([evidence], parameters).residuals).tolist() == [False, True]


def test_the_interval_of_a_mean_shrinks_as_the_root_of_its_rows() -> None:
    four, sixteen = (fit([line([0.0] * count)[0]], line([0.0])[1]).covariance[0, 0] for count in (4, 16))
    assert four / sixteen == pytest.approx(4.0, rel=1e-3)


def test_the_slope_of_the_loss_is_its_slope() -> None:
    r = np.array([-20.0, -BEND, -0.3, 0.2, 1.0, 7.0])
    np.testing.assert_allclose(_slope(r), (rooted(r + 1e-6) - rooted(r - 1e-6)) / 2e-6, rtol=1e-6)
    assert _slope(np.zeros(1)).tolist() == [1.0]


def test_a_group_of_many_rows_weighs_as_the_most_that_count_in_full() -> None:
    found = weights(["a"] * 600 + ["b"] * 3, full=150)
    assert (found[:600] ** 2).sum() == pytest.approx(150.0)
    assert found[600:].tolist() == [1.0] * 3


def test_values_of_candidates_are_columns() -> None:
    parameters = line([0.0])[1]
    assert values_of(parameters, np.log([[2.0, 3.0]]))["x"] == pytest.approx([2.0, 3.0])


def test_a_held_group_cannot_reach_its_own_prediction(runs, found) -> None:
    held = runs[0].group
    longer = [replace(run, tpot_s=run.tpot_s * 10, ttft_s=(run.ttft_s or 0.0) * 10) if run.group == held else run for run in runs]
    before, after = (leave_groups_out(rows, found, jobs=1) for rows in (runs, longer))
    own = [i for i, run in enumerate(runs) if run.group == held]
    assert dict(before.values[held]) == dict(after.values[held])
    np.testing.assert_allclose(after.tpot[own] - before.tpot[own], np.log(10.0), rtol=1e-12)
    np.testing.assert_allclose(after.ttft[own] - before.ttft[own], np.log(10.0), rtol=1e-12)
    others = [group for group in before.values if group != held]
    assert all(dict(before.values[group]) != dict(after.values[group]) for group in others)


def test_where_the_search_starts_hardly_shows_in_what_is_left_out(runs, found) -> None:
    """A left-out fit starts from the fit of all, in which the held group was: its predictions are those of a start at the centres."""
    from_all = leave_groups_out(runs, found, jobs=1)
    centres = replace(found, logs=np.log([p.centre for p in found.parameters]))
    from_centres = leave_groups_out(runs, centres, jobs=1)
    np.testing.assert_allclose(from_all.tpot, from_centres.tpot, atol=5e-3)


def test_groups_may_be_told_by_anything_and_each_is_predicted_by_the_others(runs, found) -> None:
    left = leave_groups_out(runs, found, jobs=1, group_of=lambda run: run.deployment.engine.name)
    assert set(left.values) == {"vllm", "sglang", "trtllm"}
    assert left.values["sglang"]["scale.sglang.ttft.layer_s"] == pytest.approx(1.0, rel=1e-3)
    assert np.isfinite(left.tpot).all() and np.isfinite(left.ttft).all()
