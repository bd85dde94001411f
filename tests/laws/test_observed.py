"""What an observation has to do to a prediction: move it to what was measured there, and make it surer, near the measured load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from observations import MEASURED, TOLD, observation

import breakeven as be
from breakeven.adaptation import shipped_scales
from breakeven.spec.observed import Observed


def tpot(d: be.Deployment) -> float:
    return float(np.median(be.evaluate(d).tpot_s))


def width(d: be.Deployment) -> float:
    low, high = np.quantile(be.evaluate(d, draws=512).tpot_s, [0.05, 0.95])
    return float(np.log(high / low))


def observed(times: float, **measured: float) -> tuple[be.Deployment, float]:
    """The deployment with a step so many times the model's, and the time per token that was measured."""
    plain, _ = be.load(evidence=observation(measured={**MEASURED, **measured, "tpot_s": 0.0, "step_s": 0.0}))
    found = tpot(plain) * times
    return be.load(evidence=observation(measured={**MEASURED, **measured, "tpot_s": found, "step_s": found}))[0], found


@pytest.mark.parametrize("times", [0.6, 0.9, 1.0, 1.3, 2.0])
@pytest.mark.parametrize("rate", [0.5, 4.0, 12.0])
def test_the_prediction_moves_to_what_was_measured_within_its_noise(times: float, rate: float) -> None:
    scales = shipped_scales("tpot")
    assert scales is not None
    d, measured = observed(times, request_rate_per_s=rate, effective_batch=max(rate * 280 * 0.009 * times, 0.1))
    assert abs(np.log(tpot(d) / measured)) < scales.noise


@pytest.mark.parametrize("times", [0.8, 1.5])
def test_the_interval_narrows(times: float) -> None:
    d, _ = observed(times)
    assert width(d) < 0.5 * width(replace(d, calibration=None))


def test_far_from_the_measured_load_it_is_less_sure_again() -> None:
    d, _ = observed(1.3)
    at = [
        replace(d, workload=replace(d.workload, request_rate=None, concurrency=clients)) for clients in (20.0, 50.0, 100.0, 400.0, 1000.0)
    ]
    widths = [width(one) for one in at]
    assert widths == sorted(widths) and widths[3] > 2.0 * width(d)
    assert widths[-1] < width(replace(at[-1], calibration=None)), "it is still a measurement of this deployment"


def test_a_full_engine_corrects_a_closed_loop() -> None:
    from breakeven.spec.evidence import Levels

    waiting = {"waiting": Levels(values=(8.0,), shares=(1.0,), sure="sampled")}
    d, _ = be.load(evidence=observation(measured={**MEASURED, "tpot_s": 0.012}, levels=waiting))
    assert d.workload.concurrency == 20.0 and tpot(d) == pytest.approx(0.012, rel=0.05)


def test_another_version_is_not_corrected_by_it() -> None:
    d, warnings = be.load(evidence=observation(), flags={"engine_version": "0.12"})
    assert d.observed is not None and not d.observed.corrects and d.calibration is None
    assert "warning.evidence_differs" in [warning.key for warning in warnings]


def test_a_measured_time_that_no_such_deployment_has_is_doubted_aloud() -> None:
    _, warnings = be.load(evidence=observation(measured={**MEASURED, "tpot_s": 0.5}))
    assert "warning.evidence_far" in [warning.key for warning in warnings]


def test_gains_are_of_both_arms_and_so_are_hardly_moved_by_a_slower_machine() -> None:
    slow, _ = observed(1.5)
    plain = replace(slow, calibration=None, observed=None)
    gains = [be.advise(d, objective="tpot", draws=64).levers["weight_quant"].metrics["tpot"].gain for d in (slow, plain)]
    assert gains[0] is not None and gains[1] is not None
    assert abs(np.log(gains[0] / gains[1])) < 0.15


def test_one_observation_is_a_row_beside_those_of_a_calibration() -> None:
    from breakeven.spec.calibration import Basis, Calibration
    from breakeven.spec.correction import Place, Rows

    far = Place(logs=np.log([[64.0, 1000.0, 280.0, 1.0]]), versions=("0.11.0",), formats=("",))
    own = Rows(place=far, residuals={"tpot": np.array([0.4]), "ttft": np.array([np.nan])})
    from breakeven.observed_deployment import with_observed

    plain, _ = be.load(evidence=observation(measured={**MEASURED, "tpot_s": 0.0, "step_s": 0.0}))
    known = replace(plain, calibration=Calibration(values={}, own=own, basis=Basis(name="mine.toml", rows=9, own_rows=1)))
    found, _ = with_observed(known, observation())
    assert found.calibration is not None and found.calibration.own is not None
    assert found.calibration.own.place.logs.shape == (2, 4) and found.calibration.basis == known.calibration.basis
    assert tpot(found) == pytest.approx(MEASURED["tpot_s"], rel=0.05)
    assert TOLD.version in found.calibration.own.place.versions


@pytest.mark.parametrize(("sense", "moves"), [("adapter.ttft_from_arrival", True), ("adapter.router_ttft", False)])
def test_a_first_token_is_compared_where_it_begins_at_the_engine(sense: str, moves: bool) -> None:
    from breakeven.spec.evidence import Quantiles

    slow = {**MEASURED, "ttft_s": 0.12}
    latencies = {"ttft": Quantiles(mean=0.12, count=1200.0, sense=sense)}
    d, _ = be.load(evidence=observation(measured=slow, latencies=latencies))
    plain, _ = be.load(evidence=observation(measured=slow, latencies={}))
    ttft, before = (float(np.median(be.evaluate(one).ttft_s)) for one in (d, plain))
    assert (abs(np.log(ttft / 0.12)) < abs(np.log(before / 0.12)) / 2) == moves


def test_a_cap_at_which_nobody_was_seen_to_wait_does_not_bind(build) -> None:
    """Clients that wait for their answers look like an open loop near its end, which queues; the engine's gauge says they did not."""
    d = build(request_rate=3.0, input_tokens=200.0, output_tokens=300.0, engine={"max_num_seqs": 8})
    seen = Observed(target="", start="", end="", seconds=60.0, request_rate_per_s=3.0, never_waited=True)

    def batching(one) -> tuple[str, str]:
        found = be.advise(one, draws=16)
        return found.operating_point.limited_by, found.levers["batching"].verdict

    assert batching(d) == ("max_num_seqs", "pays")
    limit, verdict = batching(replace(d, observed=seen))
    assert limit == "demand" and verdict in ("does_not_pay", "in_force", "neutral"), verdict
    assert batching(replace(d, observed=replace(seen, request_rate_per_s=1.0)))[0] == "max_num_seqs", "it was another load"
