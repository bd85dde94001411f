"""The simulation's books: nothing is lost, nothing comes before its time, and shortcuts change nothing."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from simulating import constant, costs, engine, interpreted, requests

from breakeven.simulation.arrays import DONE, REJECTED, RUNNING, WAITING, Load, Outcome, Requests
from breakeven.simulation.kernel import simulate

ACCEPTANCE = (0.7, 0.5, 0.3)


@st.composite
def situations(draw):
    """Requests, an engine, costs and a load, small and of every kind."""
    n = draw(st.integers(1, 30))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    speculates, static = draw(st.booleans()), draw(st.sampled_from([False, False, False, True]))
    inputs, outputs = rng.integers(1, 60, n), rng.integers(1, 40, n)
    chain_tokens = draw(st.sampled_from([0, 4, 8]))
    cached: dict = {}
    if chain_tokens:
        counts = inputs // chain_tokens
        trees = rng.integers(0, 3, n)
        ids = [name for tree, count in zip(trees, counts, strict=True) for name in range(20 * tree, 20 * tree + count)]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        cached = {"chain_ids": np.array(ids, dtype=np.int64), "chain_offsets": offsets, "chain_tokens": chain_tokens}
    cached["priority"] = rng.integers(0, 3, n).astype(np.int8)
    asked = requests(draw(st.sampled_from([0.5, 5.0, 50.0])), inputs, outputs, seed, **cached)
    how = engine(
        cap=draw(st.integers(1, 6)),
        token_budget=draw(st.sampled_from([8, 24, 64])),
        rows=4 if speculates else 1,
        blocks=draw(st.sampled_from([20, 28, 40, 1000])),
        sequence_blocks=draw(st.sampled_from([0, 0, 1])),
        reserve_whole=draw(st.booleans()),
        mixes_prompts=draw(st.booleans()),
        prefix_cache=bool(chain_tokens),
        static_batch=static,
        policy=draw(st.sampled_from(["fcfs", "priority"])),
        max_model_len=draw(st.sampled_from([0, 80])),
    )
    load = Load(
        clients=draw(st.sampled_from([0, 0, 1, 5])),
        replicas=draw(st.sampled_from([1, 1, 2, 3])),
        router=draw(st.sampled_from(["round_robin", "least_loaded", "prefix_aware"])),
        acceptance=ACCEPTANCE if speculates else (),
        seed=seed,
        until_s=draw(st.sampled_from([float("inf"), float("inf"), 1.0])),
        bins=draw(st.sampled_from([2, 16, 512])),
    )
    start_s = draw(st.sampled_from([0.0, 0.03]))
    return asked, how, costs(how.cap, speculation=speculates, start_s=start_s), load


def covered(o: Outcome) -> np.ndarray:
    """Seconds of the run in each bin of the series."""
    edges = np.minimum(np.arange(len(o.running) + 1) * o.bin_s, o.end_s)
    return np.diff(edges)


@settings(max_examples=100)
@given(situations())
def test_every_request_and_every_block_is_accounted_for(situation) -> None:
    asked, how, price, load = situation
    o = simulate(*situation, audit=True)
    assert o.faults == 0
    counts = np.bincount(o.state, minlength=4)
    assert counts.sum() == len(asked.input_tokens)
    assert counts[RUNNING] <= how.cap * load.replicas
    if load.until_s == np.inf:
        assert counts[DONE] + counts[REJECTED] == len(o.state)
    done, begun = o.state == DONE, np.isfinite(o.start_s)
    assert np.all(o.emitted[done] == asked.output_tokens[done])
    assert np.all(o.emitted[~done] < asked.output_tokens[~done])
    assert np.all(o.arrival_s[begun] + price.start_s <= o.start_s[begun] + 1e-12)
    assert np.all(o.start_s[done] < o.first_s[done])
    assert np.all(o.first_s[done] <= o.last_s[done])
    assert np.all((o.first_s[done] == o.last_s[done]) == (asked.output_tokens[done] == 1))
    assert np.all(o.hit_tokens < asked.input_tokens + (o.preemptions > 0))
    assert np.all(begun | (o.state == WAITING) | (o.state == REJECTED))
    assert np.all(o.preemptions[o.state == REJECTED] == 0)
    assert o.hits <= o.lookups


@settings(max_examples=60)
@given(situations())
def test_time_is_spent_once_and_tokens_are_counted_once(situation) -> None:
    _, how, _, load = situation
    o = simulate(*situation)
    busy = o.prefill_s + o.decode_s + o.speculation_s
    assert busy <= load.replicas * o.end_s * (1 + 1e-9)
    assert o.batch_s.sum() == pytest.approx(load.replicas * o.end_s)
    assert o.batch_s.min() > -1e-9
    assert (o.speculation_s > 0) == (bool(load.acceptance) and o.decode_s > 0)
    if load.until_s == np.inf:
        # The step that ends a recomputed prompt gives one token, where a round gives several.
        given_back = (how.rows - 1) * o.preemptions.sum()
        assert o.batch_tokens.sum() == pytest.approx(o.emitted.sum(), abs=1e-6 + given_back)
        # Little, with every bin of the series: sequences in the system over time are the requests' stays.
        done = o.state == DONE
        stays = float((o.last_s - o.arrival_s)[done].sum())
        assert float(((o.running + o.waiting) * covered(o)).sum()) == pytest.approx(stays, rel=1e-9, abs=1e-9)
    assert np.all(o.kv_blocks + o.cached_blocks <= how.blocks * load.replicas + 1e-6)
    assert min(o.running.min(), o.waiting.min(), o.kv_blocks.min(), o.cached_blocks.min()) > -1e-6
    assert o.running.max() <= how.cap * load.replicas + 1e-9


@settings(max_examples=80)
@given(situations())
def test_a_stretch_in_closed_form_is_its_steps_one_by_one(situation) -> None:
    load = situation[3]
    # Over several replicas ties in time are broken by rounding, and a router that looks into caches sees a stretch's evictions early.
    assume(load.replicas == 1 or (load.clients == 0 and load.router != "prefix_aware"))
    jumped, stepped = simulate(*situation), simulate(*situation, stepwise=True)
    assert jumped.steps == stepped.steps
    for name in ("state", "replica", "hit_tokens", "preemptions", "emitted"):
        assert np.array_equal(getattr(jumped, name), getattr(stepped, name)), name
    for name in ("arrival_s", "start_s", "first_s", "last_s", "batch_s", "batch_tokens"):
        assert np.allclose(getattr(jumped, name), getattr(stepped, name), rtol=1e-9, atol=1e-9, equal_nan=True), name
    assert jumped.prefill_s == pytest.approx(stepped.prefill_s)
    assert jumped.speculation_s == pytest.approx(stepped.speculation_s)
    assert np.allclose(jumped.running, stepped.running, atol=1e-6)
    assert np.allclose(jumped.waiting, stepped.waiting, atol=1e-6)


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same to the last bit."""
    pairs = ((getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return all(a.tobytes() == b.tobytes() if isinstance(a, np.ndarray) else a == b for a, b in pairs)


@settings(max_examples=15)
@given(situations())
def test_compiled_and_interpreted_give_the_same_bytes(situation) -> None:
    with np.errstate(over="ignore"):
        assert same(simulate(*situation, audit=True), interpreted().simulate(*situation, audit=True))


@settings(max_examples=20)
@given(situations())
def test_the_same_seed_gives_the_same_bytes(situation) -> None:
    assert same(simulate(*situation), simulate(*situation))


def test_another_seed_gives_other_rounds_and_the_same_request_has_the_same_luck_under_every_setting() -> None:
    asked = requests(1.0, 10, np.full(200, 50))
    runs = [simulate(asked, engine(rows=4), costs(8), Load(acceptance=ACCEPTANCE, seed=seed)) for seed in (0, 1)]
    assert runs[0].steps != runs[1].steps
    how = [engine(rows=4, cap=1, token_budget=budget) for budget in (8, 64)]
    alone = [simulate(asked, each, constant(1, 0.01), Load(acceptance=ACCEPTANCE)) for each in how]
    assert np.allclose(*((run.last_s - run.first_s) for run in alone))


def test_a_round_emits_what_the_cumulative_acceptance_says_on_average() -> None:
    asked = requests(1e-3, 10, np.full(300, 2001))
    o = simulate(asked, engine(rows=4, cap=1), constant(1, 0.01), Load(acceptance=ACCEPTANCE))
    rounds = (o.last_s - o.first_s) / 0.01
    assert float(np.mean(2000 / rounds)) == pytest.approx(1 + sum(ACCEPTANCE), rel=3e-3)


def test_what_can_never_fit_is_refused_and_nothing_else() -> None:
    asked = requests(1.0, [30, 30, 41, 200], [10, 11, 1, 1])
    o = simulate(asked, engine(blocks=10), costs(8), Load())
    # The last token of an output is never put into the cache: 30 + 9 and 30 + 10 tokens fit 40, and 41 do not.
    assert o.state.tolist() == [DONE, DONE, REJECTED, REJECTED]
    limited = simulate(asked, engine(max_model_len=40), costs(8), Load())
    assert limited.state.tolist() == [DONE, REJECTED, REJECTED, REJECTED]


def test_a_full_pool_sends_the_last_admitted_back_and_its_prompt_is_computed_again() -> None:
    asked = Requests(arrival_s=np.array([0.0, 0.0]), input_tokens=np.array([16, 16]), output_tokens=np.array([20, 20]))
    o = simulate(asked, engine(blocks=12), costs(8), Load(), audit=True)
    assert o.preemptions.tolist() == [0, 1]
    assert o.state.tolist() == [DONE, DONE]
    assert o.last_s[0] < o.last_s[1]
    free = simulate(asked, engine(), costs(8), Load())
    assert o.prefill_s > free.prefill_s
    whole = simulate(asked, engine(blocks=12, reserve_whole=True), costs(8), Load())
    assert whole.preemptions.sum() == 0
    assert whole.start_s[1] >= whole.last_s[0]


def test_by_priority_the_urgent_begin_first_and_the_least_urgent_give_way() -> None:
    urgent = np.array([2, 1, 0], dtype=np.int8)
    asked = Requests(arrival_s=np.array([0.0, 0.001, 0.002]), input_tokens=np.full(3, 8), output_tokens=np.full(3, 30), priority=urgent)
    o = simulate(asked, engine(cap=1, policy="priority"), costs(8), Load())
    assert o.start_s[2] < o.start_s[1]
    fcfs = simulate(asked, engine(cap=1), costs(8), Load())
    assert fcfs.start_s[1] < fcfs.start_s[2]
    tight = simulate(asked, engine(blocks=20, policy="priority"), costs(8), Load())
    assert tight.preemptions[0] > 0
    assert tight.preemptions[2] == 0


def test_clients_of_a_closed_loop_have_one_request_each_in_flight() -> None:
    asked = requests(1.0, 20, np.random.default_rng(0).integers(1, 60, 400))
    for replicas in (1, 3):
        o = simulate(asked, engine(), costs(8), Load(clients=6, replicas=replicas, router="least_loaded"))
        moments = np.concatenate((o.arrival_s, o.last_s))
        flow = np.repeat([1, -1], len(o.last_s))[np.lexsort((np.repeat([1, 0], len(o.last_s)), moments))]
        assert np.cumsum(flow).max() <= 6
        assert np.all(np.diff(o.arrival_s) >= 0)
        assert set(o.arrival_s[6:]) <= set(o.last_s)


@pytest.mark.parametrize("router", ["round_robin", "least_loaded"])
def test_clients_of_several_replicas_wait_as_long_step_by_step(router: str) -> None:
    rng = np.random.default_rng(0)
    asked = requests(1.0, rng.integers(1, 90, 3000), rng.integers(1, 60, 3000))
    load = Load(clients=20, replicas=3, router=router)
    jumped, stepped = (simulate(asked, engine(), costs(8), load, stepwise=flag) for flag in (False, True))
    assert jumped.end_s == pytest.approx(stepped.end_s, rel=1e-3)
    assert np.mean(jumped.last_s - jumped.arrival_s) == pytest.approx(np.mean(stepped.last_s - stepped.arrival_s), rel=1e-3)


@pytest.mark.parametrize("router", ["round_robin", "least_loaded"])
def test_replicas_share_the_requests(router: str) -> None:
    asked = requests(20.0, 20, np.full(600, 30))
    one, three = (simulate(asked, engine(), costs(8), Load(replicas=n, router=router)) for n in (1, 3))
    assert np.bincount(three.replica).min() > 150
    assert np.mean(three.last_s - three.arrival_s) < np.mean(one.last_s - one.arrival_s)


def test_least_loaded_routing_takes_the_replica_with_the_fewest_outstanding() -> None:
    """Long and short by turns, so that taking turns would give every long one to the same replica."""
    asked = requests(6.0, 20, np.tile([90, 3], 200))
    o, turns = (simulate(asked, engine(cap=2), costs(2), Load(replicas=2, router=router)) for router in ("least_loaded", "round_robin"))
    for i in range(1, 400):
        outstanding = np.bincount(o.replica[:i][o.last_s[:i] > o.arrival_s[i]], minlength=2)
        assert outstanding[o.replica[i]] == outstanding.min()
    assert np.mean(o.last_s - o.arrival_s) < 0.8 * np.mean(turns.last_s - turns.arrival_s)
    assert turns.replica.tolist() == [0, 1] * 200


def test_prefix_aware_routing_hits_more_than_taking_turns() -> None:
    rng = np.random.default_rng(0)
    trees = rng.integers(0, 6, 300)
    ids = np.concatenate([np.arange(10) + 10 * tree for tree in trees])
    offsets = np.arange(301) * 10
    asked = requests(3.0, 44, np.full(300, 5), chain_ids=ids, chain_offsets=offsets, chain_tokens=4)
    aware, turns = (
        simulate(asked, engine(blocks=45, prefix_cache=True), costs(8), Load(replicas=2, router=router))
        for router in ("prefix_aware", "round_robin")
    )
    assert aware.hits > 1.2 * turns.hits


def test_a_partial_last_block_is_not_kept_even_where_it_has_an_id() -> None:
    """Ten tokens are two blocks of four and a half; the other request holds no chain and comes when the first is long gone."""
    asked = Requests(
        arrival_s=np.array([0.0, 100.0]), input_tokens=np.array([10, 3]), output_tokens=np.array([2, 2]),
        chain_ids=np.array([0, 1, 2]), chain_offsets=np.array([0, 3, 3]), chain_tokens=4,
    )  # fmt: skip
    o = simulate(asked, engine(prefix_cache=True), costs(8), Load(), audit=True)
    assert (o.faults, o.cached_blocks.max()) == (0, pytest.approx(2.0))


def test_static_batches_last_as_long_as_their_longest() -> None:
    """At a constant step time the ratio of the two times is E[max O − 1]/E[O]: a prompt rides with a step, or is alone and free."""
    cap, batches = 16, 400
    outputs = np.random.default_rng(0).geometric(0.05, cap * batches)
    asked = Requests(arrival_s=np.zeros(cap * batches), input_tokens=np.full(cap * batches, 8), output_tokens=outputs)
    static, continuous = (
        simulate(asked, engine(cap=cap, token_budget=1 << 20, static_batch=flag), constant(cap, 0.01), Load()) for flag in (True, False)
    )
    longest = (outputs.reshape(batches, cap) - 1).max(axis=1)
    assert static.end_s == pytest.approx(longest.sum() * 0.01)
    assert static.end_s / continuous.end_s == pytest.approx(longest.mean() / outputs.mean(), rel=0.02)
