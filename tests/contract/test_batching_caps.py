"""Which caps on running sequences are tried, and what is said where none is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven import api
from breakeven.compose import compose
from breakeven.evaluator import evaluate
from breakeven.ledger import compute
from breakeven.ledger.step import expert_coverage, expert_rows
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.workload import Slo, Workload
from breakeven.statement import ridge_rows

LENGTHS = {"input_tokens": 500.0, "output_tokens": 300.0}
BATCHING = api.lever_named("batching")
SERVED = {
    "qwen3-30b-a3b": ("h100-sxm", 2),
    "deepseek-v3": ("h200-sxm", 8),
}


def build(model: str, device: str, count: int, cap: int, *, slo: Slo | None = None, **workload: float) -> Deployment:
    return Deployment(
        model=api.model(model),
        hardware=api.hardware(device, count),
        engine=Engine(tensor_parallel_size=count, max_num_seqs=cap),
        workload=Workload(**LENGTHS, **workload),
        slo=slo or Slo(),
    )


def caps(d: Deployment) -> list[int]:
    return [int(c.setting) for c in BATCHING.candidates(d)]


def served(d: Deployment, cap: int) -> float:
    return float(evaluate(BATCHING.apply(d, str(cap))).throughput)


@pytest.mark.parametrize("model", SERVED)
def test_the_cap_of_a_mixture_is_raised_past_the_ridge_of_its_dense_matrices(model: str) -> None:
    d = build(model, *SERVED[model], 262, concurrency=1024.0)
    found = api.advise(d, draws=128).levers["batching"]
    assert (found.state, found.verdict) == ("off", "pays")
    assert served(d, int(found.setting)) == pytest.approx(max(served(d, cap) for cap in (262, 600, 1024)), rel=0.01)
    assert api.advise(d, draws=128).best.combination.levers[-1:] == (f"batching:{found.setting}",)


def test_at_its_ridge_a_mixture_multiplies_as_long_as_it_reads() -> None:
    for model, (device, count) in SERVED.items():
        c = evaluate(build(model, device, count, 256, concurrency=64.0)).cost
        at = float(ridge_rows(evaluate(build(model, device, count, 256, concurrency=64.0))))
        read = c.dense_read_s + expert_coverage(c, at) * c.experts_read_s
        assert at * c.dense_compute_s + expert_rows(c, at) * c.experts_compute_s == pytest.approx(float(read), rel=1e-6)
        assert at > 2 * c.dense_read_s / c.dense_compute_s


def test_the_ridge_of_a_mixture_that_meets_all_its_experts_is_that_of_a_dense_model() -> None:
    assert compute.mixture_ridge_rows(lambda n: 6.0, lambda n: 0.02) == pytest.approx(300.0)


def test_a_dense_cap_below_the_ridge_goes_to_the_ridge_and_past_it_to_what_is_asked() -> None:
    low = build("llama-3.1-8b", "h100-sxm", 1, 64, concurrency=400.0)
    ridge = caps(low)
    assert len(ridge) == 1
    assert 200 < ridge[0] < 300
    at = BATCHING.apply(low, str(ridge[0]))
    assert caps(at) == [400]
    assert caps(BATCHING.apply(low, "400")) == [400]
    assert BATCHING.setting_on(BATCHING.apply(low, "400")) == "400"
    assert served(at, 400) > served(at, ridge[0])


def test_an_overflowing_open_loop_past_the_ridge_asks_for_the_pool_and_one_that_is_served_for_nothing() -> None:
    full = build("llama-3.1-8b", "h100-sxm", 1, 300, request_rate=500.0)
    assert caps(full) == [int(float(evaluate(full).room.fits_sequences))]
    calm = build("llama-3.1-8b", "h100-sxm", 1, 300, request_rate=1.0)
    assert BATCHING.setting_on(calm) == "300"


def test_no_cap_is_tried_whose_sequences_do_not_go_into_one_step() -> None:
    d = build("qwen3-30b-a3b", "h100-sxm", 2, 262, concurrency=1024.0)
    tight = replace(d, engine=replace(d.engine, max_num_batched_tokens=512))
    assert caps(tight) == [512]


@pytest.mark.parametrize("limit", [0.022, 0.03, 0.04])
def test_an_objective_of_time_per_token_that_is_kept_stays_kept(limit: float) -> None:
    d = build("qwen3-30b-a3b", "h100-sxm", 2, 128, slo=Slo(tpot_s=limit), concurrency=1024.0)
    found = api.advise(d, draws=128)
    assert float(evaluate(d).tpot_s) < limit
    assert found.best.combination.meets_slo
    assert limit * 0.95 < float(evaluate(BATCHING.apply(d, found.levers["batching"].setting)).tpot_s) <= limit


def test_the_cap_that_keeps_the_objective_is_taken_where_it_pays() -> None:
    found = api.advise(build("qwen3-30b-a3b", "h100-sxm", 2, 128, slo=Slo(tpot_s=0.03), concurrency=1024.0), draws=128)
    batching = found.levers["batching"]
    assert batching.verdict == "pays"
    assert f"batching:{batching.setting}" in found.best.combination.levers
    assert found.best.combination.meets_slo


@pytest.mark.parametrize(
    ("engine", "slo", "load", "reason", "column"),
    [
        ({"max_num_seqs": 1200}, None, 1024.0, "concurrency", "cap does not bind"),
        ({"max_num_seqs": 4000}, None, 4096.0, "kv_pool", "cap does not bind"),
        ({"max_num_seqs": 512, "max_num_batched_tokens": 512}, None, 1024.0, "full_step", "none larger tried"),
        ({"max_num_seqs": 310}, 0.0295, 1024.0, "slo", "none larger tried"),
    ],
)
def test_a_cap_in_force_says_why_no_larger_one_was_tried(
    engine: dict[str, int], slo: float | None, load: float, reason: str, column: str
) -> None:
    d = build("qwen3-30b-a3b", "h100-sxm", 2, 256, slo=Slo(tpot_s=slo), concurrency=load)
    found = api.advise(replace(d, engine=replace(d.engine, **engine)), draws=64)
    advised = found.levers["batching"]
    assert (advised.state, advised.because[0].key) == ("on", f"lever.batching_{reason}")
    said = compose(found, "en")
    assert [lever.pays_where for lever in said.levers if lever.lever == "batching"] == [column]
