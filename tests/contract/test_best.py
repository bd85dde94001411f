"""The best set changes a lever for a reason, keeps the SLO where it can, and says what it leans on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import api
from breakeven.advice import Advice
from breakeven.comparisons import next_devices, static_batching
from breakeven.evaluator import evaluate
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.workload import Acceptance, Slo, Workload
from breakeven.stats import Range, Spread

LOAD = {"input_tokens": 1000.0, "output_tokens": 200.0}


def deployment(model: str = "llama-3.1-8b", device: str = "h100-sxm", count: int = 1, slo: Slo | None = None, **rest: object) -> Deployment:
    engine, workload = rest.pop("engine", {}), {**LOAD, **rest}
    assert isinstance(engine, dict)
    return Deployment(
        model=api.model(model),
        hardware=api.hardware(device, count),
        engine=Engine(tensor_parallel_size=count, **engine),
        workload=Workload(**workload),
        slo=slo or Slo(),
    )


def advised(d: Deployment, seed: int = 0) -> Advice:
    return api.advise(d, draws=128, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_set_is_the_same_for_every_seed_and_leaves_alone_what_does_not_pay(seed: int) -> None:
    found = advised(deployment(request_rate=2.0), seed)
    # The cap of 256 stands a little below the ridge: raising it pays nothing at this rate, and is left alone.
    # Drafting is on the edge here, its acceptance being a guess: some seeds take it along.
    always = {"weight_quant", "prefix_cache"}
    assert always <= {name.split(":")[0] for name in found.best.combination.levers} <= {*always, "speculation"}
    assert "--no-enable-prefix-caching" not in found.best.set["vllm"]
    assert "kv-cache" not in found.best.set["vllm"]


def test_a_lever_that_hurts_goes() -> None:
    slow = Speculative(method="ngram", num_speculative_tokens=8)
    found = advised(deployment(concurrency=200.0, engine={"speculative": slow}, acceptance=Acceptance(length=1.05, k=8)))
    assert found.levers["speculation"].verdict == "hurts"
    assert not any(name.startswith("speculation") for name in found.best.combination.levers)


def test_every_change_of_the_best_set_has_its_reason() -> None:
    for rest in ({"request_rate": 2.0}, {"concurrency": 64.0, "prefix_hit_rate": 0.6}, {"batch": 16.0}, {"request_rate": 100.0}):
        found = advised(deployment(**rest))
        for lever in found.levers.values():
            chosen = f"{lever.lever}:{lever.setting}" in found.best.combination.levers
            if chosen and lever.state == "off":
                assert lever.verdict in ("pays", "does_not_pay"), lever.lever
            if not chosen and lever.state == "on":
                assert lever.verdict == "hurts", lever.lever


def test_where_only_undecided_levers_keep_the_slo_they_are_named() -> None:
    plain = advised(deployment(request_rate=2.0, engine={"version": "0.11"}))
    undecided = {name for name, lever in plain.levers.items() if lever.verdict == "undecided"}
    times = sorted(c.metrics["tpot"].median or 0.0 for c in plain.best.all if c.fits) if undecided else []
    base = float(evaluate(deployment(request_rate=2.0)).tpot_s)
    gain = times[-1] if times else 1.0
    asked = advised(deployment(request_rate=2.0, slo=Slo(tpot_s=base / gain * 1.001)))
    if any(c.meets_slo for c in asked.best.all):
        assert asked.best.combination.meets_slo
    assert set(asked.best.undecided) <= {
        name for name, lever in asked.levers.items() if lever.verdict == "undecided" or name == "prefix_cache"
    }


def test_no_set_is_said_to_miss_an_slo_that_some_set_keeps() -> None:
    for limit in (0.002, 0.004, 0.008, 0.02):
        found = advised(deployment(request_rate=2.0, slo=Slo(tpot_s=limit)))
        if not found.best.combination.meets_slo:
            kept = [c for c in found.best.all if c.meets_slo]
            hurting = {f"{v.lever}:{v.setting}" for v in found.levers.values() if v.verdict == "hurts"}
            assert all(hurting & set(c.levers) for c in kept)


def test_a_setting_in_force_that_the_model_has_not_is_not_supported() -> None:
    found = advised(deployment(request_rate=2.0, engine={"speculative": Speculative(method="mtp", num_speculative_tokens=3)}))
    mtp = found.levers["speculation"]
    assert (mtp.state, mtp.verdict, mtp.metrics) == ("on", "not_supported", {})
    assert mtp.because


def test_what_does_not_fit_runs_nothing() -> None:
    point = advised(deployment("llama-3.1-405b", request_rate=1.0)).operating_point
    assert point.effective_batch == 0.0
    assert {point.tpot_s, point.step_s, point.output_tokens_per_s, point.request_rate_per_s, point.ttft_s} == {None}


def test_a_pinned_batch_beyond_the_pool_does_not_fit_and_a_smaller_cache_that_holds_it_pays() -> None:
    d = deployment("gemma-3-27b", "a100-sxm-80", batch=16.0, context_tokens=30_000.0, input_tokens=None, output_tokens=None)
    found = advised(d)
    assert not found.ledgers.memory.fits
    assert found.levers["weight_quant"].verdict == "pays"
    assert any(message.key == "judge.warn_batch_does_not_fit" for message in found.warnings)


def test_static_batching_knows_lengths_from_a_trace_a_range_or_a_spread() -> None:
    constant, ranged, spread = (
        deployment(request_rate=1.0, output_tokens=output) for output in (200.0, Range(low=0.0, high=400.0), Spread(mean=200.0, p95=600.0))
    )
    assert static_batching(constant, 8.0) == 1.0
    # The largest of b uniform draws is b/(b + 1) of the range, twice the mean.
    assert static_batching(ranged, 8.0) == pytest.approx(2 * 8 / 9, rel=1e-2)
    assert static_batching(spread, 8.0) > static_batching(spread, 2.0) > 1.0


def test_the_next_devices_are_of_the_same_maker_faster_and_hold_the_weights() -> None:
    d = deployment(device="l4", request_rate=0.1)
    found = next_devices(d, evaluate(d))
    assert found
    for entry in found:
        device = api.hardware(str(entry["device"])).device
        assert device.vendor == "NVIDIA"
        assert device.bandwidth_bytes_per_s > d.hardware.device.bandwidth_bytes_per_s
    factors = [float(str(entry["bandwidth_factor"])) for entry in found]
    assert np.all(np.diff(factors) > 0)


def test_an_acceptance_that_names_no_method_says_whose_it_is_taken_for() -> None:
    found = advised(deployment(request_rate=2.0, acceptance=Acceptance(alpha=0.7)))
    told = [message for message in found.warnings if message.key == "judge.warn_acceptance_tied"]
    assert told
    assert told[0].values["method"] == "eagle3"


def test_the_prefix_ceiling_is_repeated_prefill_over_all_compute() -> None:
    d = deployment(request_rate=2.0, prefix_hit_rate=0.8)
    ceiling = {rule.id: rule.value for rule in advised(d).rules}["prefix_ceiling"]
    bare = evaluate(replace(d, workload=replace(d.workload, prefix_hit_rate=0.0)))
    s, prompt = bare.shard, 1000.0
    per_row = s.dense_flop_per_row
    whole = prompt * per_row
    assert ceiling == pytest.approx(0.8 * whole / (whole + 200 * (per_row + s.head_flop_per_row)), rel=0.05)
    assert "prefix_ceiling" not in {rule.id for rule in advised(deployment(request_rate=2.0)).rules}


def test_a_set_that_does_not_run_keeps_no_slo() -> None:
    d = deployment("deepseek-v3", "h200-sxm", 8, slo=Slo(tpot_s=0.03), concurrency=64.0, input_tokens=4000.0, output_tokens=1000.0)
    found = advised(d)
    assert found.best.combination.fits
    assert not any(c.meets_slo for c in found.best.all if not c.fits)
    assert "--no-enable-prefix-caching" not in found.best.set.get("vllm", "")


def test_no_figure_counts_on_what_is_set_but_cannot_be() -> None:
    plain = deployment(request_rate=1.0)
    impossible = deployment(request_rate=1.0, engine={"speculative": Speculative(method="mtp", num_speculative_tokens=1)})
    told, bare = advised(impossible), advised(plain)
    assert told.operating_point == bare.operating_point
    assert told.levers["weight_quant"].metrics == bare.levers["weight_quant"].metrics
    assert any(message.key == "judge.warn_not_counted" for message in told.warnings)


def test_against_what_does_not_fit_settings_are_ranked_by_what_they_serve() -> None:
    d = deployment("llama-3.1-70b", request_rate=3.0, input_tokens=2000.0, output_tokens=500.0)
    found = advised(d)
    weights = found.levers["weight_quant"]
    assert weights.verdict == "pays"
    served = {
        setting: float(evaluate(api.lever_named("weight_quant").apply(d, setting)).throughput)
        for setting in (weights.setting, *(a.setting for a in weights.alternatives if a.verdict == "pays"))
    }
    assert served[weights.setting] >= 0.9 * max(served.values())
    assert found.best.max_request_rate_per_s is not None
    assert found.best.max_request_rate_per_s < 3.0
    assert any(message.key == "judge.warn_best_saturated" for message in found.warnings)


def test_a_range_that_mostly_fits_is_judged_by_its_gains() -> None:
    d = deployment("mistral-large-123b", "a100-sxm-80", 8, batch=Range(low=8.0, high=32.0), input_tokens=30_000.0, output_tokens=1000.0)
    found = advised(d)
    assert found.ledgers.memory.fits
    assert {lever.verdict for lever in found.levers.values()} <= {"pays", "does_not_pay", "hurts", "undecided", "not_supported"}


def test_an_acceptance_continued_past_where_it_was_measured_is_less_sure() -> None:
    lever = api.lever_named("speculation")
    d = deployment(concurrency=8.0, acceptance=Acceptance(rate=0.8, k=2, method="eagle3"))
    off = evaluate(d)
    near, far = (lever.sigma(on, off, evaluate(on)).step for on in (lever.apply(d, "eagle3 k=2"), lever.apply(d, "eagle3 k=6")))
    assert far > near


def test_at_a_threshold_of_nothing_no_change_pays_nowhere() -> None:
    found = api.advise(deployment(request_rate=1.0, engine={"max_num_seqs": 1024}), threshold=0.0, draws=64)
    batching = found.levers["batching"]
    assert batching.verdict == "does_not_pay"
    assert all(line.pays_on == () for line in batching.boundaries)
