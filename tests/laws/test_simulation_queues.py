"""The simulation against queues that are known, and against the solvers of the operating point."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from simulating import constant, costs, engine, requests

from breakeven import reuse, traces
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, evaluate, prepare
from breakeven.simulation.arrays import Load, Requests
from breakeven.simulation.costs import acceptance_of, costs_of, engine_of
from breakeven.simulation.kernel import simulate
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Lengths
from breakeven.steady import open_loop

MANY = 200_000


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("lengths", ["constant", "geometric"])
def test_one_place_waits_as_pollaczek_and_khinchine_say(load: float, lengths: str) -> None:
    """W = λ·E[S²]/(2·(1 − ρ)): M/D/1 and M/G/1."""
    rng = np.random.default_rng(7)
    outputs = np.full(MANY, 11) if lengths == "constant" else 1 + rng.geometric(0.1, MANY)
    service = (outputs - 1) * 0.01
    rate = load / service.mean()
    asked = requests(rate, 8, outputs, seed=3)
    o = simulate(asked, engine(cap=1, token_budget=1 << 20), constant(1, 0.01), Load())
    expected = rate * np.mean(service**2) / (2 * (1 - load))
    assert float(np.mean(o.start_s - o.arrival_s)) == pytest.approx(expected, rel=0.03 if load < 0.7 else 0.05)


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), clients=st.integers(0, 6), factor=st.sampled_from([0.25, 0.5, 2.0]), cap=st.integers(1, 5))
def test_costs_times_a_factor_are_times_times_it_where_arrivals_do_not_come_in_time(seed, clients, factor, cap) -> None:
    rng = np.random.default_rng(seed)
    asked = replace(requests(1.0, rng.integers(1, 60, 30), rng.integers(1, 40, 30)), arrival_s=np.zeros(30))
    one, other = (simulate(asked, engine(cap=cap, blocks=40), costs(cap, scale=scale), Load(clients=clients)) for scale in (1.0, factor))
    assert np.array_equal(factor * one.last_s, other.last_s)
    assert np.array_equal(factor * one.first_s, other.first_s)


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), factor=st.floats(0.1, 0.99))
def test_with_one_place_quicker_steps_make_no_request_later(seed, factor) -> None:
    rng = np.random.default_rng(seed)
    asked = requests(3.0, rng.integers(1, 60, 60), rng.integers(1, 40, 60), seed)
    slow, fast = (simulate(asked, engine(cap=1), costs(1, scale=scale), Load()) for scale in (1.0, factor))
    assert np.all(fast.last_s <= slow.last_s + 1e-9)


def test_more_bandwidth_is_not_slower_on_average() -> None:
    rng = np.random.default_rng(0)
    asked = requests(3.0, rng.integers(1, 200, 5000), rng.integers(1, 100, 5000))
    means = []
    for scale in (1.0, 0.9, 0.7, 0.5):
        o = simulate(asked, engine(cap=32, token_budget=256), costs(32, scale=scale), Load())
        means.append(float(np.mean(o.last_s - o.arrival_s)))
    assert np.all(np.diff(means) < 0)


@pytest.mark.parametrize(("model", "device"), [("llama-3.1-8b", "h100-sxm"), ("qwen3-30b-a3b", "h100-sxm"), ("gemma-2-9b", "a100-sxm-80")])
@pytest.mark.parametrize("load", [{"request_rate": 5.0}, {"concurrency": 24.0}])
def test_a_device_of_more_bandwidth_is_not_slower(build, model, device, load) -> None:
    """The ledger's own costs: all that reads bytes is quicker, and nothing else is changed."""
    d = build(model, device, input_tokens=800.0, output_tokens=150.0, **load)
    rng, means = np.random.default_rng(0), []
    asked = requests(5.0, rng.integers(1, 1600, 3000), rng.integers(1, 300, 3000))
    for factor in (1.0, 1.1, 1.5, 3.0):
        chip = replace(d.hardware.device, bandwidth_bytes_per_s=factor * d.hardware.device.bandwidth_bytes_per_s)
        faster = replace(d, hardware=replace(d.hardware, device=chip))
        o = simulate(asked, engine_of(faster), costs_of(faster), Load(clients=int(load.get("concurrency", 0))))
        means.append((float(np.mean(o.last_s - o.arrival_s)), float(np.mean(o.last_s - o.first_s)), o.end_s))
    assert np.all(np.diff(means, axis=0)[:, :2] < 0) and np.all(np.diff(means, axis=0)[:, 2] <= 1e-9)


EAGLE = Speculative(method="eagle3", num_speculative_tokens=3)
REAL = [
    ("llama-3.1-8b", "h100-sxm", {}), ("llama-3.1-70b", "h100-sxm", {"tensor_parallel_size": 4}), ("qwen3-30b-a3b", "h100-sxm", {}),
    ("deepseek-v3", "h200-sxm", {"tensor_parallel_size": 8, "kv_cache_dtype": "fp8"}), ("gemma-2-9b", "a100-sxm-80", {"max_num_seqs": 64}),
    ("qwen3-32b", "h100-sxm", {"quantization": "fp8", "speculative": EAGLE}),
]  # fmt: skip


