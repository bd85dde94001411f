"""Rows of a measured gain, by hand: what each is read as, what it is refused for, and that any row is one or the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served_row import SERVED

from breakeven import catalog, registry
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, evaluate
from breakeven.kernels import by_family
from breakeven.measured.pair import Pair
from breakeven.measured.pairs import pair_of
from breakeven.measured.row import NotUnderstood, Row
from breakeven.messages import text

CACHE = {**SERVED, "lever": "kv_quant", "lever_setting": "bf16->fp8", "kv_dtype": "fp8", "weight_dtype": "bf16"}
PREFIX = {**SERVED, "lever": "prefix_caching", "lever_setting": "hit rate 50%", "metric": "prefill throughput"}
DRAFTS = {**SERVED, "lever": "spec:eagle3", "lever_setting": "EAGLE3 steps=3 topk=1 draft_tokens=4; accept_length=2.4"}
BATCH = {**SERVED, "lever": "batching", "lever_setting": "concurrency 4 -> 64", "batch_or_concurrency": "64", "weight_dtype": "bf16"}
ALL = {"weight_quant": SERVED, "kv_quant": CACHE, "prefix_cache": PREFIX, "speculation": DRAFTS, "batching": BATCH}


def row(fields: dict[str, str], **changes: str) -> Row:
    return Row(where="mine.csv:2", id="mine", fields={**fields, **changes})


def pair(fields: dict[str, str], **changes: str) -> Pair:
    return pair_of(row(fields, **changes))


def gain(found: Pair) -> float:
    return float(np.asarray(found.gain(MEDIAN, Noise())))


def reason(fields: dict[str, str], **changes: str) -> str:
    with pytest.raises(NotUnderstood) as refused:
        pair(fields, **changes)
    return refused.value.message.key


def test_every_lever_has_its_arms() -> None:
    assert registry.names("measured/arms") == registry.names("levers") == tuple(sorted(ALL))


@pytest.mark.parametrize("lever", ALL)
def test_a_row_of_each_lever_is_read_under_its_own_name(lever: str) -> None:
    found = pair(ALL[lever])
    assert (found.lever, found.where, found.id, found.measured) == (lever, "mine.csv:2", "mine", 1.3)
    assert gain(found) > 1.0 and found.regime


def test_the_arms_are_the_rows_own_settings() -> None:
    assert pair(SERVED).on.engine.quantization == "fp8" and pair(SERVED).off.engine.quantization is None
    assert pair(CACHE).on.engine.kv_cache_dtype == "fp8" and pair(CACHE).off.engine.kv_cache_dtype == "bf16"
    assert pair(PREFIX).on.engine.enable_prefix_caching and not pair(PREFIX).off.engine.enable_prefix_caching
    drafts = pair(DRAFTS).on.engine.speculative
    assert drafts is not None and (drafts.method, drafts.num_speculative_tokens) == ("eagle3", 3)
    assert (pair(BATCH).off.workload.concurrency, pair(BATCH).on.workload.concurrency) == (4.0, 64.0)


def test_two_levers_together_are_both_on_and_named_by_the_first() -> None:
    both = pair(CACHE, lever="weight_quant+kv_quant", lever_setting="BF16->FP8")
    assert both.lever == "weight_quant" and both.regime == "levers together"
    assert (both.on.engine.quantization, both.on.engine.kv_cache_dtype) == ("fp8", "fp8")
    assert (both.off.engine.quantization, both.off.engine.kv_cache_dtype) == (None, "bf16")
    drafted = pair({**DRAFTS, "lever": "speculation+kv_quant", "kv_dtype": "fp8"})
    assert drafted.on.engine.speculative is not None and drafted.on.engine.kv_cache_dtype == "fp8"
    assert reason(CACHE, lever="kv_quant+batching") == "pair.not_together"


def test_a_gain_follows_from_two_values_and_the_sense_of_the_metric() -> None:
    rates = pair(SERVED, gain_gt1_is_better="", value_off="100", value_on="150")
    times = pair(SERVED, gain_gt1_is_better="", value_off="30", value_on="20", metric="mean TPOT", unit="ms")
    assert rates.measured == pytest.approx(1.5) and times.measured == pytest.approx(1.5)


def test_a_gain_that_cannot_be_is_refused() -> None:
    assert reason(SERVED, gain_gt1_is_better="0") == "pair.gain_impossible"
    assert reason(SERVED, gain_gt1_is_better="-2") == "pair.gain_impossible"
    assert reason(SERVED, gain_gt1_is_better="") == "pair.gain_missing"
    assert reason(DRAFTS, gain_gt1_is_better="3.1") == "pair.gain_above_length"


def test_a_load_by_rate_is_an_open_loop_and_its_times_need_a_server_below_capacity() -> None:
    calm = pair(SERVED, batch_or_concurrency="QPS 1", metric="mean request latency", unit="s")
    assert calm.off.workload.request_rate == 1.0 and gain(calm) > 1.0
    assert reason(SERVED, batch_or_concurrency="QPS 400", metric="mean request latency", unit="s") == "pair.queue_without_bound"
    assert gain(pair(SERVED, batch_or_concurrency="QPS 400", metric="request throughput", unit="req/s")) > 1.0


def test_all_requests_at_once_run_a_mean_batch_below_their_number_and_say_so() -> None:
    found = pair(SERVED, batch_or_concurrency="~100 (all at once)")
    assert found.on.workload.batch == pytest.approx(100 / 1.38) and "assumed_mean_batch" in found.notes


def test_as_many_as_fit_is_more_with_smaller_weights() -> None:
    found = pair(SERVED, batch_or_concurrency="max that fits", metric="max achievable throughput, same memory")
    off, on = found.off.workload.batch, found.on.workload.batch
    assert isinstance(off, float) and isinstance(on, float) and on > off > 10 and found.sigma_row == "capacity_bound"


def test_what_does_not_fit_is_refused() -> None:
    assert reason(SERVED, model="Llama-3.1-70B") == "pair.does_not_fit"


def test_acceptance_that_is_not_stated_is_the_priors_and_said() -> None:
    found = pair(DRAFTS, lever_setting="EAGLE3, k=3", context_or_input_len="gsm8k", output_len="")
    assert found.on.workload.acceptance is None and found.on.workload.task == "math"
    assert "assumed_acceptance" in found.notes and found.regime.startswith("acceptance not given")


def test_ranks_of_attention_are_ranks_and_labels_that_lie_are_mended() -> None:
    ranks = pair(BATCH, hardware="B200", n_gpus="1", parallelism="TP1 moe_tp8 moe_ep8 dp64", model="DeepSeek-V3", weight_dtype="fp8")
    assert (ranks.on.engine.data_parallel_size, ranks.on.hardware.count, ranks.on.engine.kv_cache_dtype) == (8, 8, "fp8")


def test_devices_that_are_not_stated_are_those_whose_plain_speed_is_nearest() -> None:
    alone = pair(DRAFTS, parallelism="not stated", value_off="2000", model="Llama-3.1-70B", batch_or_concurrency="64")
    assert alone.off.hardware.count > 1 and "assumed_split" in alone.notes


def test_a_kernel_alone_is_a_product_without_a_model() -> None:
    marlin = {
        **SERVED,
        "engine": "kernel only: Marlin",
        "model": "matmul 72k x 18k",
        "lever_setting": "FP16 GEMM -> Marlin",
        "metric": "GEMM speed-up",
        "weight_dtype": "int4 g128",
    }
    small, large = (gain(pair(marlin, hardware="NVIDIA A10", batch_or_concurrency=str(rows))) for rows in (1, 1024))
    kernel = evaluate(pair(marlin, hardware="NVIDIA A10", batch_or_concurrency="1").on).shard.kernels["mlp"]
    family = catalog.load("hardware", "a10").family
    assert small == pytest.approx(by_family(kernel.phi, family) * 2.0 / 0.53, rel=0.02)
    assert large == pytest.approx(1.0 / by_family(kernel.delta_decode, family), abs=0.05)


def test_a_cache_in_16_bits_on_both_arms_is_refused_and_not_scored_as_no_gain() -> None:
    with pytest.raises(NotUnderstood) as refusal:
        pair(CACHE, kv_dtype="bf16")
    assert refusal.value.message.key == "pair.cache_is_16_bit"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lever=st.sampled_from(sorted(ALL)),
    column=st.sampled_from(sorted(SERVED)),
    written=st.one_of(
        st.text(max_size=30), st.sampled_from(["-1", "0", "1e9", "nan", "1..0", "100%", "TP0", "concurrency 0 -> 0", "BF16->BF16"])
    ),
)
def test_any_row_is_a_pair_or_one_line_of_reason(lever: str, column: str, written: str) -> None:
    try:
        found = pair(ALL[lever], **{column: written})
    except NotUnderstood as refused:
        assert "\n" not in text(refused.message).strip()
        return
    assert np.isfinite(gain(found))
