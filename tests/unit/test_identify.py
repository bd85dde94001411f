"""What rows do not determine is told by intervals that stayed and by pairs that move together, with the run that would tell."""

from __future__ import annotations

import numpy as np
import pytest

from breakeven.calibrate_report import TERMS, combination
from breakeven.calibration.fitted import Fitted, FittedParameter
from breakeven.calibration.identify import MEASUREMENTS, asked_for, correlations, tied, to_measure, undetermined
from breakeven.calibration.measurements import RUNS, commands_of
from breakeven.efficiencies import parameters
from breakeven.messages import catalogue


def estimate(shrunk: float, value: float = 1.0) -> FittedParameter:
    half = np.exp(shrunk)
    return FittedParameter(
        value=value, low=value / half, high=value * half, prior=value, prior_low=value / np.e, prior_high=value * np.e, rows=5
    )


def fit_of(correlation: float = 0.0, first: float = 0.1, second: float = 0.1, names=("step.layer_s", "step.host_s")) -> Fitted:
    covariance = np.array([[1.0, correlation], [correlation, 1.0]]) * np.outer([first, second], [first, second])
    return Fitted(estimates=dict(zip(names, (estimate(first), estimate(second)), strict=True)), covariance=covariance, residuals=())


def test_an_interval_that_stayed_is_not_determined() -> None:
    found = undetermined(fit_of(first=0.1, second=0.95))
    assert [(one.name, round(one.left, 2)) for one in found] == [("step.host_s", 0.95)]


@pytest.mark.parametrize(("correlation", "count"), [(0.94, 0), (0.96, 1), (-0.96, 1)])
def test_a_pair_that_moves_together_is_known_by_one_combination(correlation, count) -> None:
    assert len(tied(fit_of(correlation))) == count


def test_costs_that_make_up_for_each_other_are_known_by_their_sum() -> None:
    (pair,) = tied(fit_of(-0.98))
    assert combination(pair, "en") == "only L·t_layer + t_host is known (correlation 0.98)"


def test_a_share_of_the_bandwidth_and_a_cost_make_up_for_each_other_when_they_rise_together() -> None:
    (pair,) = tied(fit_of(0.98, names=("step.bandwidth_dense", "step.layer_s")))
    assert combination(pair, "en").startswith("only W/(BW·η) + L·t_layer is known")


def test_numbers_that_rise_together_on_one_side_are_known_against_each_other() -> None:
    (pair,) = tied(fit_of(0.98))
    assert "only against each other" in combination(pair, "en")


def test_a_number_and_the_same_number_of_one_class_are_no_pair() -> None:
    assert tied(fit_of(0.99, names=("weights.fp8.phi", "weights.fp8.phi.hopper"))) == ()


def test_what_does_not_vary_correlates_with_nothing() -> None:
    assert correlations(np.array([[0.0, 0.0], [0.0, 4.0]])).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_one_run_tells_all_that_it_tells_and_one_of_a_pair_is_enough() -> None:
    pairs = tied(fit_of(-0.98))
    assert to_measure([], pairs) == {"size": ("step.layer_s",)}
    assert to_measure(["step.bandwidth_kv", "kv.fp8.phi"], pairs)["contexts"] == ("step.bandwidth_kv",)


@pytest.mark.parametrize("name", sorted(name for name in parameters().values() if name.partition(".")[0] in ("step", "prefill", "ttft")))
def test_every_number_of_a_step_and_a_prompt_has_a_run_and_a_term(name) -> None:
    assert name in MEASUREMENTS and name in TERMS
    assert asked_for(name)[0] in RUNS


def test_every_run_has_a_sentence_and_lengths() -> None:
    asked = {run for runs in MEASUREMENTS.values() for run in runs} | {
        run for name in ("weights.x", "kv.x", "offset.x", "y") for run in asked_for(name)
    }
    assert asked <= set(RUNS)
    assert {f"calibrate.run_{run}" for run in RUNS} <= set(catalogue("en"))


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llamacpp", "tgi"])
@pytest.mark.parametrize("run", sorted(RUNS))
def test_every_engine_has_a_command_for_every_run(engine, run) -> None:
    from breakeven import api
    from breakeven.spec.deployment import Deployment
    from breakeven.spec.workload import Workload

    d = Deployment(model=api.model("llama-2-7b"), hardware=api.hardware("h100-sxm"), engine=api.engine(engine), workload=Workload())
    commands = commands_of(run, d)
    assert len(commands) == len(RUNS[run])
    assert not any("{" in command for command in commands)
