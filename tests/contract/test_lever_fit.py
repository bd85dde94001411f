"""Fits of lever gains: leaving a group out is fitting anew without it; classes have factors; errors of levers by kind and knowledge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import served_row

from breakeven.calibration import lever_errors as errors
from breakeven.calibration.lever_fit import LeverFit, fit_pairs, leave_pairs_out, values_at, without
from breakeven.calibration.lever_parameters import entry, expanded, names_of, of_pairs
from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import table
from breakeven.evaluator import Noise
from breakeven.kernels import fitted_kv, fitted_weights, kv_kernel, weight_kernel
from breakeven.measured.pair import Pair
from breakeven.measured.pairs import pair_of
from breakeven.measured.row import Row
from breakeven.spec.calibration import Calibration

SERVED = {**served_row.SERVED, "quality": "A"}
LOADS = ("1", "64", "512")
TRUE = {"weights.fp8.phi": 0.75, "weights.fp8.delta_decode": 1.3}
SOURCES = {
    "one::8b::h100": {},
    "one::8b::ada": {"hardware": "NVIDIA L40S"},
    "two::3b::h100": {"model": "meta-llama/Llama-3.2-3B-Instruct"},
    "three::7b::h100": {"model": "Qwen/Qwen2.5-7B-Instruct"},
    "four::8b::kv": {"lever": "kv_quant", "lever_setting": "bf16->fp8", "kv_dtype": "fp8", "weight_dtype": "bf16"},
}


def made() -> list[Pair]:
    """Pairs whose gains are the model's with kernels that are known, and a little noise."""
    rng, found = np.random.default_rng(6), []
    for group, changes in SOURCES.items():
        for load in LOADS:
            pair = pair_of(Row(where=f"mine.csv:{group}:{load}", id=load, fields={**SERVED, **changes, "batch_or_concurrency": load}))
            arms = [replace(d, calibration=Calibration(values=TRUE)) for d in (pair.off, pair.on)]
            gain = float(np.asarray(replace(pair, off=arms[0], on=arms[1]).gain(MEDIAN, Noise())))
            found.append(replace(pair, group=group, measured=gain * float(np.exp(0.01 * rng.standard_normal()))))
    return found


def nothing(pair: Pair) -> dict[str, float]:
    return {}


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return made()


@pytest.fixture(scope="module")
def whole(pairs) -> LeverFit:
    return fit_pairs(pairs, nothing)


def test_kernels_are_drawn_to_what_made_the_gains(whole) -> None:
    for name, true in TRUE.items():
        centre = entry(name)["centre"]
        assert abs(np.log(whole.values[name] / true)) < abs(np.log(centre / true)), name
    missed = np.log([pair.measured for pair in whole.pairs]) - whole.at.predicted
    assert np.abs(missed).max() < 0.08


def test_the_same_pairs_give_the_same_bytes(pairs, whole) -> None:
    again = fit_pairs(pairs, nothing)
    assert again.at.logs.tobytes() == whole.at.logs.tobytes() and again.covariance.tobytes() == whole.covariance.tobytes()


def test_no_number_leaves_its_bounds(pairs) -> None:
    for factor in (0.2, 5.0):
        found = fit_pairs([replace(pair, measured=pair.measured * factor) for pair in pairs], nothing)
        for p, ln in zip(found.parameters, found.at.logs, strict=True):
            assert p.low * (1 - 1e-9) <= np.exp(ln) <= p.high * (1 + 1e-9), p.name


def test_one_odd_pair_hardly_moves_the_kernel(pairs, whole) -> None:
    odd = [replace(pairs[0], measured=pairs[0].measured * 20), *pairs[1:]]
    assert fit_pairs(odd, nothing).values["weights.fp8.phi"] == pytest.approx(whole.values["weights.fp8.phi"], rel=0.15)


def test_leaving_a_group_out_is_fitting_anew_without_it(pairs, whole) -> None:
    predicted, values = leave_pairs_out(whole, lambda pair: pair.group)
    assert set(values) == set(SOURCES)
    for group in SOURCES:
        others = [pair for pair in pairs if pair.group != group]
        anew = fit_pairs(others, nothing, whole.parameters)
        logs = without(whole, [i for i, pair in enumerate(pairs) if pair.group == group])
        np.testing.assert_allclose(logs, anew.at.logs, atol=0.02, err_msg=group)
        for i, pair in enumerate(pairs):
            if pair.group == group:
                arms = replace(
                    pair,
                    off=replace(pair.off, calibration=Calibration(values=anew.values)),
                    on=replace(pair.on, calibration=Calibration(values=anew.values)),
                )
                assert predicted[i] == pytest.approx(float(np.log(arms.gain(MEDIAN, Noise()))), abs=0.01)


