"""The operating point against queues that are known, against a plain sum over states, and against Little's law."""

from __future__ import annotations

from math import factorial, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakeven import api, steady
from breakeven.axes import standing
from breakeven.boundaries import gain_along
from breakeven.draws import MEDIAN
from breakeven.evaluator import evaluate
from breakeven.judge import arms, gain_draws
from breakeven.lumps import Lumps, held_back, lump_excess
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Acceptance, Lengths
from breakeven.steady import fast_open_loop, open_loop, places_wait

CURVES = {
    "constant": lambda b: 0.02 + 0.0 * b,
    "affine": lambda b: 0.01 + 0.0003 * b,
    "steep": lambda b: 0.002 + 0.001 * b,
    "shared": lambda b: 0.001 * b,
    "corner": lambda b: (0.008**4 + (b * 8e-5) ** 4) ** 0.25 + 0.002 + b * 2e-5,
    "mixture": lambda b: 0.004 + 0.02 * (1 - (1 - 8 / 128) ** b) + b * 5e-5,
}


def by_states(step, tau: float, rate: float, output: float, cap: int, interference: float, square: float = 1.0) -> tuple[float, float]:
    """Mean running and mean waiting, one state after another: prompts come in lumps of a geometric law; beyond the cap a geometric series.

    What crosses a level upwards, lumps that reach beyond it from any state below, is what crosses it downwards.
    """
    share = rate * interference
    excess = (1 / (1 - share) ** 2 - 1) / square
    goes_on = excess / (1 + excess)
    load = rate * output / (tau * (1 - share)) * (1 - goes_on)
    reaching, mass, total, running, full = 1.0, 1.0, 1.0, 0.0, 0.0
    for i in range(1, cap + 1):
        mass = reaching * load * step(i) / i
        reaching = goes_on * reaching + mass
        total, running, full = total + mass, running + i * mass, i * mass
        if reaching > 1e200:
            reaching, mass, total, running, full = (x / 1e200 for x in (reaching, mass, total, running, full))
    ratio = goes_on + load * step(cap) / cap
    assert ratio < 1
    waiting_mass = mass * ratio / (1 - ratio)
    total, running, full = total + waiting_mass, running + cap * waiting_mass, full + cap * waiting_mass
    held = share**2 / ((1 - share) ** 2 * (1 + share)) * (1 - full / running)
    exponential = (1 + excess * square / 2) / (1 + excess)
    return min(running / total + held, cap), exponential * mass * ratio / (1 - ratio) ** 2 / total


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(CURVES)), cap=st.sampled_from([1, 2, 7, 8, 9, 33, 256, 600]), load=st.floats(0.001, 0.995),
    tau=st.sampled_from([1.0, 2.5]), output=st.sampled_from([1.0, 200.0]), interference=st.sampled_from([0.0, 0.02, 0.2]),
    square=st.sampled_from([1.0, 2.0, 5.0]),
)  # fmt: skip
def test_the_solver_is_the_sum_over_states(name, cap, load, tau, output, interference, square) -> None:
    step = CURVES[name]
    rate = load * float(steady.max_request_rate(step(float(cap)), tau, output, float(cap), interference))
    batch, queue = by_states(step, tau, rate, output, cap, interference, square)
    found = steady.open_loop(step, tau, rate, output, float(cap), interference, Lumps(output=square))
    assert isclose(float(found.batch), batch, rel_tol=5e-3)
    assert isclose(float(found.wait_s) * rate, queue, rel_tol=2e-2, abs_tol=1e-2)
    assert isclose(float(found.tpot_s), batch / (rate * output), rel_tol=5e-3)


