"""One physics: a step of the simulation is the ledger's step, a prompt the ledger's prompt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breakeven import evaluator
from breakeven.draws import MEDIAN
from breakeven.errors import NotModelledError
from breakeven.evaluator import Noise
from breakeven.ledger import prefill
from breakeven.simulation.arrays import Load, Requests
from breakeven.simulation.costs import acceptance_of, costs_of, engine_of
from breakeven.simulation.kernel import simulate, stretch_s
from breakeven.spec.disaggregation import Disaggregation, PrefillPool
from breakeven.spec.engine import Speculative

EAGLE = Speculative(method="eagle3", num_speculative_tokens=3)
REAL = [
    ("llama-3.1-8b", "h100-sxm", {}), ("llama-3.1-70b", "h100-sxm", {"tensor_parallel_size": 4}), ("qwen3-30b-a3b", "h100-sxm", {}),
    ("deepseek-v3", "h200-sxm", {"tensor_parallel_size": 8, "kv_cache_dtype": "fp8"}), ("gemma-2-9b", "a100-sxm-80", {"max_num_seqs": 64}),
    ("gpt-oss-120b", "h100-sxm", {"pipeline_parallel_size": 2}), ("qwen3-32b", "h100-sxm", {"quantization": "fp8", "speculative": EAGLE}),
]  # fmt: skip
ASKED = {"input_tokens": 1000.0, "output_tokens": 200.0, "request_rate": 1.0}


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
def test_a_decode_step_is_the_ledgers(build, model, device, engine) -> None:
    table = costs_of(build(model, device, engine=engine, **ASKED))
    rng = np.random.default_rng(0)
    for _ in range(12):
        b, context = int(rng.integers(1, 64)), float(rng.uniform(1, 2 * table.contexts[-1]))
        point = evaluator.evaluate(build(model, device, engine=engine, batch=float(b), context_tokens=context))
        _, seconds = stretch_s(table.contexts, table.decode_s[b], context, 0.0, 1, np.inf)
        assert seconds == pytest.approx(float(point.step_s), rel=1e-9)


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
def test_prompts_are_the_ledgers_whole_and_in_chunks(build, model, device, engine) -> None:
    d = build(model, device, engine=engine, **ASKED)
    table, x = costs_of(d), evaluator.prepare(d, MEDIAN, Noise())
    s, e = x.shard, x.efficiencies
    for tokens in (1, 16, 700, 5000):
        asked = Requests(arrival_s=np.zeros(1), input_tokens=np.array([tokens]), output_tokens=np.array([1]))
        for budget in (1 << 20, 512):
            o = simulate(asked, replace(engine_of(d), token_budget=budget), table, Load())
            if budget >= tokens:
                expected = x.prompt_factor * prefill.alone_s(s, e, float(tokens), float(tokens))
                assert o.prefill_s == pytest.approx(float(expected), rel=1e-9)
        pieces = np.trapezoid(np.interp(np.arange(tokens + 1.0), table.contexts, table.attention_s))
        shared = x.prompt_factor * e.interference / s.pipeline_parallel * prefill.shared_s(s, e, float(tokens), float(tokens))
        assert tokens * table.token_s + pieces == pytest.approx(float(shared), rel=1e-6)


def test_several_ranks_share_their_prompts_and_their_experts(build) -> None:
    engine = {"tensor_parallel_size": 1, "data_parallel_size": 8, "enable_expert_parallel": True, "kv_cache_dtype": "fp8"}
    d = build("deepseek-v3", "h200-sxm", engine=engine, **ASKED)
    x, table, how = evaluator.prepare(d, MEDIAN, Noise()), costs_of(d), engine_of(d)
    assert how.cap == 8 * 256
    budget = d.engine.max_num_batched_tokens
    asked = Requests(arrival_s=np.zeros(8), input_tokens=np.full(8, budget), output_tokens=np.ones(8, dtype=np.int64))
    o = simulate(asked, how, table, Load())
    expected = x.prompt_factor * prefill.alone_s(x.shard, x.efficiencies, float(budget), float(budget), 8)
    assert o.prefill_s == pytest.approx(float(expected), rel=1e-9)


def test_what_speculation_adds_is_the_round_without_the_plain_step(build) -> None:
    engine = {"quantization": "fp8", "speculative": EAGLE}
    d, plain = (build("qwen3-32b", "h100-sxm", engine=one, **ASKED) for one in (engine, {"quantization": "fp8"}))
    table = costs_of(d)
    assert np.allclose(table.decode_s - table.speculation_s, costs_of(plain).decode_s)
    found = acceptance_of(d)
    assert len(found) == 3
    assert 1 + sum(found) == pytest.approx(float(evaluator.evaluate(d).tau))
    assert acceptance_of(plain) == ()


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
def test_the_pool_is_the_memory_ledgers(build, model, device, engine) -> None:
    d = build(model, device, engine=engine, **ASKED)
    how, space = engine_of(d), evaluator.prepare(d, MEDIAN, Noise()).room
    assert how.blocks * how.block_tokens == space.pool_tokens
    assert how.rows == (4 if "speculative" in engine else 1)


def test_two_pools_are_refused(build) -> None:
    d = build(pools=Disaggregation(prefill=PrefillPool(count=1)), **ASKED)
    with pytest.raises(NotModelledError):
        costs_of(d)
