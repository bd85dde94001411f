"""Every ledger is the sum of its lines, and its limits are what the hardware says."""

from __future__ import annotations

from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven import api
from breakeven.kernels import kv_kernel, weight_kernels
from breakeven.ledger import compute, memory, prefill
from breakeven.ledger.bandwidth import coverage, effective_tokens
from breakeven.ledger.step import parts, smoothmax, step_time
from breakeven.statement import ledgers

PINNED = {"batch": 32.0, "context_tokens": 2000.0}
SPREAD = [
    ("llama-3.1-8b", "h100-sxm", {}),
    ("llama-3.1-70b", "h100-sxm", {"tensor_parallel_size": 4}),
    ("llama-3.1-70b", "a100-sxm-80", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}),
    ("qwen3-30b-a3b", "h200-sxm", {"quantization": "fp8"}),
    ("deepseek-v3", "h200-sxm", {"tensor_parallel_size": 8, "kv_cache_dtype": "fp8"}),
    ("gemma-2-9b", "l40s", {}),
    ("gpt-oss-20b", "h100-sxm", {}),
    ("qwen2.5-0.5b", "l4", {"quantization": "bitsandbytes"}),
]


@pytest.mark.parametrize(("model", "device", "engine"), SPREAD)
def test_every_ledger_is_the_sum_of_its_lines(build, model, device, engine) -> None:
    d = build(model, device, engine=engine, **PINNED)
    p = api.evaluate(d)
    books = ledgers(p, d)
    m, b, c = books.memory, books.bandwidth, books.compute
    assert isclose(m.kv_pool_bytes + m.weight_bytes + m.draft_weight_bytes + m.reserve_bytes, m.usable_bytes, rel_tol=1e-12)
    assert isclose(b.bytes_per_step, b.weight_bytes + b.kv_bytes, rel_tol=1e-12)
    assert b.expert_bytes <= b.weight_bytes
    assert isclose(b.kv_share, b.kv_bytes / b.bytes_per_step, rel_tol=1e-12)
    assert isclose(c.flop_per_step, c.linear_flop + c.attention_flop, rel_tol=1e-12)
    assert isclose(sum(books.step_parts_s.values()), float(p.step_s), rel_tol=1e-9)
    assert isclose(b.mbu * float(p.step_s) * d.hardware.device.bandwidth_bytes_per_s, b.bytes_per_step, rel_tol=1e-9)
    assert isclose(books.interconnect.share_of_step * float(p.step_s), books.step_parts_s["communication"], rel_tol=1e-9, abs_tol=1e-15)
    assert 0 < b.mbu < 1
    assert 0 < c.mfu < 1


@pytest.mark.parametrize(("model", "device", "engine"), SPREAD)
def test_weight_bytes_are_the_sum_over_tensor_classes(build, model, device, engine) -> None:
    d = build(model, device, engine=engine, **PINNED)
    kernels = weight_kernels(d.model, d.engine, d.hardware.device)
    by_class = {name: getattr(d.model.parameters, name) * kernels[name].bytes for name in kernels}
    shards = d.engine.tensor_parallel_size * d.engine.pipeline_parallel_size
    assert isclose(api.evaluate(d).room.weight_bytes, sum(by_class.values()) / shards, rel_tol=1e-12)


def test_sixteen_bit_weights_are_two_bytes_a_parameter(build) -> None:
    d = build("llama-3.1-8b", "h100-sxm", **PINNED)
    assert api.evaluate(d).room.weight_bytes == 2 * d.model.parameters.total


@pytest.mark.parametrize("model", ["llama-3.1-70b", "opt-6.7b", "falcon-7b", "deepseek-v3", "qwen3-0.6b"])
def test_kv_bytes_are_linear_in_context_without_windows(model: str) -> None:
    m, kv = api.model(model), kv_kernel("bf16")
    one = memory.kv_bytes(m, kv, 1.0)
    assert one == memory.kv_bytes_per_token(m, kv)
    for tokens in (7.0, 1000.0, 131072.0):
        assert isclose(memory.kv_bytes(m, kv, tokens), one * tokens, rel_tol=1e-12)