@pytest.mark.parametrize("cap", [1, 6, 40])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_levels_are_the_balance_of_every_state_of_a_queue_met_by_lumps(cap: int, share: float) -> None:
    """The generator of geometric lumps, exponential stays and 400 states, solved as a linear system."""
    step, size, output, interference = CURVES["steep"], 400, 50.0, 0.3
    rate = share / interference
    tau = 4.0 * rate * output * float(step(float(cap))) / cap
    excess = float(lump_excess(share, Lumps(output=2.0)))
    lumps = rate / (1 - share) / (1 + excess)
    goes_on = excess / (1 + excess)
    flow = np.zeros((size, size))
    for i in range(size):
        jumps = lumps * (1 - goes_on) * goes_on ** np.arange(size - 1 - i)
        flow[i, i + 1 :] = jumps
        if i:
            running = min(i, cap)
            flow[i, i - 1] = running * tau / (output * float(step(float(running))))
        flow[i, i] = -flow[i].sum()
    balance = np.vstack((flow.T[:-1], np.ones(size)))
    states = np.linalg.solve(balance, np.eye(size)[-1])
    counts = np.minimum(np.arange(size), cap)
    full = cap * states[cap:].sum() / (counts @ states)
    found = steady.open_loop(step, tau, rate, output, float(cap), interference, Lumps(output=2.0))
    assert float(found.batch) == pytest.approx(counts @ states + float(held_back(share)) * (1 - full), rel=2e-3)
    assert float(found.wait_s) * rate == pytest.approx((np.arange(size) - counts) @ states, rel=5e-3, abs=1e-4)


def test_caps_in_an_array_change_nothing_for_each_other() -> None:
    step, caps, loads = CURVES["steep"], np.array([1.0, 5.0, 30.0, 100.0, 300.0]), np.array([0.5, 0.97])[:, None]
    rate = loads * steady.max_request_rate(step(caps), 1.0, 200.0, caps, 0.0)
    together = steady.open_loop(step, 1.0, rate, 200.0, caps, 0.0)
    for i in range(2):
        for j, cap in enumerate(caps):
            batch, queue = by_states(step, 1.0, float(rate[i, j]), 200.0, int(cap), 0.0)
            assert isclose(together.batch[i, j], batch, rel_tol=5e-3)
            assert isclose(together.wait_s[i, j] * rate[i, j], queue, rel_tol=2e-2, abs_tol=1e-2)


@given(rate=st.floats(0.01, 20.0), output=st.floats(1.0, 500.0), step_s=st.floats(1e-3, 1e-2))
def test_a_constant_step_without_a_cap_holds_what_arrives_times_how_long_it_stays(rate, output, step_s) -> None:
    """M/G/∞: b = λ·O·t."""
    found = steady.open_loop(lambda b: step_s + 0.0 * b, 1.0, rate, output, 1e6, 0.0)
    assert isclose(float(found.batch), rate * output * step_s, rel_tol=1e-5)
    assert isclose(float(found.tpot_s), step_s, rel_tol=1e-5)
    assert float(found.wait_s) < 1e-9


@pytest.mark.parametrize("servers", [1, 2, 10, 40])
@pytest.mark.parametrize("load", [0.3, 0.8, 0.95])
def test_a_constant_step_with_a_cap_waits_as_erlang_says(servers: int, load: float) -> None:
    """M/M/c: the mean queue is C(c, a)·ρ/(1 − ρ), C by Erlang's second formula."""
    a = load * servers
    last = a**servers / factorial(servers) / (1 - load)
    erlang = last / (sum(a**i / factorial(i) for i in range(servers)) + last)
    rate = a / (0.02 * 100)
    found = steady.open_loop(lambda b: 0.02 + 0.0 * b, 1.0, rate, 100.0, float(servers), 0.0)
    assert isclose(float(found.batch), a, rel_tol=1e-6)
    assert isclose(float(found.wait_s) * rate, erlang * load / (1 - load), rel_tol=1e-5)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.97])
def test_a_step_that_grows_with_the_batch_shares_one_processor(load: float) -> None:
    """M/M/1 processor sharing: b = ρ/(1 − ρ), the time of a request is S/(1 − ρ)."""
    rate = load / (0.001 * 100)
    found = steady.open_loop(CURVES["shared"], 1.0, rate, 100.0, 2000.0, 0.0)
    assert isclose(float(found.batch), load / (1 - load), rel_tol=5e-3)
    assert isclose(float(found.tpot_s), 0.001 / (1 - load), rel_tol=5e-3)


