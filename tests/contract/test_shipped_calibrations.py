"""Shipped calibrations: each says how to make it again, no two claim one number; they stand over the prior and under the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from breakeven import api, efficiencies
from breakeven.messages import text
from breakeven.origin.calibration_file import parse_calibration
from breakeven.spec.calibration import Calibration
from breakeven.spec.calibration_file import CALIBRATION_SCHEMA
from breakeven.spec.engine import Engine
from breakeven.standing import how_sure

SHEET = {
    "schema": CALIBRATION_SCHEMA,
    "parameters": {"step.layer_s": {"value": 44e-6, "low": 30e-6, "high": 60e-6}, "weights.fp8.phi": {"value": 0.5}},
    "residual": {"none": {"tpot_between": 0.17}},
    "deployments": [
        {"model": "llama-3.1-8b", "device": "h100-sxm", "family": "hopper", "engine": "vllm", "version": "0.11", "rows": 441},
        {"model": "llama-3.1-8b", "device": "b200-sxm", "family": "blackwell", "engine": "vllm", "version": "0.11", "rows": 9},
    ],
}
CACHED = (efficiencies.shipped_values, efficiencies._shipped, efficiencies.shipped_of, efficiencies.lever_sigma, efficiencies.sigma_factor)


@pytest.fixture
def one_shipped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for kept in CACHED:
        kept.cache_clear()
    monkeypatch.setattr(efficiencies, "shipped", lambda: {"made-up": SHEET})
    yield
    for kept in CACHED:
        kept.cache_clear()


def deployment(**engine: object):
    d, _ = api.load(
        flags={"model": "llama-3.1-8b", "hardware": "h100-sxm", "engine_version": "0.11", "batch": 4, "context": 1000, **engine}
    )
    return d


@pytest.mark.usefixtures("one_shipped")
def test_what_is_shipped_stands_over_the_prior_and_under_the_users() -> None:
    assert efficiencies.prior(Engine()).layer_s == 44e-6
    assert efficiencies.prior(Engine()).tpot_between == 0.17
    assert efficiencies.prior(Engine(), Calibration(values={"step.layer_s": 20e-6})).layer_s == 20e-6
    assert efficiencies.prior(Engine(), Calibration(values={})).layer_s == 44e-6


@pytest.mark.usefixtures("one_shipped")
def test_a_shipped_kernel_is_the_kernel() -> None:
    d = deployment(quantization="fp8")
    assert api.evaluate(d).shard.kernels["mlp"].phi["default"] == 0.5


def test_a_users_number_for_all_stands_over_what_is_shipped_of_single_classes(monkeypatch) -> None:
    known = {"weights.fp8.phi": 0.9, "weights.fp8.phi.hopper": 0.5, "weights.fp8.phi_experts": 0.7, "kv.fp8.layer_s.trtllm": 1e-6}
    monkeypatch.setattr(efficiencies, "shipped_values", lambda without="": known)
    found = efficiencies.fitted_values(Calibration(values={"weights.fp8.phi": 0.8}))
    assert found == {"weights.fp8.phi": 0.8, "weights.fp8.phi_experts": 0.7, "kv.fp8.layer_s.trtllm": 1e-6}
    assert efficiencies.fitted_values(Calibration(values={"weights.fp8.phi.hopper": 0.6}))["weights.fp8.phi"] == 0.9
    assert efficiencies.fitted_values(None) == known


@pytest.mark.usefixtures("one_shipped")
def test_the_page_counts_the_public_runs_of_this_engine_on_this_family() -> None:
    assert text(how_sure(deployment())) == "engine calibrated on 441 public runs of this family; your own: none (`breakeven calibrate`)"
    other = replace(deployment(), engine=Engine(name="sglang"))
    assert "441" not in text(how_sure(other))


@pytest.mark.usefixtures("one_shipped")
def test_a_calibration_that_is_made_anew_does_not_start_from_itself() -> None:
    assert "step.layer_s" in efficiencies.shipped_values()
    assert efficiencies.shipped_values("made-up") == {}


def test_every_shipped_calibration_can_be_made_again() -> None:
    claimed: dict[str, str] = {}
    for name, sheet in efficiencies.shipped().items():
        found = parse_calibration(sheet, name)
        assert found.made.command.startswith("breakeven calibrate ") and f"--ship {name}" in found.made.command
        assert found.made.date and found.made.rows and found.files and all(len(file.sha256) == 12 for file in found.files)
        for parameter, one in found.parameters.items():
            assert claimed.setdefault(parameter, name) == name, f"{parameter}: claimed by {claimed[parameter]} and {name}"
            assert one.low <= one.value <= one.high and one.rows > 0
