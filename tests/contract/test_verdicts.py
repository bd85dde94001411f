"""The words of a verdict: which comes when, and what stands beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import api
from breakeven.draws import Draws
from breakeven.efficiencies import lever_sigma
from breakeven.judge import Arms, arms, gain_draws, lever_verdict, verdict_of
from breakeven.lever import FLOOR, Sigma, in_part
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.workload import Acceptance, Workload

OPEN = {"input_tokens": 2000.0, "output_tokens": 300.0, "request_rate": 2.0}


def build(
    model: str = "llama-3.1-8b", device: str = "h100-sxm", *, engine: dict[str, object] | None = None, **workload: object
) -> Deployment:
    settings = Engine(**{"enable_prefix_caching": False, **(engine or {})})
    count = settings.tensor_parallel_size * settings.pipeline_parallel_size
    return Deployment(
        model=api.model(model), hardware=api.hardware(device, count), engine=settings, workload=Workload(**(workload or OPEN))
    )


def shares(**parts: int) -> np.ndarray:
    """A hundred draws: so many of each gain."""
    values = {"loss": 0.9, "same": 1.0, "little": 1.05, "exactly": 1.1, "much": 1.5}
    found = np.concatenate([np.full(count, values[name]) for name, count in parts.items()])
    assert len(found) == 100
    return found


@pytest.mark.parametrize(("gain", "word"), [
    (shares(loss=90, much=10), "hurts"),
    (shares(loss=89, same=1, much=10), "does_not_pay"),
    (shares(loss=89, much=11), "undecided"),
    (shares(little=90, much=10), "does_not_pay"),
    (shares(little=89, much=11), "undecided"),
    (shares(little=11, much=89), "undecided"),
    (shares(little=10, much=90), "pays"),
    (shares(little=10, exactly=90), "pays"),
    (shares(loss=100), "hurts"),
    (shares(same=100), "does_not_pay"),
    (shares(exactly=100), "pays"),
    (shares(loss=50, much=50), "undecided"),
    (np.array([np.inf]), "pays"),
    (np.array([0.0]), "hurts"),
])  # fmt: skip
def test_the_first_word_that_matches_is_said(gain, word) -> None:
    assert verdict_of(gain, 0.1) == word


def test_the_threshold_is_the_users() -> None:
    assert verdict_of(np.array([1.05]), 0.0) == "pays"
    assert verdict_of(np.array([1.05]), 0.05) == "pays"
    assert verdict_of(np.array([1.05]), 0.06) == "does_not_pay"


def test_a_model_that_fits_neither_way_does_not_fit() -> None:
    found = api.advise(build("llama-3.1-405b", "h100-sxm"), draws=64)
    assert not found.ledgers.memory.fits
    assert {lever.verdict for lever in found.levers.values()} == {"does_not_fit"}
    assert found.levers["weight_quant"].because[0].key == "judge.does_not_fit"
    assert found.best.combination.fits is False
    assert found.ledgers.memory.weight_bytes > found.ledgers.memory.capacity_bytes


def test_what_makes_a_model_fit_pays_whatever_the_times() -> None:
    d = build("llama-3.1-70b", "h100-sxm", engine={"tensor_parallel_size": 1})
    found = api.advise(d, draws=64)
    lever = found.levers["weight_quant"]
    assert lever.verdict == "pays"
    assert lever.because[0].key == "judge.fits_only_with"
    assert lever.metrics["throughput"].gain is None
    assert found.levers["speculation"].verdict == "does_not_fit"
    assert any(entry.startswith("weight_quant") for entry in found.best.combination.levers)
    assert found.best.combination.fits


def test_an_arm_that_does_not_fit_is_not_compared_by_its_times() -> None:
    d = build()
    both = arms(api.lever_named("kv_quant"), d, "fp8", Draws(64, 0))
    fields = {name: getattr(both, name) for name in Arms.__dataclass_fields__}
    metrics = {"e2e": None}
    assert lever_verdict(Arms(**{**fields, "fits_on": False}), metrics, "e2e") == "does_not_fit"
    assert lever_verdict(Arms(**{**fields, "fits_off": False}), metrics, "e2e") == "pays"
    small = replace(both.point_off, room=replace(both.point_off.room, fits_sequences=0.4))
    assert np.all(np.isinf(gain_draws(small, both.point_on, "tpot")))
    assert np.all(gain_draws(both.point_on, small, "tpot") == 0)
    assert np.all(gain_draws(small, replace(small), "tpot") == 1)


def test_fp8_kv_is_not_supported_where_no_kernel_reads_it() -> None:
    found = api.advise(build("mistral-7b-v0.3", "v100-sxm2-32"), draws=64).levers["kv_quant"]
    assert found.verdict == "not_supported"
    assert [message.key for message in found.because] == ["lever.kv_no_device"]
    assert found.metrics == {}
    assert found.boundaries == ()


def test_a_head_that_nobody_published_is_not_supported() -> None:
    found = api.advise(build("llama-3.1-70b", engine={"tensor_parallel_size": 4}), draws=64).levers["speculation"]
    refused = {one.setting.split()[0]: one for one in found.alternatives if one.verdict == "not_supported"}
    assert set(refused) >= {"eagle", "eagle3", "mtp"}
    assert [message.key for message in refused["eagle3"].because] == ["lever.spec_no_head"]
    assert [message.key for message in refused["mtp"].because] == ["lever.spec_no_mtp"]
    assert found.setting.startswith("ngram")


def test_an_engine_without_the_format_says_so() -> None:
    found = api.advise(build("qwen2.5-7b", "m3-max-40c", engine={"name": "llamacpp"}, **{**OPEN, "request_rate": 0.01}), draws=64).levers[
        "kv_quant"
    ]
    refused = next(one for one in found.alternatives if one.setting == "fp8")
    assert [message.key for message in refused.because] == ["lever.kv_no_engine"]


def test_marlin_needs_ampere() -> None:
    for device, expected in (("v100-sxm2-32", False), ("t4", False), ("mi300x", False), ("a100-sxm-80", True), ("h100-sxm", True)):
        offered = {c.setting: c.refused for c in api.lever_named("weight_quant").candidates(build("mistral-7b-v0.3", device))}
        assert (offered["int4_marlin"] is None) is expected, device


def test_formats_follow_the_devices_units() -> None:
    def offered(device: str) -> dict[str, bool]:
        return {c.setting: c.refused is None for c in api.lever_named("weight_quant").candidates(build(device=device))}

    assert offered("h100-sxm")["fp8"]
    assert "fp8_weight_only" not in offered("h100-sxm")
    assert not offered("a100-sxm-80")["fp8"]
    assert offered("a100-sxm-80")["fp8_weight_only"]
    assert offered("a100-sxm-80")["int8"]
    assert not offered("v100-sxm2-32")["fp8"]
    assert not offered("h100-sxm")["nvfp4"]
    assert offered("b200-sxm")["nvfp4"]


def test_unknown_hits_leave_the_prefix_cache_undecided_and_say_from_where_it_pays() -> None:
    d = build("llama-3.1-70b", engine={"tensor_parallel_size": 4, "enable_prefix_caching": True})
    found = api.advise(d, draws=256)
    lever = found.levers["prefix_cache"]
    assert (lever.state, lever.verdict) == ("on", "undecided")
    line = next(b for b in lever.boundaries if b.axis == "prefix_hit_rate")
    assert len(line.break_even) == 1
    assert 0 < line.break_even[0].value < 0.3
    assert line.pays_on[-1][1] is None
    assert lever.measure_next is not None
    assert lever.measure_next.quantity == "prefix_hit_rate"
    assert lever.measure_next.command
    assert float(found.operating_point.prefill_share) == pytest.approx(
        float(api.evaluate(replace(d, workload=replace(d.workload, prefix_hit_rate=0.0))).prefill_share)
    )


def test_known_hits_decide_the_prefix_cache() -> None:
    words = {hits: api.advise(build(prefix_hit_rate=hits, **OPEN), draws=64).levers["prefix_cache"].verdict for hits in (0.0, 0.02)}
    assert words[0.0] in ("hurts", "does_not_pay")
    assert words[0.02] == "does_not_pay"
    much = build(prefix_hit_rate=0.9, input_tokens=16000.0, output_tokens=50.0, request_rate=2.0)
    assert api.advise(much, draws=64).levers["prefix_cache"].verdict == "pays"


def test_every_undecided_lever_names_what_to_measure_and_how() -> None:
    seen = 0
    for d in (
        build(),
        build(concurrency=64.0, input_tokens=2000.0, output_tokens=300.0),
        build("llama-3.1-70b", engine={"tensor_parallel_size": 4}),
    ):
        for lever in api.advise(d, draws=128).levers.values():
            assert (lever.measure_next is not None) == (lever.verdict == "undecided")
            if lever.measure_next is not None:
                seen += 1
                assert lever.measure_next.command
                low, high = lever.measure_next.interval_after
                gain = lever.metrics["e2e" if "e2e" in lever.metrics else "tpot"]
                assert low <= high
                assert not gain.low or gain.high is None or high / low <= gain.high / gain.low * 1.05  # 0: a queue without bound
    assert seen >= 3


def test_acceptance_that_is_a_guess_widens_the_interval() -> None:
    guessed = api.advise(build(), draws=256).levers["speculation"]
    known = api.advise(build(acceptance=Acceptance(length=2.6, k=4, method="eagle3"), **OPEN), draws=256).levers["speculation"]
    width = [lever.metrics["tpot"].high / lever.metrics["tpot"].low for lever in (guessed, known)]
    assert width[0] > width[1]
    assert guessed.because[1].key == "lever.spec_acceptance_guess"
    assert known.because[1].key == "lever.spec_acceptance_given"


def test_an_unnamed_int4_kernel_is_wide_where_compute_counts() -> None:
    d = build(batch=128.0, context_tokens=500.0)
    lever = api.lever_named("weight_quant")
    spread = {}
    for setting in ("int4", "int4_marlin"):
        both = arms(lever, d, setting, Draws(256, 0))
        spread[setting] = float(np.std(np.log(gain_draws(both.point_off, both.point_on, "tpot"))))
        spread[setting, "verdict"] = verdict_of(gain_draws(both.point_off, both.point_on, "tpot"), 0.1)
    assert spread["int4"] > spread["int4_marlin"]
    kernels = {}
    for setting in ("int4", "int4_marlin"):
        off, on = (api.evaluate(each, draws=256).tpot_s for each in (d, lever.apply(d, setting)))
        kernels[setting] = float(np.std(np.log(off / on)))
    assert kernels["int4"] > 0.3 > 1e-9 > kernels["int4_marlin"], "by the kernel alone, without the lever's own error"
    assert spread["int4", "verdict"] == "undecided"


def test_the_objective_follows_what_limits() -> None:
    lengths = {"input_tokens": 2000.0, "output_tokens": 300.0}
    expected = [
        ({"request_rate": 1.0, **lengths}, {}, "latency", "demand"),
        ({"request_rate": 1000.0, **lengths}, {"max_num_seqs": 8}, "throughput", "max_num_seqs"),
        ({"request_rate": 1000.0, **lengths}, {"max_num_seqs": 100000}, "throughput", "kv_pool"),
        ({"concurrency": 16.0, **lengths}, {}, "throughput", "concurrency"),
        ({"concurrency": 64.0, **lengths}, {"max_num_seqs": 8}, "throughput", "max_num_seqs"),
        ({"batch": 8.0, **lengths}, {}, "latency", "pinned"),
        ({"batch": 8.0, "context_tokens": 1000.0}, {}, "tpot", "pinned"),
    ]
    for workload, engine, objective, limit in expected:
        found = api.advise(build(engine=engine, **workload), draws=16)
        assert (found.objective, found.operating_point.limited_by) == (objective, limit)


def test_saturation_is_said_with_the_rate_that_would_be_kept_up_with() -> None:
    found = api.advise(build(**{**OPEN, "request_rate": 500.0}), draws=16).operating_point
    assert found.saturated
    assert found.ttft_s is None
    assert found.e2e_s is None
    assert 0 < found.max_request_rate_per_s < 500


def test_acceptance_belongs_to_the_method_it_was_measured_with() -> None:
    spec = Speculative(method="eagle3", num_speculative_tokens=3)
    lever = api.lever_named("speculation")
    d = build(engine={"speculative": spec}, acceptance=Acceptance(length=3.8), **OPEN)
    off = lever.remove(d)
    assert off.workload.acceptance == Acceptance(length=3.8, k=3, method="eagle3")
    assert float(api.evaluate(lever.apply(off, "eagle3 k=3")).tau) == pytest.approx(3.8)
    assert float(api.evaluate(lever.apply(off, "eagle3 k=1")).tau) < 2
    guessed = build(engine={"speculative": Speculative(method="ngram", num_speculative_tokens=3)}, **OPEN)
    assert float(api.evaluate(lever.apply(off, "ngram k=3")).tau) == float(api.evaluate(guessed).tau)
    undrafted = build(acceptance=Acceptance(cumulative=(0.8, 0.7, 0.6)), **OPEN)
    assert float(api.evaluate(lever.apply(undrafted, "eagle3 k=3")).tau) == pytest.approx(3.1)
    assert float(api.evaluate(lever.apply(undrafted, "ngram k=3")).tau) == float(api.evaluate(guessed).tau)


def test_the_model_form_error_is_the_tables() -> None:
    d = build(batch=1.0, context_tokens=1000.0)
    lever = api.lever_named("weight_quant")
    rows = {row: lever_sigma("weight_quant", row, "family") for row in ("fp8", "weight_only", "weight_only_batch_1")}
    assert arms(lever, d, "fp8", Draws(16, 0)).sigma == Sigma(step=rows["fp8"], prefill=rows["fp8"])
    assert arms(lever, d, "int4_marlin", Draws(16, 0)).sigma == Sigma(step=rows["weight_only_batch_1"], prefill=rows["weight_only_batch_1"])
    assert arms(lever, build(batch=8.0, context_tokens=1000.0), "int4_marlin", Draws(16, 0)).sigma.step == rows["weight_only"]
    kv, whole = api.lever_named("kv_quant"), lever_sigma("kv_quant", "kv_hardware", "family")
    short, long = (arms(kv, build(batch=1.0, context_tokens=c), "fp8", Draws(16, 0)).sigma.step for c in (100.0, 100_000.0))
    assert FLOOR <= short < long < in_part(whole, 1.0), "of attention's part of the step"


def test_a_tree_in_force_is_judged_as_the_tree_it_is() -> None:
    tree = Speculative(method="eagle", num_speculative_tokens=5, topk=4, verify_tokens=32)
    d = build(engine={"name": "sglang", "speculative": tree}, acceptance=Acceptance(length=3.2), **OPEN)
    lever = api.lever_named("speculation")
    setting = lever.setting_on(d)
    assert setting == "eagle k=5 topk=4 tokens=32"
    again = lever.apply(lever.remove(d), setting)
    assert replace(again.engine.speculative, model=None) == tree
    assert float(api.evaluate(again).step_s) == float(api.evaluate(d).step_s)
    assert "--speculative-eagle-topk 4 --speculative-num-draft-tokens 32" in lever.flags(d, setting)["sglang"]
    found = api.advise(d, draws=32).levers["speculation"]
    assert (found.state, found.setting) == ("on", setting)