@pytest.mark.parametrize("model", ["gemma-2-9b", "gemma-3-27b", "gpt-oss-120b", "llama-4-scout"])
def test_window_layers_hold_only_their_window(model: str) -> None:
    m, kv = api.model(model), kv_kernel("bf16")
    window = next(g.window for g in m.attention if g.window)
    full = sum(g.layers * 2 * g.kv_heads * g.k_dim * 2 for g in m.attention if not g.window)
    windowed = sum(g.layers * 2 * g.kv_heads * g.k_dim * 2 for g in m.attention if g.window)
    long = 10.0 * window
    assert isclose(memory.kv_bytes(m, kv, long), full * long + windowed * window, rel_tol=1e-12)
    assert isclose(memory.kv_bytes(m, kv, 0.5 * window), (full + windowed) * 0.5 * window, rel_tol=1e-12)


def test_the_pool_is_whole_blocks(build) -> None:
    for engine in ({}, {"block_size": 128}):
        p = api.evaluate(build("llama-3.1-8b", engine=engine, **PINNED))
        size = engine.get("block_size", 16)
        assert p.room.pool_tokens % size == 0
        assert 0 <= p.room.pool_bytes - p.room.pool_tokens * p.room.kv_bytes_per_token < size * p.room.kv_bytes_per_token


def test_an_engine_that_reserves_whole_sequences_holds_fewer(build) -> None:
    asked = {"input_tokens": 1000.0, "output_tokens": 1000.0, "request_rate": 1.0}
    grows, whole = (api.evaluate(build(engine={"kv_reserve": kind}, **asked)) for kind in ("grow", "whole"))
    assert isclose(float(grows.room.fits_sequences / whole.room.fits_sequences), (2000 + 7.5) / (1500 + 7.5), rel_tol=1e-9)


def test_a_lone_dense_sequence_waits_for_the_weights_and_the_fixed_costs(build) -> None:
    d = build("llama-3.1-8b", "h100-sxm", batch=1.0, context_tokens=1.0)
    p, e = api.evaluate(d), api.evaluate(d).efficiencies
    read = 2 * (d.model.parameters.total - d.model.parameters.embedding) / (3.35e12 * e.bandwidth_dense)
    fixed = e.host_s + 32 * e.layer_s + e.sequence_s + 128256 * e.logit_bytes / 3.35e12
    assert isclose(float(p.step_s), read + fixed, rel_tol=1e-4)


def test_a_huge_batch_is_bound_by_compute(build) -> None:
    d = build("llama-3.1-8b", "h100-sxm", batch=1e7, context_tokens=1.0)
    p = api.evaluate(d)
    multiplied = d.model.parameters.attention + d.model.parameters.mlp + d.model.parameters.head
    roof = 2 * multiplied * 1e7 / (989.4e12 * p.efficiencies.mfu_decode)
    assert isclose(float(parts(p.cost, 1e7)["dense"]), roof, rel_tol=1e-6)


def test_a_huge_batch_of_a_mixture_computes_only_the_experts_chosen(build) -> None:
    d = build("qwen3-30b-a3b", "h100-sxm", batch=1e7, context_tokens=1.0)
    p = api.evaluate(d)
    roof = 2 * d.model.parameters.experts * 8 / 128 * 1e7 / (989.4e12 * p.efficiencies.mfu_decode_experts)
    assert isclose(float(parts(p.cost, 1e7)["experts"]), roof, rel_tol=1e-6)


def test_the_ridge_is_where_reading_takes_as_long_as_multiplying(build) -> None:
    p = api.evaluate(build("llama-3.1-8b", **PINNED))
    at = float(ledgers(p, build("llama-3.1-8b", **PINNED)).compute.ridge_rows)
    assert isclose(float(parts(p.cost, at)["dense"]), 2**0.25 * float(p.cost.dense_read_s), rel_tol=1e-9)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_one_device_sends_nothing(build, model: str) -> None:
    d = build(model, **PINNED)
    books = ledgers(api.evaluate(d), d)
    assert books.interconnect.bytes_per_step == 0
    assert books.interconnect.share_of_step == 0
    assert books.step_parts_s["communication"] == 0


def test_an_all_reduce_costs_latency_and_bytes(build) -> None:
    one, four = (api.evaluate(build("llama-3.1-8b", engine={"tensor_parallel_size": tp}, **PINNED)) for tp in (1, 4))
    assert isclose(float(four.cost.fixed_s - one.cost.fixed_s), 2 * 32 * one.efficiencies.allreduce_s * 2, rel_tol=1e-9)
    wire = 2 * 32 * 2 * 2 * 4096 * 3 / 4 / (450e9 * one.efficiencies.link_efficiency)
    assert isclose(float(parts(four.cost, 32.0)["communication"]), 32 * wire, rel_tol=1e-9)


