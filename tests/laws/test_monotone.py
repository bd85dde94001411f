"""More of a good thing is never worse, and what a user waits rises where the work does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven import api
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Acceptance

MODELS = [
    ("llama-3.1-8b", {}), ("qwen3-30b-a3b", {"quantization": "fp8"}), ("gemma-2-9b", {}), ("deepseek-v2-lite", {}), ("gpt-oss-20b", {}),
    ("llama-3.1-8b", {"quantization": "awq_marlin", "kv_cache_dtype": "fp8"}), ("qwen2.5-7b", {"quantization": "bitsandbytes"}),
    ("llama-3.1-8b", {"speculative": Speculative(method="eagle3", num_speculative_tokens=3)}),
]  # fmt: skip
DEVICES = ["h100-sxm", "a100-sxm-80", "h200-sxm", "b200-sxm", "mi300x"]
setups = st.tuples(st.sampled_from(MODELS), st.sampled_from(DEVICES), st.floats(1.0, 2000.0), st.floats(1.0, 30000.0))
RISING = 1 - 1e-12


def with_device(d, **changes):
    return replace(d, hardware=replace(d.hardware, device=replace(d.hardware.device, **changes)))


def pinned(build, setup):
    (model, engine), device, batch, context = setup
    return build(model, device, engine=engine, batch=batch, context_tokens=context)


@settings(max_examples=40)
@given(setup=setups, more=st.floats(1.0, 4.0))
def test_more_bandwidth_is_never_slower(build, setup, more) -> None:
    d = pinned(build, setup)
    faster = with_device(d, bandwidth_bytes_per_s=d.hardware.device.bandwidth_bytes_per_s * more)
    assert api.evaluate(faster).step_s <= api.evaluate(d).step_s / RISING


@settings(max_examples=40)
@given(setup=setups, more=st.floats(1.0, 4.0))
def test_more_compute_is_never_slower(build, setup, more) -> None:
    d = pinned(build, setup)
    faster = with_device(d, matmul_flops={name: rate * more for name, rate in d.hardware.device.matmul_flops.items()})
    assert api.evaluate(faster).step_s <= api.evaluate(d).step_s / RISING


@settings(max_examples=40)
@given(setup=setups, more=st.floats(1.0, 8.0))
def test_more_context_is_never_faster(build, setup, more) -> None:
    d = pinned(build, setup)
    longer = replace(d, workload=replace(d.workload, context_tokens=setup[3] * more))
    given_acceptance = Acceptance(alpha=0.7)
    d, longer = (replace(x, workload=replace(x.workload, acceptance=given_acceptance)) for x in (d, longer))
    assert api.evaluate(longer).tpot_s >= api.evaluate(d).tpot_s * RISING


@settings(max_examples=40)
@given(setup=setups, more=st.floats(1.0, 8.0))
def test_a_larger_batch_steps_slower_but_costs_less_for_a_token(build, setup, more) -> None:
    d = pinned(build, setup)
    a = api.evaluate(d)
    b = api.evaluate(replace(d, workload=replace(d.workload, batch=setup[2] * more)))
    assert b.step_s >= a.step_s * RISING
    assert b.tpot_s >= a.tpot_s * RISING
    if d.engine.quantization != "bitsandbytes":
        assert b.step_s / b.batch <= a.step_s / a.batch / RISING


@settings(max_examples=40)
@given(setup=setups, faster=st.floats(1.0, 4.0))
def test_a_faster_link_is_never_slower(build, setup, faster) -> None:
    (model, engine), device, batch, context = setup
    d = build(model, device, engine={**engine, "tensor_parallel_size": 4}, batch=batch, context_tokens=context)
    quick = with_device(d, link_bytes_per_s=d.hardware.device.link_bytes_per_s * faster)
    assert api.evaluate(quick).step_s <= api.evaluate(d).step_s / RISING


@settings(max_examples=40)
@given(setup=setups, more=st.floats(1.0, 1.1))
def test_a_larger_pool_holds_no_fewer_sequences(build, setup, more) -> None:
    d = pinned(build, setup)
    larger = replace(d, engine=replace(d.engine, gpu_memory_utilization=0.9 * more))
    a, b = api.evaluate(d), api.evaluate(larger)
    assert b.room.fits_sequences >= a.room.fits_sequences
    assert b.cap >= a.cap


@given(low=st.floats(0.01, 0.98), step=st.floats(0.0, 0.01), k=st.integers(1, 8))
def test_more_acceptance_means_more_tokens_a_round(build, low, step, k) -> None:
    spec = Speculative(method="eagle3", num_speculative_tokens=k)
    found = [
        float(api.evaluate(build(engine={"speculative": spec}, batch=4.0, context_tokens=1000.0, acceptance=accepted)).tau)
        for alpha in (low, low + step)
        for accepted in (
            Acceptance(alpha=alpha),
            Acceptance(rate=alpha),
            Acceptance(length=1 + alpha * k),
            Acceptance(cumulative=(alpha,) * k),
        )
    ]
    assert all(a <= b / RISING for a, b in zip(found[:4], found[4:], strict=True))
    assert all(1 <= tau <= k + 1 for tau in found)


@pytest.mark.parametrize(("model", "engine"), MODELS)
def test_the_rate_a_replica_sustains_falls_with_output_and_prompt(build, model, engine) -> None:
    lengths = np.geomspace(16, 4096, 9)
    for moved in ("output_tokens", "input_tokens"):
        asked = {"input_tokens": 1000.0, "output_tokens": 200.0, "request_rate": 0.1} | {moved: lengths}
        assert np.all(np.diff(api.evaluate(build(model, engine=engine, **asked)).max_request_rate) < 0)


@pytest.mark.parametrize(("model", "engine"), MODELS)
def test_more_arrivals_mean_a_larger_batch_and_a_slower_token(build, model, engine) -> None:
    most = float(api.evaluate(build(model, engine=engine, input_tokens=1000.0, output_tokens=200.0, request_rate=0.1)).max_request_rate)
    rates = most * np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99])
    p = api.evaluate(build(model, engine=engine, input_tokens=1000.0, output_tokens=200.0, request_rate=rates))
    assert np.all(np.diff(p.batch) > 0)
    assert np.all(np.diff(p.tpot_s) > 0)
    assert np.all(np.diff(p.wait_s) >= 0)
    assert np.all(np.diff(p.e2e_s) > 0)


def test_time_a_token_rises_with_the_batch_while_amortised_time_falls(build) -> None:
    p = api.evaluate(build("llama-3.1-70b", engine={"tensor_parallel_size": 4}, batch=np.geomspace(1, 512, 10), context_tokens=1000.0))
    assert np.all(np.diff(p.tpot_s) > 0)
    assert np.all(np.diff(p.shard.dense_bytes / p.batch) < 0)


@pytest.mark.parametrize("mode", [{"request_rate": 4.0}, {"concurrency": 32.0}])
def test_more_hits_are_never_slower(build, mode) -> None:
    hits = np.linspace(0, 1, 21)
    p = api.evaluate(build(engine={"enable_prefix_caching": True}, input_tokens=2000.0, output_tokens=200.0, prefix_hit_rate=hits, **mode))
    assert np.all(np.diff(p.e2e_s) <= 1e-12)
    assert np.all(np.diff(p.prefill_alone_s) <= 0)


def test_more_devices_in_a_tensor_group_are_never_slower_at_a_working_batch(build) -> None:
    found = [
        float(api.evaluate(build("llama-3.1-70b", engine={"tensor_parallel_size": tp}, batch=64.0, context_tokens=2000.0)).step_s)
        for tp in (2, 4, 8)
    ]
    assert found == sorted(found, reverse=True)


def test_replicas_share_the_arrivals(build) -> None:
    asked = {"input_tokens": 1000.0, "output_tokens": 200.0}
    one, two = api.evaluate(build(request_rate=3.0, **asked)), api.evaluate(build(replicas=2, request_rate=6.0, **asked))
    assert one.tpot_s == two.tpot_s
    assert two.throughput == 2 * one.throughput
    assert two.capacity == 2 * one.capacity
    assert two.request_rate == 2 * one.request_rate
