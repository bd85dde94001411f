"""Two pools: work is conserved, decoding is never disturbed, and the link only ever helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import api
from breakeven.spec.disaggregation import Disaggregation, PrefillPool
from breakeven.statement import check, limited_by

OPEN = {"input_tokens": 2000.0, "output_tokens": 300.0, "request_rate": 3.0}
CLOSED = {"input_tokens": 2000.0, "output_tokens": 300.0, "concurrency": 64.0}
TP4 = {"tensor_parallel_size": 4}
FAST = 1e18


def pools(count: int = 4, rate: float | None = FAST, **sizes: object) -> Disaggregation:
    return Disaggregation(prefill=PrefillPool(count=count, **{**TP4, **sizes}), transfer_bytes_per_s=rate)


def test_with_an_endless_link_the_work_of_a_request_is_conserved(build) -> None:
    together = build("llama-3.1-70b", engine={**TP4, "enable_chunked_prefill": False}, **OPEN)
    one, two = api.evaluate(together), api.evaluate(replace(together, disaggregation=pools()))
    decode = api.evaluate(replace(together, disaggregation=pools(count=4000)))
    each = 1 / float(decode.max_request_rate) + 1 / float(two.pool.max_rate)
    assert each == pytest.approx(1 / float(one.max_request_rate), rel=1e-9)


@pytest.mark.parametrize("workload", [OPEN, CLOSED, {"input_tokens": 2000.0, "output_tokens": 300.0, "batch": 32.0}])
@pytest.mark.parametrize("chunked", [True, False])
def test_tokens_are_never_slower_than_with_prompts_beside_them(build, workload, chunked) -> None:
    one = build("llama-3.1-70b", engine={**TP4, "enable_chunked_prefill": chunked}, **workload)
    two = replace(one, disaggregation=pools(count=32))
    assert float(api.evaluate(two).tpot_s) <= float(api.evaluate(one).tpot_s) * (1 + 1e-9)


@pytest.mark.parametrize("workload", [OPEN, CLOSED])
def test_a_faster_link_is_never_slower(build, workload) -> None:
    points = [
        api.evaluate(build("llama-3.1-70b", engine=TP4, pools=pools(count=8, rate=rate), **workload)) for rate in np.geomspace(2e9, 1e12, 8)
    ]
    for metric in ("ttft_s", "e2e_s"):
        values = np.array([float(getattr(p, metric)) for p in points])
        assert np.all(values[1:] <= values[:-1] * (1 + 1e-9))


def test_without_prompts_a_pool_for_them_changes_nothing(build) -> None:
    d = build("llama-3.1-70b", engine=TP4, batch=32.0, context_tokens=4000.0)
    one, two = api.evaluate(d), api.evaluate(replace(d, disaggregation=pools()))
    assert np.array_equal(one.tpot_s, two.tpot_s) and two.pool is None and np.array_equal(one.throughput, two.throughput)


def test_the_smaller_of_two_pools_sets_what_can_be_served(build) -> None:
    d = build("llama-3.1-70b", engine=TP4, **OPEN)
    rates = {count: float(api.evaluate(replace(d, disaggregation=pools(count=count))).max_request_rate) for count in (4, 8, 400, 800)}
    assert rates[8] == pytest.approx(2 * rates[4]) and rates[400] == pytest.approx(rates[800])
    slow = api.evaluate(replace(d, disaggregation=pools(count=8, rate=1e9)))
    assert float(slow.max_request_rate) == pytest.approx(1e9 / float(slow.pool.transfer_bytes))


def test_more_than_the_prefill_pool_delivers_is_saturated_and_said_to_be_its_limit(build) -> None:
    d = build("llama-3.1-70b", engine=TP4, pools=pools(), **{**OPEN, "request_rate": 400.0})
    p = api.evaluate(d)
    check(p, d)
    assert bool(p.saturated) and np.isinf(p.ttft_s) and limited_by(p) == "prefill_pool"
    assert float(p.batch) < float(p.cap), "the decode pool is not full"


def test_clients_wait_where_the_prefill_pool_is_the_bottleneck(build) -> None:
    d = build("llama-3.1-70b", engine=TP4, pools=pools(), **{**CLOSED, "concurrency": 512.0})
    p = api.evaluate(d)
    check(p, d)
    assert float(p.request_rate) <= float(p.pool.max_rate) * (1 + 1e-6)
    assert float(p.request_rate) > 0.95 * float(p.pool.max_rate) and limited_by(p) == "prefill_pool"


def test_the_cache_sent_is_the_prompt_once_and_halves_with_its_bytes(build) -> None:
    wide, narrow = (
        api.evaluate(build("llama-3.1-70b", engine={**TP4, "kv_cache_dtype": dtype}, pools=pools(rate=None), **OPEN))
        for dtype in ("bf16", "fp8")
    )
    assert float(wide.pool.transfer_bytes) == 2000 * 327680
    assert float(narrow.pool.transfer_bytes) == pytest.approx(float(wide.pool.transfer_bytes) / 2)
    latent = api.evaluate(
        build("deepseek-v3", "h200-sxm", engine={"tensor_parallel_size": 8}, pools=pools(8, tensor_parallel_size=8), **OPEN)
    )
    assert float(latent.pool.transfer_bytes) == 2000 * 70272, "a latent is sent once, however many devices keep it"


def test_hits_shorten_prompts_in_the_prefill_pool(build) -> None:
    miss, hit = (
        api.evaluate(build("llama-3.1-70b", engine={**TP4, "enable_prefix_caching": True}, pools=pools(), prefix_hit_rate=rate, **OPEN))
        for rate in (0.0, 0.8)
    )
    assert float(hit.pool.busy_s) < 0.5 * float(miss.pool.busy_s)
    assert float(hit.pool.transfer_bytes) == float(miss.pool.transfer_bytes), "hits are sent as well"


def test_a_quicker_device_for_prompts_shortens_the_first_token_only(build) -> None:
    d = build("llama-3.1-70b", "a100-sxm-80", engine=TP4, pools=pools(), **{**OPEN, "request_rate": 1.0})
    h100 = api.hardware("h100-sxm").device
    quick = replace(d, disaggregation=pools(device=h100))
    slow, fast = api.evaluate(d), api.evaluate(quick)
    assert float(fast.ttft_s) < float(slow.ttft_s) and np.array_equal(fast.tpot_s, slow.tpot_s)


def test_a_pool_too_small_for_the_weights_does_not_fit(build) -> None:
    p = api.evaluate(build("llama-3.1-70b", engine=TP4, pools=pools(1, tensor_parallel_size=1), **OPEN))
    assert not p.fits


def test_every_lever_is_judged_over_two_pools(build) -> None:
    d = build("llama-3.1-70b", engine=TP4, pools=pools(8), prefix_hit_rate=0.5, **OPEN)
    advice = api.advise(d, draws=32)
    assert advice.operating_point.prefill_pool is not None and advice.operating_point.prefill_share == 0.0
    assert set(advice.levers) >= {"prefix_cache", "speculation", "kv_quant", "batching", "weight_quant"}
    assert any(warning.key == "judge.warn_transfer_assumed" for warning in advice.warnings) is False
    assumed = api.advise(replace(d, disaggregation=pools(8, rate=None)), draws=32)
    assert any(warning.key == "judge.warn_transfer_assumed" for warning in assumed.warnings)
