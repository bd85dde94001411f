"""What must hold of any split: nothing is lost between devices, neutral sizes change nothing, and more wire is never slower."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import api
from breakeven.ledger import experts, wire
from breakeven.ledger.memory import kv_bytes_per_token
from breakeven.ledger.step import parts, step_time
from breakeven.statement import check, ledgers, read_bytes

CLOSED = {"input_tokens": 2000.0, "output_tokens": 400.0, "concurrency": 128.0}
WHOLE = {"enable_expert_parallel": True}
FIGURES = ("tpot_s", "ttft_s", "throughput", "capacity", "batch", "step_s")


def same(a, b) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIGURES)


@pytest.mark.parametrize("engine", [{"tensor_parallel_size": 8}, {"data_parallel_size": 8}, {"data_parallel_size": 8, **WHOLE}])
def test_the_devices_of_a_replica_hold_every_expert_once(build, engine) -> None:
    point = api.evaluate(build("deepseek-v3", "h200-sxm", engine=engine, **CLOSED))
    model = point.shard.model
    held = point.shard.expert_bytes * point.shard.layout.expert_shards
    assert held == pytest.approx(model.parameters.experts * point.shard.kernels["experts"].bytes)
    assert point.shard.expert_flop_per_row * point.shard.layout.expert_shards == pytest.approx(
        2.0 * model.parameters.experts * model.experts.top_k / model.experts.count
    )


def test_ranks_hold_the_dense_weights_once_each(build) -> None:
    tensor, ranks = (
        api.evaluate(build("deepseek-v3", "h200-sxm", engine=engine, **CLOSED))
        for engine in ({"tensor_parallel_size": 8}, {"data_parallel_size": 8})
    )
    p = tensor.shard.model.parameters
    dense = sum(getattr(p, n) * tensor.shard.kernels[n].bytes for n in ("embedding", "head", "attention", "mlp", "other"))
    assert ranks.room.weight_bytes - tensor.room.weight_bytes == pytest.approx(dense * (1 - 1 / 8))


def test_one_rank_is_no_rank(build) -> None:
    plain = build("mixtral-8x7b", engine={"tensor_parallel_size": 4}, **CLOSED)
    neutral = {"data_parallel_size": 1, "decode_context_parallel_size": 1, "prefill_context_parallel_size": 1}
    assert same(api.evaluate(plain), api.evaluate(build("mixtral-8x7b", engine={"tensor_parallel_size": 4, **neutral}, **CLOSED)))
    alone = build("mixtral-8x7b", engine={"quantization": "awq"}, **CLOSED)
    assert same(api.evaluate(alone), api.evaluate(build("mixtral-8x7b", engine={"quantization": "awq", **WHOLE}, **CLOSED)))


def test_with_many_rows_whole_experts_are_read_as_parts_of_all_are(build) -> None:
    parted, whole = (
        api.evaluate(build("qwen3-235b-a22b", "h200-sxm", engine={"tensor_parallel_size": 8, **engine}, batch=1e5, context_tokens=10.0))
        for engine in ({}, WHOLE)
    )
    assert read_bytes(whole)[0] == pytest.approx(read_bytes(parted)[0], rel=1e-5)
    assert float(experts.busiest_coverage(1.0 - 1e-12, 128, 8)) == pytest.approx(1.0, abs=1e-5)
    rows = experts.busiest_load(1e9, 8, 8, 1.1)
    assert float(rows) == pytest.approx(1.1, rel=1e-3), "what is left is the skew"


@pytest.mark.parametrize("rows", [1.0, 4.0, 32.0, 256.0])
def test_the_busiest_device_is_never_below_the_mean_nor_above_all(rows) -> None:
    for devices in (2, 8, 32):
        assert 1.0 <= float(experts.busiest_load(rows, 8, devices, 1.0)) <= devices
        share = 1 - (1 - 8 / 256) ** rows
        assert share <= float(experts.busiest_coverage(share, 256, devices)) <= 1.0


def test_the_busiest_device_is_that_of_drawn_routing() -> None:
    random = np.random.default_rng(0)
    devices, count, top_k, rows = 8, 256, 8, 64
    reads, loads = [], []
    for _ in range(300):
        picked = np.argsort(random.random((rows, count)), axis=1)[:, :top_k]
        hit = np.zeros(count, dtype=bool)
        hit[picked.ravel()] = True
        reads.append(hit.reshape(devices, -1).mean(axis=1).max())
        loads.append(np.bincount(picked.ravel() // (count // devices), minlength=devices).max() / (rows * top_k / devices))
    share = 1 - (1 - top_k / count) ** rows
    assert float(experts.busiest_coverage(share, count, devices)) == pytest.approx(np.mean(reads), rel=0.03)
    assert float(experts.busiest_load(rows, top_k, devices, 1.0)) == pytest.approx(np.mean(loads), rel=0.05)


def test_distinct_devices_are_those_of_drawn_routing() -> None:
    random = np.random.default_rng(1)
    picked = np.argsort(random.random((4000, 256)), axis=1)[:, :8] // 16
    others = [len(set(row) - {0}) for row in picked]
    assert experts.devices_hit(8, 16) == pytest.approx(np.mean(others), rel=0.03)


def test_a_latent_cache_is_divided_by_ranks_and_not_by_tensor_parallelism(build) -> None:
    tensor, ranks = (
        api.evaluate(build("deepseek-v3", "h200-sxm", engine={**engine, **WHOLE}, **CLOSED))
        for engine in ({"tensor_parallel_size": 8}, {"data_parallel_size": 8})
    )
    assert tensor.room.kv_bytes_per_token == ranks.room.kv_bytes_per_token
    per_device = float(ranks.room.fits_sequences) / 8 * ranks.room.sequence_bytes
    assert per_device == pytest.approx(ranks.room.pool_tokens * ranks.room.kv_bytes_per_token)
    assert float(ranks.room.fits_sequences) > 3 * float(tensor.room.fits_sequences)


@pytest.mark.parametrize("size", [2, 4, 8])
def test_context_parallelism_multiplies_the_pool_and_divides_the_traffic(build, size) -> None:
    plain, dealt = (
        api.evaluate(build("deepseek-v3", "h200-sxm", engine={"tensor_parallel_size": 8, **engine}, batch=32.0, context_tokens=8000.0))
        for engine in ({}, {"decode_context_parallel_size": size})
    )
    assert dealt.room.pool_bytes == plain.room.pool_bytes
    assert dealt.room.pool_tokens == pytest.approx(size * plain.room.pool_tokens, rel=1e-3)
    d = build(
        "deepseek-v3", "h200-sxm", engine={"tensor_parallel_size": 8, "decode_context_parallel_size": size}, batch=32.0, context_tokens=8e3
    )
    assert ledgers(dealt, d).bandwidth.kv_bytes == pytest.approx(ledgers(plain, d).bandwidth.kv_bytes / size)
    assert ledgers(dealt, d).interconnect.by_kind["context"] > 0


def test_a_prompt_cut_over_devices_computes_in_their_share_of_the_time(build) -> None:
    long = {"input_tokens": 60000.0, "output_tokens": 100.0, "concurrency": 1.0}
    plain, cut = (
        api.evaluate(build("llama-3.1-70b", engine={"tensor_parallel_size": 8, "prefill_context_parallel_size": size}, **long))
        for size in (1, 4)
    )
    assert 2.0 < plain.prefill_alone_s / cut.prefill_alone_s < 4.0
    assert cut.room.pool_tokens == pytest.approx(4 * plain.room.pool_tokens, rel=1e-3)
    sent = wire.wire(cut.shard, prompt=True)["context"].bytes
    assert sent == 3 * kv_bytes_per_token(cut.shard.model, cut.shard.kv, tensor_parallel=8)


@pytest.mark.parametrize("engine", [{"tensor_parallel_size": 16}, {"data_parallel_size": 16, **WHOLE}, {"data_parallel_size": 16}])
def test_more_network_is_never_slower_and_within_the_domain_it_does_not_matter(build, engine) -> None:
    points = [
        api.evaluate(build("deepseek-v3", "h200-sxm", engine=engine, domain=8, network=rate, **CLOSED))
        for rate in (10e9, 50e9, 400e9, 1e15)
    ]
    for metric in ("tpot_s", "ttft_s"):
        assert np.all(np.diff([float(getattr(p, metric)) for p in points]) <= 1e-12)
    inside = [api.evaluate(build("deepseek-v3", "h200-sxm", engine=engine, domain=16, network=rate, **CLOSED)) for rate in (10e9, 400e9)]
    assert same(*inside)


def test_all_bytes_of_an_exchange_go_over_one_wire_or_the_other(build) -> None:
    near, far = (
        api.evaluate(build("deepseek-v3", "h200-sxm", engine={"data_parallel_size": 16, **WHOLE}, domain=domain, **CLOSED)).shard
        for domain in (None, 8)
    )
    one, two = wire.wire(near)["all_to_all"], wire.wire(far)["all_to_all"]
    assert one.network == 0.0 and one.link == pytest.approx(two.link + two.network)
    assert two.network / two.bytes == pytest.approx(8 / 15)


def test_parts_and_sum_of_a_step_are_the_same_for_ranks(build) -> None:
    d = build("qwen3-235b-a22b", "h200-sxm", engine={"tensor_parallel_size": 2, "data_parallel_size": 4, **WHOLE}, **CLOSED)
    p = api.evaluate(d)
    check(p, d)
    for batch in (1.0, 7.0, 300.0):
        assert float(np.sum(list(parts(p.cost, batch).values()))) == pytest.approx(float(step_time(p.cost, batch)))


def test_a_cap_is_one_of_each_rank(build) -> None:
    d = build("deepseek-v3", "h200-sxm", engine={"data_parallel_size": 8, **WHOLE, "max_num_seqs": 10}, **{**CLOSED, "concurrency": 1000.0})
    p = api.evaluate(d)
    assert float(p.cap) == 80.0 and p.replicas == 1


def test_levers_are_judged_on_ranks_as_on_one_device(build) -> None:
    d = build("qwen3-30b-a3b", "h100-sxm", engine={"data_parallel_size": 4, **WHOLE}, **CLOSED)
    advice = api.advise(d, draws=32)
    assert all(lever.verdict for lever in advice.levers.values())
    assert advice.operating_point.replicas == 1
    wider = replace(d, hardware=replace(d.hardware, count=8))
    assert api.evaluate(wider).replicas == 2