def test_a_held_pairs_gain_is_not_read(whole) -> None:
    """Whatever was measured in it, the fit without it is the same."""
    held = [0, 1, 2]
    other = tuple(replace(pair, measured=pair.measured * 10) if i in held else pair for i, pair in enumerate(whole.pairs))
    assert without(replace(whole, pairs=other), held).tobytes() == without(whole, held).tobytes()


def test_factors_of_classes_are_multiplied_out() -> None:
    found = expanded({"weights.fp8.phi": 0.8, "weights.fp8.phi~hopper": 1.25, "weights.fp8.phi~ada": 0.5, "step.layer_s": 3e-5})
    assert found == {"weights.fp8.phi": 0.8, "weights.fp8.phi.hopper": 1.0, "weights.fp8.phi.ada": 0.4, "step.layer_s": 3e-5}
    arrays = expanded({"kv.fp8.layer_s": np.array([1.0, 2.0]), "kv.fp8.layer_s~trtllm": np.array([3.0, 0.5])})
    assert arrays["kv.fp8.layer_s.trtllm"] == pytest.approx([3.0, 1.0])  # type: ignore[comparison-overlap]
    assert values_at([], np.zeros(0)) == {}


def test_a_pair_bears_on_its_kernels_its_class_of_device_and_its_engine(pairs) -> None:
    names = {pair.group: names_of(pair) for pair in pairs}
    assert {"weights.fp8.phi", "weights.fp8.phi~hopper"} <= names["one::8b::h100"]
    assert any(name.startswith("weights.fp8.phi~ada") for name in names["one::8b::ada"])
    assert not any(name.startswith("weights.") for name in names["four::8b::kv"])
    assert {"kv.fp8.phi", "kv.fp8.layer_s", "kv.fp8.layer_s~vllm"} <= names["four::8b::kv"]
    assert {p.name for p in of_pairs(pairs)} == set().union(*names.values())


def test_every_parameter_of_a_pair_has_its_ground(pairs) -> None:
    for p in of_pairs(pairs):
        assert p.low < p.centre < p.high and p.deviation > 0, p.name
    assert entry("weights.fp8.phi") == table("neutral")["weights"]["native"]["phi"]
    assert entry("weights.int4_marlin.phi") == table("neutral")["weights"]["unpacked"]["phi"]


def test_a_kernel_that_is_given_for_all_forgets_the_catalogues_families() -> None:
    kernel = weight_kernel("fp8")
    given = fitted_weights(kernel, {"weights.fp8.phi": 0.7})
    assert given.phi == {"default": 0.7}
    assert given.delta_decode == kernel.delta_decode
    assert fitted_weights(kernel, {"weights.fp8.phi.hopper": 0.7}).phi == {**kernel.phi, "hopper": 0.7}
    assert fitted_weights(kernel, {"weights.int4.phi": 0.7}) is kernel
    cache = fitted_kv(kv_kernel("fp8"), {"kv.fp8.layer_s.trtllm": 9e-6})
    assert cache.layer_s_by_engine["trtllm"] == 9e-6


def test_errors_of_levers_by_how_well_they_are_known(whole, monkeypatch) -> None:
    """A foreign engine is never surer than one among the fits, and one's own offset never makes it wider."""
    monkeypatch.setattr(errors, "DRAWN", Draws(16))
    found = errors.lever_errors(whole)
    assert "weight_quant" in found
    for of_kind in found.values():
        for one in of_kind.values():
            assert 0.0 < one.here <= one.family <= one.foreign
            assert one.rows >= one.groups >= 1
    assert max(one.groups for one in found["weight_quant"].values()) == 4
    assert {errors.source_of(pair) for pair in whole.pairs} == {"one", "two", "three", "four"}


def test_a_lever_that_errs_more_is_told_to(pairs, monkeypatch) -> None:
    monkeypatch.setattr(errors, "DRAWN", Draws(16))
    signs = {group: (-1.0) ** i for i, group in enumerate(SOURCES)}
    wild = fit_pairs([replace(pair, measured=pair.measured * float(np.exp(0.4 * signs[pair.group]))) for pair in pairs], nothing)
    calm = fit_pairs(pairs, nothing)
    one, other = (errors.lever_errors(fit)["weight_quant"] for fit in (wild, calm))
    assert all(one[kind].family > other[kind].family for kind in other)


def test_misses_are_measured_over_predicted_beside_what_the_draws_spread(whole, monkeypatch) -> None:
    monkeypatch.setattr(errors, "DRAWN", Draws(16))
    exact = errors.misses(whole.pairs, np.log([pair.measured for pair in whole.pairs]))
    assert [one.error for one in exact] == [0.0] * len(whole.pairs)
    assert all(one.drawn >= 0.0 and one.stated >= 0.0 for one in exact)
    assert errors.misses(whole.pairs[:1], np.zeros(1))[0].error == pytest.approx(float(np.log(whole.pairs[0].measured)))