@given(b=st.floats(1e-3, 4096.0), which=st.integers(0, len(SPREAD) - 1), k=st.sampled_from([0, 3]))
def test_the_parts_of_a_step_add_up_to_it(build, b: float, which: int, k: int) -> None:
    from breakeven.spec.engine import Speculative

    model, device, engine = SPREAD[which]
    spec = Speculative(method="ngram", num_speculative_tokens=k) if k else None
    cost = api.evaluate(build(model, device, engine={**engine, "speculative": spec}, **PINNED)).cost
    assert isclose(float(step_time(cost, b)), float(sum(parts(cost, b).values())), rel_tol=1e-12)


def test_no_step_runs_with_less_than_one_sequence(build) -> None:
    """A replica idle nine tenths of the time still reads the experts of a whole token when it works."""
    cost = api.evaluate(build("qwen3-30b-a3b", **PINNED)).cost
    assert step_time(cost, 0.1) == step_time(cost, 1.0) < step_time(cost, 1.1)
    staged = api.evaluate(build("llama-3.1-70b", engine={"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, **PINNED)).cost
    assert step_time(staged, 1.0) == step_time(staged, 2.0) < step_time(staged, 2.1)


def test_a_prompt_costs_more_alone_than_riding_along(build) -> None:
    for model, device, engine in SPREAD:
        p = api.evaluate(build(model, device, engine=engine, **PINNED))
        for tokens in (16.0, 500.0, 20000.0):
            assert prefill.alone_s(p.shard, p.efficiencies, tokens, tokens) >= prefill.shared_s(p.shard, p.efficiencies, tokens, tokens)


def test_a_long_prompt_is_bound_by_its_compute(build) -> None:
    d = build("llama-3.1-8b", "h100-sxm", **PINNED)
    p = api.evaluate(d)
    linear = 2 * (d.model.parameters.attention + d.model.parameters.mlp) * 8192 / (989.4e12 * p.efficiencies.prefill_mfu_dense)
    attention = 4 * 32 * 128 * 32 * 8192**2 / 2 / (989.4e12 * p.efficiencies.prefill_mfu_attention)
    assert isclose(float(prefill.shared_s(p.shard, p.efficiencies, 8192.0, 8192.0)), linear + attention, rel_tol=1e-9)


def test_cached_prompt_tokens_still_cost_attention(build) -> None:
    s = api.evaluate(build("llama-3.1-8b", **PINNED)).shard
    alone, after_prefix = prefill.attention_flop(s, 500.0, 500.0), prefill.attention_flop(s, 500.0, 4500.0)
    assert isclose(float(after_prefix - alone), 4 * 32 * 128 * 32 * 500 * 4000, rel_tol=1e-12)


@given(new=st.floats(1, 5000), cached=st.floats(0, 50000), window=st.sampled_from([None, 128, 4096]))
def test_pairs_in_a_prompt_are_the_integral_of_what_each_token_sees(new: float, cached: float, window: int | None) -> None:
    x = np.linspace(cached, cached + new, 20001)
    seen = x if window is None else np.minimum(x, window)
    assert isclose(float(compute.pairs_in_prompt(new, cached + new, window)), float(np.trapezoid(seen, x)), rel_tol=1e-4)


@given(a=st.floats(1e-9, 1e3), b=st.floats(1e-9, 1e3))
def test_the_corner_lies_between_the_larger_and_their_sum(a: float, b: float) -> None:
    assert max(a, b) * (1 - 1e-12) <= float(smoothmax(a, b)) <= (a + b) * (1 + 1e-12)


@given(n=st.floats(0, 1e5), top_k=st.integers(1, 16), experts=st.integers(16, 512))
def test_coverage_is_a_share_and_one_token_wakes_its_own_experts(n: float, top_k: int, experts: int) -> None:
    assert 0 <= float(coverage(n, top_k, experts)) <= 1
    assert isclose(float(coverage(1.0, top_k, experts)), top_k / experts, rel_tol=1e-9)


def test_rows_of_one_sequence_wake_fewer_experts_than_rows_of_many() -> None:
    assert effective_tokens(8.0, 4.0, 0.47) < effective_tokens(32.0, 1.0, 0.47) == 32.0
    assert effective_tokens(8.0, 1.0, 0.47) == 8.0


def test_a_quantised_cache_makes_prompts_slower_never_faster(build) -> None:
    plain, quantised = (api.evaluate(build(engine={"kv_cache_dtype": kind}, **PINNED)) for kind in ("auto", "fp8"))
    for cost in (prefill.shared_s, prefill.alone_s):
        assert cost(quantised.shard, quantised.efficiencies, 2000.0, 2000.0) > cost(plain.shard, plain.efficiencies, 2000.0, 2000.0)


@pytest.mark.parametrize("mode", [{"request_rate": 2.0}, {"concurrency": 16.0}, {"batch": 16.0}])
def test_a_prefix_cache_that_never_hits_costs_only_its_bookkeeping(build, mode) -> None:
    asked = {"input_tokens": 2000.0, "output_tokens": 200.0, "prefix_hit_rate": 0.0, **mode}
    off, on = (api.evaluate(build(engine={"enable_prefix_caching": kind}, **asked)) for kind in (False, True))
    kept = 1 + off.efficiencies.prefix_bookkeeping
    assert isclose(float(on.interference_s), kept * float(off.interference_s), rel_tol=1e-12)
    assert isclose(float(on.step_s / on.time_factor * off.time_factor), float(off.step_s), rel_tol=0.02)
    assert isclose(float(on.time_factor), kept * float(off.time_factor), rel_tol=1e-12)
    assert 1 < float(on.e2e_s / off.e2e_s) < kept**3
    assert on.room == off.room


def test_verified_rows_are_multiplied_and_the_cache_is_read_once(build) -> None:
    from breakeven.spec.engine import Speculative
    from breakeven.statement import kv_read_bytes, step_flop

    spec = Speculative(method="ngram", num_speculative_tokens=4)
    plain, drafted = (api.evaluate(build(engine={"speculative": kind}, **PINNED)) for kind in (None, spec))
    assert [float(b) / float(a) for a, b in zip(step_flop(plain), step_flop(drafted), strict=True)] == pytest.approx([5.0, 5.0])
    assert kv_read_bytes(drafted) == kv_read_bytes(plain)


def test_a_tree_of_drafts_costs_its_own_bookkeeping(build) -> None:
    from breakeven.spec.engine import Speculative

    chain = Speculative(method="eagle", num_speculative_tokens=4, verify_tokens=8)
    tree = Speculative(method="eagle", num_speculative_tokens=4, verify_tokens=8, topk=2)
    a, b = (api.evaluate(build(engine={"speculative": kind}, **PINNED)) for kind in (chain, tree))
    assert isclose(float(b.cost.draft_fixed_s - a.cost.draft_fixed_s), a.efficiencies.tree_s, rel_tol=1e-9)


def test_a_prompt_holds_up_one_stage_of_a_pipeline_at_a_time(build) -> None:
    asked = {"input_tokens": 2000.0, "output_tokens": 200.0, "request_rate": 1.0}
    p = api.evaluate(build("llama-3.1-70b", engine={"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, **asked))
    shared = prefill.shared_s(p.shard, p.efficiencies, 2000.0, 2000.0)
    assert isclose(float(p.interference_s), p.efficiencies.interference * float(shared) / 2, rel_tol=1e-12)


def test_unequal_prompts_cost_the_same_matrices_and_more_attention(build) -> None:
    from breakeven.spec.workload import Lengths

    moments = Lengths(
        requests=10, mean_input=2000.0, mean_output=200.0, mean_input_squared=3 * 2000.0**2, mean_output_squared=4e4, mean_input_output=4e5
    )
    asked = {"input_tokens": 2000.0, "output_tokens": 200.0, "request_rate": 1.0}
    equal, unequal = (api.evaluate(build(lengths=kind, **asked)) for kind in (None, moments))
    e, s = equal.efficiencies, equal.shard
    attention = float(prefill.attention_flop(s, 2000.0, 2000.0)) / (s.flops_16_bit * e.prefill_mfu_attention)
    linear = float(prefill.linear_s(s, e, 2000.0))
    assert isclose(float(equal.interference_s) / e.interference, linear + attention, rel_tol=1e-9)
    assert isclose(float(unequal.interference_s) / e.interference, linear + 3 * attention, rel_tol=1e-9)
