"""The cache that running sequences leave over, and what repeats of a trace's compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven import reuse, traces
from breakeven.draws import MEDIAN
from breakeven.evaluator import evaluate
from breakeven.ledger import compute
from breakeven.ledger.shard import shard
from breakeven.levers import kv_quant
from breakeven.messages import text
from breakeven.spec.deployment import Deployment
from breakeven.trace import Trace, lengths, make_trace, request_rate
from breakeven.traffic.ceiling import ceiling, decode_flop
from breakeven.traffic.hits import with_hits
from breakeven.traffic.left_over import capacity_tokens, hit_rate_of, hit_rate_over, left_over_tokens, second_effect

Build = Callable[..., Deployment]


@pytest.fixture(scope="module")
def conversation(shared: Path) -> Trace:
    return traces.read(shared / "data/traces/mooncake_conversation.jsonl")


def serving(build: Build, trace: Trace, *, replicas: int = 8, **engine: object) -> Deployment:
    """The trace at its own rate and lengths."""
    found = lengths(trace)
    given = {"request_rate": request_rate(trace), "lengths": found, "input_tokens": found.mean_input, "output_tokens": found.mean_output}
    return build(replicas=replicas, engine={"enable_prefix_caching": True, **engine}, **given)


class TestLeftOver:
    def test_an_idle_replica_leaves_its_pool_and_a_full_one_less_than_a_sequence(self, build: Build) -> None:
        d = build(request_rate=5.0, input_tokens=4000, output_tokens=400)
        p = evaluate(d)
        batches = np.linspace(0, float(p.room.fits_sequences), 20)
        room, prompts = left_over_tokens(p, batches), capacity_tokens(p, batches)
        assert room[0] == prompts[0] == p.room.pool_tokens and np.all(np.diff(room) < 0)
        assert 0 <= room[-1] < 5000

    def test_prompts_have_what_is_left_over_and_their_own(self, build: Build) -> None:
        d = build(request_rate=5.0, input_tokens=4000, output_tokens=400)
        p = evaluate(d)
        assert capacity_tokens(p, 10.0) - left_over_tokens(p, 10.0) == pytest.approx(10 * 4000)

    def test_the_hit_rate_is_that_of_the_capacity_it_leaves_itself(self, build: Build, conversation: Trace) -> None:
        d = serving(build, conversation)
        curve = reuse.curve(reuse.dealt(reuse.chains(conversation, d.engine.block_size), d.replicas))
        found = hit_rate_of(d, curve)
        point = evaluate(found.deployment)
        assert found.hit_rate == pytest.approx(float(reuse.hit_rate(curve, found.capacity_tokens)), abs=1e-4)
        assert float(point.batch) == pytest.approx(float(found.point.batch))
        assert 0 < found.hit_rate < found.unbounded
        assert found.held_tokens + found.left_over_tokens == pytest.approx(found.pool_tokens)
        assert found.left_over_tokens < found.capacity_tokens < found.pool_tokens

    def test_8_bit_caches_leave_more_over_and_the_second_effect_is_a_number(self, build: Build, conversation: Trace) -> None:
        d = serving(build, conversation)
        curve = reuse.curve(reuse.dealt(reuse.chains(conversation, d.engine.block_size), d.replicas))
        found = second_effect(d, curve)
        assert found.on.pool_tokens == pytest.approx(2 * found.off.pool_tokens, rel=1e-3)
        assert found.on.left_over_tokens > 1.99 * found.off.left_over_tokens
        assert found.on.hit_rate - found.off.hit_rate > 0.01
        assert float(found.on.point.ttft_s or 0) < float(found.same_hits.ttft_s or 0)

    @pytest.mark.parametrize("replicas", [8, 12])
    @pytest.mark.parametrize("setting", ["off", "fp8"])
    def test_an_arm_has_the_hit_rate_that_its_own_deployment_comes_to(
        self, build: Build, conversation: Trace, replicas: int, setting: str
    ) -> None:
        """From the hit rate of the deployment as it stands, which is another arm's."""
        base = with_hits(serving(build, conversation, replicas=replicas), conversation)[0]
        arm = kv_quant.remove(base) if setting == "off" else kv_quant.apply(kv_quant.remove(base), setting)
        assert base.workload.reuse is not None
        curve = reuse.curve(reuse.dealt(reuse.chains(conversation, base.engine.block_size), replicas))
        own = hit_rate_of(replace(arm, workload=replace(arm.workload, reuse=None)), curve).hit_rate
        far = replace(arm, workload=replace(arm.workload, prefix_hit_rate=0.0))
        for start in (arm, far):
            assert float(evaluate(start).demand.hit_rate) == pytest.approx(own, abs=2e-3)

    def test_a_distribution_of_the_batch_is_averaged(self, build: Build, conversation: Trace) -> None:
        d = serving(build, conversation)
        curve = reuse.curve(reuse.chains(conversation, 16))
        p = evaluate(d)
        batches, weights = np.array([1.0, 300.0, 900.0]), np.array([0.5, 0.3, 0.2])
        each = [hit_rate_over(p, curve, one) for one in batches]
        assert hit_rate_over(p, curve, batches, weights) == pytest.approx(float(np.dot(each, weights)))
        assert each == sorted(each, reverse=True) and each[0] > each[-1]

    def test_no_prefix_cache_no_hits(self, build: Build, conversation: Trace) -> None:
        curve = reuse.curve(reuse.chains(conversation, 16))
        assert hit_rate_of(serving(build, conversation, enable_prefix_caching=False), curve).hit_rate == 0.0

    def test_what_does_not_fit_leaves_nothing(self, build: Build) -> None:
        d = build("llama-3.1-70b", request_rate=0.1, input_tokens=4000, output_tokens=400)
        p = evaluate(d)
        assert not p.fits and capacity_tokens(p, 1.0) == left_over_tokens(p, 1.0) == 0.0

    def test_replicas_have_caches_of_their_own(self, conversation: Trace) -> None:
        chained = reuse.chains(conversation, 512)
        shares = [reuse.curve(reuse.dealt(chained, caches)).unbounded for caches in (1, 2, 4, 8)]
        assert shares == sorted(shares, reverse=True) and shares[0] > 2 * shares[-1]


