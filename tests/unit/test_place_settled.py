"""The place at which own rows correct an open loop: where its times and its batch agree, found with few solutions."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import breakeven as be
from breakeven import adaptation, efficiencies, evaluator
from breakeven.setting import steady_at
from breakeven.spec.calibration import Calibration
from breakeven.spec.correction import Place, Rows
from breakeven.spec.deployment import Deployment

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from observations import MEASURED, observation


def at_rate(rate: float, tpot_s: float = 0.0105) -> Deployment:
    """Observed at four requests a second, asked about at another rate."""
    d, _ = be.load(evidence=observation(measured={**MEASURED, "tpot_s": tpot_s, "step_s": tpot_s}))
    return replace(d, workload=replace(d.workload, request_rate=rate))


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One more for each open loop that is solved."""
    count = [0]

    def counted(*given: object, **how: bool) -> object:
        count[0] += 1
        return steady_at(*given, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(evaluator, "steady_at", counted)
    return count


@pytest.mark.parametrize(("rate", "most"), [(4.0, 2), (0.5, 4), (12.0, 4), (30.0, 5)])
def test_a_point_near_what_was_measured_is_solved_once_more_and_none_over_four_times(rate: float, most: int, solved: list[int]) -> None:
    d = at_rate(rate)
    solved[0] = 0
    be.evaluate(d)
    assert 2 <= solved[0] <= most


@pytest.mark.parametrize("tpot_s", [0.007, 0.0105, 0.02])
@pytest.mark.parametrize("rate", [0.5, 4.0, 12.0, 20.0, 30.0])
def test_times_are_those_of_the_place_that_moves_no_more(rate: float, tpot_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    d = at_rate(rate, tpot_s)
    found = be.evaluate(d)
    monkeypatch.setattr(evaluator, "IN_FLIGHT_STEPS", 60)
    monkeypatch.setattr(evaluator, "IN_FLIGHT_SETTLED", 1e-9)
    exact = be.evaluate(d)
    assert float(found.time_factor) == pytest.approx(float(exact.time_factor), rel=0.005)


def test_an_array_of_rates_gives_what_each_gives() -> None:
    rates = np.array([0.5, 4.0, 12.0])
    together = be.evaluate(replace(at_rate(4.0), workload=replace(at_rate(4.0).workload, request_rate=rates)))
    alone = [float(be.evaluate(at_rate(float(rate))).time_factor) for rate in rates]
    assert np.asarray(together.time_factor) == pytest.approx(alone, rel=0.005)


@pytest.mark.parametrize("values", [{}, {"step.layer_s": 9e-6}, {"weights.fp8.phi": 0.9}])
@pytest.mark.parametrize("alone", [False, True])
def test_what_was_fitted_of_a_kernel_is_its_part_of_what_was_fitted(values: dict[str, float], alone: bool) -> None:
    calibration = Calibration(values=values, alone=alone)
    for kernel in ("weights.fp8", "kv.fp8"):
        whole = {name: one for name, one in efficiencies.fitted_values(calibration).items() if name.startswith(f"{kernel}.")}
        assert efficiencies.fitted_of(kernel, calibration) == whole


def test_the_mean_of_a_correction_by_itself_is_the_one_that_comes_with_its_deviation() -> None:
    scales = adaptation.shipped_scales("tpot")
    assert scales is not None
    places = np.log([[4.0, 900.0, 200.0, 1.0], [16.0, 2000.0, 300.0, 4.0], [64.0, 500.0, 100.0, 2.0]])
    rows = Rows(place=Place(logs=places, versions=("0.11",) * 3, formats=("fp8",) * 3), residuals={"tpot": np.array([0.2, np.nan, -0.1])})
    at = Place(logs=places + 0.3, versions=("0.11", "0.12", "0.11"), formats=("fp8", "", "fp8"))
    both, _ = adaptation.correction(scales, rows, "tpot", at)
    assert np.abs(both).min() > 0.01
    assert adaptation.mean_correction(scales, rows, "tpot")(at) == pytest.approx(both, rel=1e-12)
    unseen = Rows(place=rows.place, residuals={"tpot": np.full(3, np.nan)})
    assert adaptation.mean_correction(scales, unseen, "tpot")(at) == pytest.approx(np.zeros(3))
