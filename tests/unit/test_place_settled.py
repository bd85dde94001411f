"""The place at which own rows correct an open loop: where its times and its batch agree, found with few solutions."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import breakeven as be
from breakeven import efficiencies, evaluator
from breakeven.spec.calibration import Calibration
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
    count, plain = [0], evaluator._open

    def counted(x: evaluator.Setting, *, exact: bool) -> evaluator.Solved:
        count[0] += 1
        return plain(x, exact=exact)

    monkeypatch.setattr(evaluator, "_open", counted)
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
