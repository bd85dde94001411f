"""First tokens of an open loop: what was measured, beside the operating point's and the simulation's."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import breakeven as be
from breakeven.spec.deployment import Deployment

HITS = 200 / 230
"""The share of the prompt that all requests begin with."""
BELOW_SATURATION = [(10.0, False), (10.0, True), (15.0, False), (15.0, True), (25.0, True)]


def measured(shared: Path, metric: str, rate: float, cached: bool) -> float:
    """Seconds, by pull request 1983 of vLLM."""
    with (shared / "data/lever_points.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["case_id"].startswith("pc-pr1983") and row["metric"] == metric]
    (found,) = (row for row in rows if row["batch_or_concurrency"] == f"QPS {rate:g}")
    return float(found["value_on" if cached else "value_off"])


def asked(rate: float, cached: bool) -> Deployment:
    flags = {"model": "llama-2-13b", "hardware": "a100-sxm-80", "engine": "vllm", "engine_version": "0.2", "rate": f"{rate:g}"}
    hits = {"enable_prefix_caching": cached} | ({"prefix_hit_rate": f"{HITS}"} if cached else {})
    return be.load(flags={**flags, "input_tokens": "230", "output_tokens": "50", **hits})[0]


@pytest.mark.parametrize(("rate", "cached"), BELOW_SATURATION)
def test_an_operating_points_first_token_is_nearer_than_the_simulated_one_and_both_are_short(
    shared: Path, rate: float, cached: bool
) -> None:
    d, told = asked(rate, cached), measured(shared, "first token time", rate, cached)
    point, simulated = be.evaluate(d), be.simulate(d, requests=2000, seed=1).summary
    assert point.ttft_s is not None and not simulated.saturated
    assert 1.8 < told / float(point.ttft_s) < 2.3
    assert told / simulated.times["ttft"].mean > 3.5


@pytest.mark.parametrize(("rate", "cached"), BELOW_SATURATION)
def test_whole_requests_of_the_operating_point_are_those_measured(shared: Path, rate: float, cached: bool) -> None:
    point = be.evaluate(asked(rate, cached))
    assert point.e2e_s is not None
    assert float(point.e2e_s) == pytest.approx(measured(shared, "mean request latency", rate, cached), rel=0.25)