def settled(o, outputs) -> tuple[float, float]:
    """Time a token, and the mean batch."""
    middle = slice(len(outputs) // 10, -len(outputs) // 10)
    tpot = float(np.sum((o.last_s - o.first_s)[middle]) / np.sum(outputs[middle] - 1))
    return tpot, float(np.average(np.arange(len(o.batch_s)), weights=o.batch_s))


@pytest.mark.parametrize(("model", "device", "how"), REAL)
@pytest.mark.parametrize(
    ("prompt", "share"), [(64, 0.1), (64, 0.5), (64, 0.8), (1000, 0.1), (1000, 0.5), (1000, 0.8), (3000, 0.5), (3000, 0.8)]
)
def test_the_operating_point_is_a_long_simulation(build, model, device, how, prompt, share) -> None:
    """Prompts of 3,000 tokens at 0.8 of the greatest rate take up to six tenths of the device."""
    asked = {"input_tokens": float(prompt), "output_tokens": 200.0}
    most = float(evaluate(build(model, device, engine=how, request_rate=0.1, **asked)).max_request_rate)
    d = build(model, device, engine=how, request_rate=most * share, **asked)
    point, fast = evaluate(d), evaluate(d, exact=False)
    outputs = np.full(40_000, 200)
    o = simulate(requests(most * share, prompt, outputs, seed=1), engine_of(d), costs_of(d), Load(acceptance=acceptance_of(d)))
    tpot, batch = settled(o, outputs)
    assert tpot == pytest.approx(float(point.tpot_s), rel=0.03)
    assert batch == pytest.approx(float(point.batch), rel=0.03)
    assert tpot == pytest.approx(float(fast.tpot_s), rel=0.07)


@pytest.mark.parametrize(("model", "device", "how"), REAL)
def test_where_lengths_vary_it_is_the_operating_point_of_their_moments(build, model, device, how) -> None:
    """Log-normal prompts and outputs, at the rate that their own moments say."""
    rng = np.random.default_rng(11)
    prompts, outputs = (np.clip(rng.lognormal(np.log(mean) - 0.5, 1.0, 60_000).astype(int), 2, 7 * mean) for mean in (1000, 200))
    i, o = prompts.astype(float), outputs.astype(float)
    moments = Lengths(
        requests=len(i), mean_input=i.mean(), mean_output=o.mean(), mean_input_squared=(i * i).mean(), mean_output_squared=(o * o).mean(),
        mean_input_output=(i * o).mean(),
    )  # fmt: skip
    asked = {"input_tokens": i.mean(), "output_tokens": o.mean(), "lengths": moments}
    rate = 0.8 * float(evaluate(build(model, device, engine=how, request_rate=0.1, **asked)).max_request_rate)
    d = build(model, device, engine=how, request_rate=rate, **asked)
    arriving = requests(rate, prompts, outputs, seed=3)
    arriving = replace(arriving, arrival_s=arriving.arrival_s * (len(i) / rate / arriving.arrival_s[-1]))
    tpot, _ = settled(simulate(arriving, engine_of(d), costs_of(d), Load(acceptance=acceptance_of(d))), outputs)
    assert tpot == pytest.approx(float(evaluate(d).tpot_s), rel=0.03)
    assert tpot == pytest.approx(float(evaluate(d, exact=False).tpot_s), rel=0.07)


@pytest.mark.parametrize(("model", "device", "how"), REAL)
def test_with_prompts_spread_evenly_it_is_the_chain_without_lumps(build, model, device, how) -> None:
    """Decoding slowed by 1/(1 − ρ) throughout, and prompts for nothing: in the simulation, and in the chain."""
    asked = {"input_tokens": 1000.0, "output_tokens": 200.0}
    most = float(evaluate(build(model, device, engine=how, request_rate=0.1, **asked)).max_request_rate)
    d = build(model, device, engine=how, request_rate=most * 0.8, **asked)
    x, price, slowed = prepare(d, MEDIAN, Noise()), costs_of(d), 1 - float(evaluate(d).prefill_share)
    names = ("token_s", "alone_token_s", "alone_read_s", "alone_fixed_s")
    free = {**dict.fromkeys(names, 0.0), **dict.fromkeys(("attention_s", "alone_attention_s"), 0.0 * price.contexts)}
    even = replace(price, decode_s=price.decode_s / slowed, **free)
    arriving = requests(most * 0.8, 1000, np.full(40_000, 200), seed=1)
    o = simulate(arriving, engine_of(d), even, Load(acceptance=acceptance_of(d)))
    chain = open_loop(lambda b: x.step(b) / slowed, x.tau, most * 0.8, x.output, x.cap, 0.0)
    assert settled(o, arriving.output_tokens)[0] == pytest.approx(float(np.ravel(chain.tpot_s)[0]), rel=0.03)


def test_one_request_at_a_time_hits_as_the_reuse_curve_says(shared) -> None:
    """Prompts of whole blocks and outputs of one token, so that nothing but chained blocks takes room."""
    trace = traces.read(shared / "data" / "traces" / "mooncake_conversation.jsonl")
    chained = reuse.chains(trace, 16)
    counts = np.diff(chained.offsets)
    kept = np.flatnonzero(counts > 0)
    offsets = np.concatenate(([0], np.cumsum(counts[kept])))
    whole = replace(
        trace,
        arrival_s=None,
        input_tokens=counts[kept] * chained.block_tokens,
        output_tokens=np.ones(len(kept), dtype=np.int64),
        hash_ids=chained.ids.astype(np.int64),
        hash_offsets=offsets,
    )
    again = reuse.chains(whole, 16)
    expected = reuse.curve(again).hits
    asked = Requests(
        arrival_s=np.zeros(len(kept)),
        input_tokens=whole.input_tokens,
        output_tokens=whole.output_tokens,
        chain_ids=again.ids.astype(np.int64),
        chain_offsets=again.offsets,
        chain_tokens=again.block_tokens,
    )
    for capacity in (300, 3_000, 30_000, 200_000):
        blocks = capacity * again.block_tokens // 16
        how = engine(cap=1, token_budget=1 << 20, blocks=blocks, block_tokens=16, prefix_cache=True)
        o = simulate(asked, how, constant(1, 0.01), Load(clients=1))
        assert o.hits == again.block_tokens * int(expected[min(capacity, len(expected) - 1)])
