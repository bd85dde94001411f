"""The figures that circulate about serving, each as a test: what is right, what is half the truth, and what has the wrong sign."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import catalog
from breakeven.acceptance import Curve, tokens_per_round
from breakeven.evaluator import Point, evaluate
from breakeven.kernels import kv_kernel, weight_kernel
from breakeven.ledger import bandwidth, compute, memory
from breakeven.ledger.step import parts, smoothmax
from breakeven.rules import FEW_SEQUENCES, SMALL_SHARE, historical_speculation, rules
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Attention, Model, Parameters
from breakeven.spec.workload import Workload

LLAMA_70B = catalog.load("models", "llama-3.1-70b")
LLAMA_8B = catalog.load("models", "llama-3.1-8b")


def deployment(model: Model, device: str, tp: int = 1, engine: Engine | None = None, **workload: float) -> Deployment:
    engine = replace(engine or Engine(kv_cache_dtype="bf16", enable_prefix_caching=False), tensor_parallel_size=tp)
    return Deployment(
        model=model, hardware=Hardware(device=catalog.load("hardware", device), count=tp), engine=engine, workload=Workload(**workload)
    )


# Amortised time is not what a user waits.


@pytest.mark.parametrize(("batch", "gigabytes", "milliseconds"), [(1, 140.0, 46.7), (8, 17.5, 5.8), (64, 2.2, 0.7)])
def test_a_70b_in_16_bit_reads_140_gb_a_step_and_amortises_it_over_the_batch(batch: int, gigabytes: float, milliseconds: float) -> None:
    per_token = float(bandwidth.amortised_bytes_per_token(70e9 * 2.0, batch))
    assert round(per_token / 1e9, 1) == gigabytes
    assert round(per_token / 3e12 * 1e3, 1) == milliseconds


def test_time_per_token_rises_with_the_batch_while_the_amortised_time_falls() -> None:
    steps = [float(evaluate(deployment(LLAMA_70B, "h100-sxm", 4, batch=float(b), context_tokens=1000.0)).tpot_s) for b in (1, 8, 64)]
    assert steps == sorted(steps)
    amortised = [t / b for t, b in zip(steps, (1, 8, 64), strict=True)]
    assert amortised == sorted(amortised, reverse=True)


def test_the_catalogues_70b_is_141_gb_in_16_bit() -> None:
    kernels = dict.fromkeys(memory.counts_by_class(LLAMA_70B), weight_kernel("bf16"))
    assert memory.weight_bytes(LLAMA_70B, kernels) / 1e9 == pytest.approx(141.1, abs=0.1)


# KV of a 70B at 32,768 tokens.


def cache_gb(kv_heads: int, kernel: str) -> float:
    group = Attention(kind="full", layers=80, q_heads=64, kv_heads=kv_heads, k_dim=128, v_dim=128)
    nothing = Parameters(embedding=0, head=0, attention=0, mlp=0, experts=0, other=0)
    model = Model(name="70b", family="llama", layers=80, hidden=8192, vocabulary=1, attention=(group,), parameters=nothing)
    return float(np.asarray(memory.kv_bytes(model, kv_kernel(kernel), 32_768.0))) / 1e9


@pytest.mark.parametrize(("kv_heads", "kernel", "gigabytes"), [(8, "bf16", 10.7), (8, "fp8", 5.4), (64, "bf16", 85.9), (64, "fp8", 42.9)])
def test_the_cache_of_a_70b_at_32k(kv_heads: int, kernel: str, gigabytes: float) -> None:
    assert round(cache_gb(kv_heads, kernel), 1) == gigabytes


def test_5_2_gb_is_the_figure_in_8_bits_not_in_16() -> None:
    assert cache_gb(8, "bf16") > 2 * 5.2 > cache_gb(8, "fp8") * 1.9


def test_a_sequence_of_the_catalogues_70b_holds_the_same() -> None:
    assert float(np.asarray(memory.kv_bytes(LLAMA_70B, kv_kernel("bf16"), 32_768.0))) / 1e9 == pytest.approx(10.7, abs=0.05)


# The historical formula of speculation, and where its sign is wrong.


@pytest.mark.parametrize("alpha", [0.5, 0.6, 0.7])
def test_the_historical_formula_promises_a_gain_where_speculation_loses(alpha: float) -> None:
    c, k = 0.5, 3
    tau = float(np.asarray(tokens_per_round(Curve(decay=-np.log(alpha), exponent=1.0), k)))
    assert tau == pytest.approx((1 - alpha ** (k + 1)) / (1 - alpha))
    real = tau / (1 + k * c)
    assert historical_speculation(k, c, 1.0, 1.0) == pytest.approx(1.67, abs=0.01)
    assert real < 1.02
    assert (real < 1) == (alpha < 0.7)


def test_the_historical_formula_grows_with_a_slower_draft_and_knows_no_acceptance() -> None:
    claims = [historical_speculation(3, c, 1.0, 1.0) for c in (0.1, 0.3, 0.5)]
    assert claims == sorted(claims)
    assert [tokens_per_round(Curve(decay=-np.log(0.6), exponent=1.0), 3) / (1 + 3 * c) for c in (0.1, 0.3, 0.5)] == pytest.approx(
        [1.674, 1.145, 0.870], abs=0.001
    )


# The rules of less than four and of ten per cent.


def test_batching_settings_give_nothing_under_four_when_demand_limits() -> None:
    d = deployment(LLAMA_8B, "h100-sxm", input_tokens=1000.0, output_tokens=300.0, request_rate=1.0)
    few, more = evaluate(d), evaluate(replace(d, engine=replace(d.engine, max_num_seqs=1024)))
    assert float(few.batch) < FEW_SEQUENCES
    assert float(more.tpot_s) == pytest.approx(float(few.tpot_s), rel=1e-6)


def test_under_four_the_cap_does_matter_when_the_cap_is_what_limits() -> None:
    d = deployment(LLAMA_8B, "h100-sxm", input_tokens=1000.0, output_tokens=300.0, concurrency=32.0)
    capped = replace(d, engine=replace(d.engine, max_num_seqs=3))
    assert float(evaluate(capped).batch) < FEW_SEQUENCES
    assert float(evaluate(d).throughput) > 5 * float(evaluate(capped).throughput)


def test_under_ten_per_cent_of_memory_in_use_a_smaller_cache_gives_little_unless_it_is_read_often() -> None:
    d = deployment(LLAMA_8B, "h100-sxm", batch=1.0, context_tokens=2000.0)
    point: Point = evaluate(d)
    held = {rule.id: rule.value for rule in rules(point, d, {})}["kv_below_10_percent"]
    assert held < SMALL_SHARE
    smaller = evaluate(replace(d, engine=replace(d.engine, kv_cache_dtype="fp8")))
    assert float(point.tpot_s) / float(smaller.tpot_s) < 1 + SMALL_SHARE
    # Share of memory is not share of traffic: one long sequence holds 16 % of the card's pool and is over half of what a step reads.
    long = deployment(LLAMA_8B, "h100-sxm", batch=1.0, context_tokens=130_000.0)
    gain = float(evaluate(long).tpot_s) / float(evaluate(replace(long, engine=replace(long.engine, kv_cache_dtype="fp8"))).tpot_s)
    assert gain > 1 + SMALL_SHARE


def test_a_ten_per_cent_gain_at_half_the_bytes_needs_18_per_cent_of_the_step() -> None:
    g, r = 0.10, 0.5
    share = g / ((1 + g) * (1 - r))
    assert share == pytest.approx(0.182, abs=0.001)
    assert 1 / (1 - share * (1 - r)) == pytest.approx(1 + g)


def test_the_evaluators_cache_gain_follows_the_share_of_the_step() -> None:
    """In the limit that the rule is of: bytes alone change, at the same share of bandwidth and no penalty of a kernel."""
    bytes_alone = {"kv.int8.phi": 1.0, "kv.int8.layer_s": 0.0}
    d = deployment(LLAMA_8B, "h100-sxm", batch=8.0, context_tokens=8000.0)
    d = replace(d, calibration=Calibration(values=bytes_alone))
    int8 = replace(d, engine=replace(d.engine, kv_cache_dtype="int8"))
    off, on = evaluate(d), evaluate(int8)
    share = float(np.asarray(parts(off.cost, off.batch)["attention"])) / float(off.step_s)
    r = kv_kernel("int8").bytes / kv_kernel("bf16").bytes
    assert float(off.step_s) / float(on.step_s) == pytest.approx(1 / (1 - share * (1 - r)), rel=0.01)


# Ridge points, and where weight-only kernels stop paying.


@pytest.mark.parametrize(
    ("device", "ridge", "crossover"),
    [
        ("a100-sxm-80", 153, 115), ("h100-sxm", 295, 221), ("h200-sxm", 206, 155), ("h20-96", 37, 28), ("l40s", 419, 314),
        ("rtx-4090", 164, 123), ("rtx-a6000", 202, 151), ("rtx-5090", 117, 87), ("b200-sxm", 293, 219),
    ],
)  # fmt: skip
def test_ridge_points_and_crossover_batches(device: str, ridge: int, crossover: int) -> None:
    d = catalog.load("hardware", device)
    f, bw = d.matmul_flops["bf16"], d.bandwidth_bytes_per_s
    assert compute.ridge_rows(f, 1.0, 2.0, bw, 1.0) == pytest.approx(ridge, abs=1)
    assert compute.ridge_rows(f, 0.6, 2.0, bw, 0.8) == pytest.approx(crossover, abs=1.5)


@pytest.mark.parametrize("delta", [2.5, 5.0, 11.1])
def test_a_weight_only_kernel_stops_paying_at_the_ridge_over_its_overhead(delta: float) -> None:
    """b× = F·m/(BW·η·δ): there the slower product takes as long as reading 16-bit weights."""
    d = catalog.load("hardware", "a100-sxm-80")
    f, bw = 0.6 * d.matmul_flops["bf16"], 0.8 * d.bandwidth_bytes_per_s
    rows = np.geomspace(1, 1000, 4000)
    full = smoothmax(np.full_like(rows, 2.0 / bw), 2 * rows / f)
    small = smoothmax(np.full_like(rows, 0.53 / bw), 2 * rows * delta / f)
    found = rows[np.flatnonzero(small < full)[-1]]
    assert found == pytest.approx(compute.ridge_rows(f, 1.0, 2.0, bw, 1.0) / delta, rel=0.03)


# Counters and accounts that reports got wrong.


def test_acceptance_counters_of_a_report() -> None:
    drafts, drafted, accepted, k = 4816, 33_712, 12_208, 7
    assert drafted == k * drafts
    assert 1 + accepted / drafts == pytest.approx(3.53, abs=0.01)
    assert accepted / drafted == pytest.approx(0.362, abs=0.001)


def test_cumulative_acceptance_adds_up_to_the_length() -> None:
    # A multi-token head at k = 8 on GSM8K: read as conditional the same eight numbers would give 2.63.
    p = (0.762, 0.616, 0.513, 0.424, 0.364, 0.309, 0.272, 0.237)
    assert float(np.asarray(tokens_per_round(Curve(decay=0.1, exponent=1.0, measured=p), 8))) == pytest.approx(4.50, abs=0.01)
    assert 1 + float(np.cumprod(p).sum()) == pytest.approx(2.63, abs=0.01)


@pytest.mark.parametrize(("tokens_per_s", "tpot_s", "running"), [(13_127.0, 0.0366, 480.0), (192.0 * 8, 1 / 44.6, 34.0)])
def test_littles_law_tells_how_many_were_really_running(tokens_per_s: float, tpot_s: float, running: float) -> None:
    assert tokens_per_s * tpot_s == pytest.approx(running, abs=1)


def test_gpt_oss_caches_all_36_layers_in_the_engine_and_its_window_halves_what_is_read() -> None:
    model = catalog.load("models", "gpt-oss-120b")
    assert memory.kv_bytes_per_token(model, kv_kernel("bf16")) == 73_728
    far, near = (float(np.asarray(memory.kv_bytes(model, kv_kernel("bf16"), c))) for c in (100_001.0, 100_000.0))
    assert far - near == pytest.approx(36_864, abs=1)


def test_the_pool_of_a_report_holds_what_it_said() -> None:
    # 77,088 tokens for 72 running sequences of an A10G: 1,071 tokens each.
    assert pytest.approx(1071, abs=1) == 77_088 / 72
    qwen = deployment(catalog.load("models", "qwen2.5-7b"), "a10g", input_tokens=1000.0, output_tokens=142.0, concurrency=256.0)
    assert float(np.median(evaluate(qwen).room.fits_sequences)) == pytest.approx(72, rel=0.35)


def test_fp8_cache_breaks_even_near_7000_tokens_on_one_h100() -> None:
    # Llama 3.1 8B, vLLM 0.19.1, one stream: 6.44 ms + 4.37e-5 ms a token against 6.58 + 2.37e-5.
    contexts = np.geomspace(100, 100_000, 2000)
    off = deployment(LLAMA_8B, "h100-sxm", engine=Engine(version="0.19", kv_cache_dtype="bf16"), batch=1.0, context_tokens=contexts)
    on = replace(off, engine=replace(off.engine, kv_cache_dtype="fp8"))
    gain = np.asarray(evaluate(off).tpot_s) / np.asarray(evaluate(on).tpot_s)
    assert 3_800 < contexts[np.flatnonzero(gain < 1)[-1]] < 8_000
    # The shared fit has one share of bandwidth and one cost a layer for all engines: 13 % slow here (6.44 ms at 4.37e-5 ms a token).
    assert float(np.asarray(evaluate(off).tpot_s)[0]) * 1e3 == pytest.approx(6.44, rel=0.16)