@pytest.mark.parametrize("name", sorted(CURVES))
@pytest.mark.parametrize("cap", [1.0, 64.0])
def test_saturation_begins_at_the_greatest_rate_and_not_before(name: str, cap: float) -> None:
    step = CURVES[name]
    limit = float(steady.max_request_rate(step(cap), 1.0, 200.0, cap, 0.01))
    for solver in (steady.open_loop, steady.fast_open_loop):
        for load, expected in ((0.5, False), (0.999999, False), (1.0, True), (3.0, True)):
            found = solver(step, 1.0, limit * load, 200.0, cap, 0.01)
            assert bool(found.saturated) is expected
            assert bool(np.isinf(found.wait_s)) is expected
            assert float(found.batch) <= cap
    near = steady.open_loop(step, 1.0, limit * (1 - 1e-5), 200.0, cap, 0.01)
    assert isclose(float(near.batch), cap, rel_tol=2e-3)
    over = steady.open_loop(step, 1.0, limit * 2, 200.0, cap, 0.01)
    assert float(over.batch) == cap
    assert isclose(float(over.request_rate), limit, rel_tol=1e-12)
    assert isclose(float(over.tpot_s * over.request_rate) * 200.0, cap, rel_tol=1e-9)


def test_a_rate_that_is_sustained_is_a_full_batch_of_tokens() -> None:
    """λ_max·(O·t_step/τ + b·ξ·T_mix) = b: decode and prefill together fill the device."""
    rate = float(steady.max_request_rate(0.02, 1.5, 300.0, 64.0, 0.05))
    assert isclose(rate * (300 * 0.02 / 1.5 + 64 * 0.05), 64, rel_tol=1e-12)


REAL = [
    ("llama-3.1-8b", "h100-sxm", {}), ("llama-3.1-70b", "h100-sxm", {"tensor_parallel_size": 4}), ("qwen3-30b-a3b", "h100-sxm", {}),
    ("deepseek-v3", "h200-sxm", {"tensor_parallel_size": 8, "kv_cache_dtype": "fp8"}), ("gemma-2-9b", "a100-sxm-80", {"max_num_seqs": 64}),
    ("qwen3-32b", "h100-sxm", {"quantization": "fp8", "speculative": Speculative(method="eagle3", num_speculative_tokens=3)}),
]  # fmt: skip
ASKED = {"input_tokens": 1000.0, "output_tokens": 200.0}


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
def test_the_fast_form_is_near_the_sum_over_states(build, model, device, engine) -> None:
    from breakeven.evaluator import evaluate

    most = float(evaluate(build(model, device, engine=engine, request_rate=0.1, **ASKED)).max_request_rate)
    d = build(model, device, engine=engine, request_rate=most * np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9]), **ASKED)
    assert np.max(np.abs(evaluate(d, exact=False).tpot_s / evaluate(d).tpot_s - 1)) < 0.07


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
@pytest.mark.parametrize("share", [0.01, 0.4, 0.95])
def test_littles_law_closes_in_an_open_loop(build, model, device, engine, share) -> None:
    most = float(api.evaluate(build(model, device, engine=engine, request_rate=0.1, **ASKED)).max_request_rate)
    p = api.evaluate(build(model, device, engine=engine, request_rate=most * share, **ASKED))
    assert isclose(float(p.request_rate) * 200 * float(p.tpot_s), float(p.batch), rel_tol=1e-9)


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
@pytest.mark.parametrize("clients", [1.0, 7.0, 64.0, 5000.0])
def test_littles_law_closes_in_a_closed_loop(build, model, device, engine, clients) -> None:
    p = api.evaluate(build(model, device, engine=engine, concurrency=clients, **ASKED))
    assert isclose(float(p.request_rate) * float(p.e2e_s), clients, rel_tol=1e-9)
    assert isclose(float(p.request_rate) * 199 * float(p.tpot_s), float(p.batch), rel_tol=1e-3)
    assert float(p.batch) <= float(p.cap) + 1e-9
    assert (float(p.wait_s) > 0) == (clients > float(p.cap))


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
@pytest.mark.parametrize("output", [2.0, 16.0, 400.0])
def test_one_client_alone_waits_for_steps_of_one_sequence(build, model, device, engine, output) -> None:
    alone = api.evaluate(
        build(model, device, engine=engine, batch=1.0, input_tokens=1000.0, output_tokens=output, acceptance=Acceptance(alpha=0.7))
    )
    p = api.evaluate(
        build(model, device, engine=engine, concurrency=1.0, input_tokens=1000.0, output_tokens=output, acceptance=Acceptance(alpha=0.7))
    )
    assert isclose(float(p.tpot_s), float(alone.tpot_s), rel_tol=1e-12)
    decode = (output - 1) * float(p.tpot_s)
    assert isclose(float(p.batch), decode / (decode + float(p.ttft_s)), rel_tol=2e-4)
    assert isclose(float(p.ttft_s), float(alone.ttft_s), rel_tol=1e-12)