def one(prompts: list[int], outputs: list[int] | None) -> Trace:
    arrays = (np.array(prompts), None if outputs is None else np.array(outputs))
    return make_trace(Trace(name="t", form="test", arrival_s=None, input_tokens=arrays[0], output_tokens=arrays[1]))


class TestCeiling:
    def test_nothing_repeats_nothing_saved_and_everything_repeats_all_of_prefill(self, build: Build) -> None:
        d, trace = build(request_rate=1.0, input_tokens=100, output_tokens=10), one([1000, 3000], [100, 300])
        none, whole = ceiling(trace, np.array([0, 0]), d), ceiling(trace, trace.input_tokens, d)
        assert (none.tokens, none.prefill, none.total) == (0.0, 0.0, 0.0)
        assert (whole.tokens, whole.prefill) == (1.0, 1.0)
        assert whole.prefill_flop is not None and whole.decode_flop is not None
        assert whole.total == pytest.approx(whole.prefill_flop / (whole.prefill_flop + whole.decode_flop))

    def test_repeated_beginnings_are_less_of_the_compute_than_of_the_tokens(self, build: Build) -> None:
        """The first half of a prompt has a quarter of its pairs: what is cached is still attended to."""
        d, trace = build(request_rate=1.0, input_tokens=100, output_tokens=10), one([100_000], [1])
        found = ceiling(trace, np.array([50_000]), d)
        model = d.model
        linear, attention = 2.0 * compute.linear_parameters(model), compute.prefill_flop_per_token_seen(model.attention[0]) * model.layers
        whole, half = (n * linear + attention * n**2 / 2 for n in (100_000, 50_000))
        assert found.tokens == 0.5 and found.prefill == pytest.approx(half / whole) and found.prefill < 0.5

    def test_decoding_is_its_steps_one_by_one(self, build: Build) -> None:
        s = shard(build(request_rate=1.0, input_tokens=100, output_tokens=10), MEDIAN)
        model = s.model
        linear = 2.0 * (compute.linear_parameters(model) + compute.head_parameters(model))
        attention = compute.decode_flop_per_token_seen(model.attention[0]) * model.layers
        steps = sum(linear + attention * (1000 + step) for step in range(1, 64))
        assert float(decode_flop(s, 1000.0, 64.0)) == pytest.approx(steps)

    def test_splitting_a_model_over_devices_changes_no_compute(self, build: Build) -> None:
        trace = one([1000, 3000], [100, 300])
        found = [
            ceiling(trace, np.array([500, 500]), build("llama-3.1-70b", engine={"tensor_parallel_size": n}, batch=1, context_tokens=9))
            for n in (4, 8)
        ]
        assert found[0].prefill_flop == pytest.approx(found[1].prefill_flop) and found[0].total == pytest.approx(found[1].total)

    @pytest.mark.parametrize(
        "split", [{"tensor_parallel_size": 4, "pipeline_parallel_size": 2}, {"data_parallel_size": 8}, {"tensor_parallel_size": 8}]
    )
    def test_nor_does_splitting_it_over_ranks_or_stages(self, build: Build, split: dict[str, int]) -> None:
        trace, hits = one([1000, 3000], [100, 300]), np.array([500, 500])
        whole, parts = (
            ceiling(trace, hits, build("deepseek-v3", "h200", engine=engine, request_rate=1.0, input_tokens=2000, output_tokens=200))
            for engine in ({"tensor_parallel_size": 1}, split)
        )
        assert parts.prefill_flop == pytest.approx(whole.prefill_flop) and parts.decode_flop == pytest.approx(whole.decode_flop)
        assert parts.prefill == pytest.approx(whole.prefill) and parts.total == pytest.approx(whole.total)

    def test_what_cannot_be_told_is_said(self, build: Build) -> None:
        plain = ceiling(one([1000], [10]), np.array([400]))
        assert plain.tokens == 0.4 and plain.prefill is None and plain.total is None
        assert "model" in text(plain.notes[0]) and "模型" in text(plain.notes[0], "zh")
        blind = ceiling(one([1000], None), np.array([400]), build(request_rate=1.0, input_tokens=100, output_tokens=10))
        assert blind.prefill is not None and blind.total is None and len(blind.notes) == 1

    def test_the_conversation_trace_repeats_a_third_of_its_compute(self, build: Build, conversation: Trace) -> None:
        hits = reuse.hit_tokens(reuse.chains(conversation, 512))
        found = ceiling(conversation, hits, serving(build, conversation))
        assert found.total is not None and found.prefill is not None
        assert found.total < found.prefill and found.tokens == pytest.approx(0.3734, abs=1e-4)
        smaller = ceiling(conversation, reuse.hit_tokens(reuse.chains(conversation, 512), 512 * 1000), serving(build, conversation))
        assert smaller.total is not None and smaller.total < found.total / 5


@pytest.mark.parametrize("replicas", [1, 8])
def test_advise_and_profile_come_to_the_same_hit_rate(build: Build, conversation: Trace, replicas: int) -> None:
    d = serving(build, conversation, replicas=replicas)
    curve = reuse.curve(reuse.dealt(reuse.chains(conversation, d.engine.block_size), replicas))
    told, said = with_hits(d, conversation)
    assert told.workload.prefix_hit_rate == pytest.approx(hit_rate_of(d, curve).hit_rate, abs=1e-5)
    assert said[-1].values["hits"] == told.workload.prefix_hit_rate
    assert float(np.median(evaluate(told).demand.hit_rate)) == pytest.approx(told.workload.prefix_hit_rate, rel=0.01)


def test_a_hit_rate_of_the_users_own_is_not_touched(build: Build) -> None:
    """The join returns a deployment of its own; what was given stays as it was."""
    d = build(request_rate=1.0, input_tokens=1000, output_tokens=100, prefix_hit_rate=0.4, engine={"enable_prefix_caching": True})
    trace = make_trace(replace(one([64] * 3, [1] * 3), prompt_ids=np.zeros(192, dtype=np.int32), prompt_offsets=np.arange(4) * 64))
    found = hit_rate_of(d, reuse.curve(reuse.chains(trace, 16)))
    assert d.workload.prefix_hit_rate == 0.4 and found.hit_rate == pytest.approx(0.5)