@pytest.mark.parametrize("clients", [2.0, 16.0, 100.0])
def test_a_closed_loop_has_settled(build, clients) -> None:
    """The fraction that the formula gives is the fraction it was given."""
    p = api.evaluate(build(concurrency=clients, **ASKED))
    decode = 199 * float(p.tpot_s)
    fraction = float(p.batch) / clients
    assert isclose(fraction, decode / (decode + float(p.ttft_s - p.wait_s)), rel_tol=1e-3)
    expected = 199 * float(p.step_s) + float(p.interference_s) * (clients - 1) * fraction
    assert isclose(decode, expected, rel_tol=1e-3)


@pytest.mark.parametrize(("model", "device", "engine"), REAL)
def test_an_idle_replica_serves_a_lone_request_as_a_batch_of_one(build, model, device, engine) -> None:
    asked = {"input_tokens": 1000.0, "output_tokens": 200.0}
    idle = api.evaluate(build(model, device, engine=engine, request_rate=1e-6, **asked))
    alone = api.evaluate(build(model, device, engine=engine, batch=1.0, **asked))
    assert isclose(float(idle.tpot_s), float(alone.tpot_s), rel_tol=1e-3)


def test_a_pinned_batch_emits_its_tokens(build) -> None:
    p = api.evaluate(build(batch=32.0, context_tokens=1000.0))
    assert isclose(float(p.throughput), 32 / float(p.tpot_s), rel_tol=1e-12)
    prompted = api.evaluate(build(batch=32.0, input_tokens=1000.0, output_tokens=200.0))
    assert float(prompted.throughput) < 32 / float(prompted.tpot_s)


def test_sakasegawas_wait_is_exact_for_one_place_and_near_the_chain_for_many() -> None:
    assert float(places_wait(np.array(0.8), np.array(1.0), np.array(2.0))) == pytest.approx(0.8 / 0.2 * 2.0)
    # M/M/16 with a constant step: the chain itself is M/M/c where every sequence is served at its own rate.
    step_s, output, cap = 0.01, 100.0, 16.0
    for load in (0.7, 0.9, 0.97):
        rate = load * cap / (step_s * output)
        exact = open_loop(lambda b: step_s + 0.0 * b, 1.0, rate, output, cap, 0.0)
        fast = fast_open_loop(lambda b: step_s + 0.0 * b, 1.0, rate, output, cap, 0.0)
        # A service takes a second here: the approximation is off by up to 2 % of one, and by 12 % where the wait is long.
        assert float(fast.wait_s) == pytest.approx(float(exact.wait_s), rel=0.12, abs=0.02)


def test_where_both_arms_are_saturated_the_waits_compare_as_what_they_can_serve(build) -> None:
    off = evaluate(build(input_tokens=1000.0, output_tokens=200.0, request_rate=1000.0))
    on = evaluate(build(engine={"quantization": "fp8"}, input_tokens=1000.0, output_tokens=200.0, request_rate=1000.0))
    assert np.all(off.saturated)
    assert np.all(on.saturated)
    found = gain_draws(off, on, "e2e")
    assert found is not None
    assert float(found) == pytest.approx(float(on.throughput / off.throughput))
    assert float(found) > 1.0


def test_a_curve_passes_through_the_gain_where_the_deployment_stands(build) -> None:
    moments = Lengths(
        requests=10, mean_input=1000.0, mean_output=200.0, mean_input_squared=2.5e6, mean_output_squared=8e4, mean_input_output=2.4e5
    )
    for engine, mode in (({}, {"request_rate": 3.0}), ({"max_num_seqs": 16}, {"request_rate": 12.0}), ({}, {"concurrency": 40.0})):
        d = build(engine=engine, input_tokens=1000.0, output_tokens=200.0, lengths=moments, **mode)
        for name, setting in (("kv_quant", "fp8"), ("weight_quant", "fp8")):
            both = arms(api.lever_named(name), d, setting, MEDIAN)
            headline = gain_draws(both.point_off, both.point_on, "e2e")
            for axis in ("context_tokens", "output_tokens", *(("request_rate",) if "request_rate" in mode else ())):
                curve = gain_along(both, axis, np.array([standing(both, axis)]), "e2e", MEDIAN)
                assert curve is not None
                assert headline is not None
                assert float(curve[0]) == pytest.approx(float(headline), rel=1e-6), (name, axis)
