"""Laws of what a simulation tells: counts add up, the device's time is the run, goodput is of what is served, idle levers are neutral."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import breakeven as be
from breakeven import api
from breakeven.simulation.arrays import DONE
from breakeven.simulation.result import Simulation
from breakeven.spec.deployment import Deployment
from breakeven.stats import Spread

AZURE, MOONCAKE = "data/traces/azure_2023_conv.csv", "data/traces/mooncake_conversation.jsonl"


def deployment(**changes: object) -> Deployment:
    load = {"input_tokens": 800.0, "output_tokens": 120.0, "request_rate": 4.0} | changes
    return be.Deployment(
        model=be.model("llama-3.1-8b"),
        hardware=be.hardware("h100-sxm"),
        engine=be.engine("vllm", "0.11"),
        workload=be.Workload(**load),  # type: ignore[arg-type]
        slo=be.Slo(ttft_s=0.2, tpot_s=0.02, tails=("ttft_p99_s", "itl_p50_s"), tail_limits_s=(0.5, 0.1)),
    )


def large() -> Deployment:
    return replace(
        deployment(input_tokens=None, output_tokens=None, request_rate=None),
        model=be.model("llama-3.1-70b"),
        hardware=be.hardware("h100-sxm", count=4),
        engine=be.engine("vllm", "0.11", tensor_parallel_size=4),
    )


def check_laws(found: Simulation) -> None:
    summary, outcome = found.summary, found.outcome
    counts, device = summary.counts, summary.device
    assert counts.offered == counts.done + counts.waiting + counts.running + counts.rejected
    assert counts.offered == np.count_nonzero(~np.isnan(outcome.arrival_s))
    parts = (device.prefill_s, device.decode_s, device.speculation_s, device.idle_s)
    assert min(parts) >= 0.0
    assert sum(parts) == pytest.approx(summary.end_s * found.load.replicas, rel=1e-9)
    assert summary.good is None or 0 <= summary.good <= counts.done
    assert summary.goodput_per_s is None or summary.goodput_per_s <= summary.requests_per_s
    assert 0 <= summary.hit_tokens <= summary.lookup_tokens
    assert summary.batch.mean <= summary.batch.most
    assert summary.batch.by_tokens >= summary.batch.mean * (1 - 1e-9)
    assert summary.batch.by_tokens == 0.0 or 1.0 - 1e-9 <= summary.batch.by_tokens <= summary.batch.most
    for one in summary.times.values():
        assert 0.0 <= one.p50 <= one.p90 <= one.p95 <= one.p99 <= one.max
        assert one.mean <= one.max


@settings(max_examples=25)
@given(
    rate=st.floats(0.5, 30.0),
    prompt=st.integers(1, 6000),
    output=st.integers(1, 400),
    hits=st.sampled_from([None, 0.0, 0.4, 0.95]),
    drafted=st.sampled_from([0, 3]),
    static=st.booleans(),
    replicas=st.integers(1, 3),
    router=st.sampled_from(["round_robin", "least_loaded", "prefix_aware"]),
    duration=st.sampled_from([None, 20.0]),
)
def test_any_open_load_keeps_the_laws(
    rate: float,
    prompt: int,
    output: int,
    hits: float | None,
    drafted: int,
    static: bool,
    replicas: int,
    router: str,
    duration: float | None,
) -> None:
    d = deployment(request_rate=rate, input_tokens=float(prompt), output_tokens=float(output), prefix_hit_rate=hits)
    if drafted:
        d = replace(d, engine=replace(d.engine, speculative=be.Speculative(method="ngram", num_speculative_tokens=drafted)))
    found = api.simulate(d, requests=120, replicas=replicas, router=router, static_batch=static, duration_s=duration)
    check_laws(found)
    assert found.load.replicas == replicas


@pytest.mark.parametrize("clients", [1, 7, 64])
def test_a_closed_loop_keeps_the_laws_and_never_has_more_in_flight_than_clients(clients: int) -> None:
    found = api.simulate(deployment(request_rate=None, concurrency=float(clients)), requests=300)
    check_laws(found)
    assert float((found.series.running + found.series.waiting).max()) <= clients * (1 + 1e-9)


def test_what_no_client_came_to_was_not_offered() -> None:
    found = api.simulate(deployment(request_rate=None, concurrency=8.0), requests=2000, duration_s=5.0)
    check_laws(found)
    counts = found.summary.counts
    assert 8 <= counts.offered < 2000 and counts.running + counts.waiting == 8


def test_percentiles_are_those_of_the_arrays() -> None:
    found = api.simulate(deployment(output_tokens=Spread(mean=120.0, p95=300.0)), requests=400)
    done = found.outcome.state == DONE
    ttft = (found.outcome.first_s - found.outcome.arrival_s)[done]
    told = found.summary.times["ttft"]
    assert (told.n, told.mean, told.max) == (len(ttft), ttft.mean(), ttft.max())
    assert told.p99 == np.percentile(ttft, 99)
    good = api.simulate(replace(deployment(), slo=be.Slo(ttft_s=1e-9)), requests=50).summary
    assert (good.good, good.goodput_per_s) == (0, 0.0)


def test_goodput_counts_the_requests_that_keep_every_limit() -> None:
    d = deployment(output_tokens=Spread(mean=120.0, p95=300.0), request_rate=20.0)
    times = api.simulate(d, requests=400).summary.times
    limits = {"ttft_s": times["ttft"].p90, "tpot_s": times["tpot"].p90, "e2e_s": times["e2e"].p90}
    found = api.simulate(replace(d, slo=be.Slo(**limits)), requests=400)
    o = found.outcome
    each = (
        o.first_s - o.arrival_s <= limits["ttft_s"],
        o.last_s - o.first_s <= limits["tpot_s"] * (o.emitted - 1),
        o.last_s - o.arrival_s <= limits["e2e_s"],
    )
    kept = int(np.count_nonzero(each[0] & each[1] & each[2]))
    two = [int(np.count_nonzero(each[i] & each[j])) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found.summary.good == kept < min(two), "each limit turns some away that the others let pass"
    assert found.summary.goodput_per_s == pytest.approx(kept / found.summary.end_s)


def test_promises_on_tails_are_held_against_tails_and_what_is_not_kept_is_not_told() -> None:
    found = api.simulate(deployment(), requests=200).summary
    told = {one.key: one for one in found.promises}
    assert told["ttft_p99_s"].value_s == found.times["ttft"].p99
    assert told["ttft_p99_s"].met == (found.times["ttft"].p99 <= 0.5)
    assert told["ttft_s"].value_s == found.times["ttft"].mean
    assert (told["itl_p50_s"].value_s, told["itl_p50_s"].met) == (None, None)


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    d = deployment(output_tokens=Spread(mean=120.0, p95=300.0))
    one, again, other = (api.simulate(d, requests=200, seed=seed).outcome for seed in (3, 3, 4))
    assert np.array_equal(one.last_s, again.last_s)
    assert not np.array_equal(one.last_s, other.last_s)


def test_more_than_it_can_serve_is_said_and_what_it_can_is_not() -> None:
    assert api.simulate(deployment(request_rate=200.0), requests=3000).summary.saturated
    assert not api.simulate(deployment(request_rate=2.0), requests=600).summary.saturated


def test_a_declared_share_of_hits_comes_about() -> None:
    found = api.simulate(deployment(prefix_hit_rate=0.5), requests=400).summary
    assert found.hit_rate == pytest.approx(0.5, abs=0.02)
    assert api.simulate(deployment(), requests=50).summary.hit_tokens == 0


def test_energy_is_busy_time_at_the_sheet_s_power() -> None:
    found = api.simulate(deployment(), requests=100)
    device, energy = found.summary.device, found.summary.energy
    assert energy is not None and energy.watts == found.deployment.hardware.device.tdp_watts
    assert energy.joules == pytest.approx(energy.watts * (device.prefill_s + device.decode_s + device.speculation_s))
    unknown = replace(
        found.deployment, hardware=replace(found.deployment.hardware, device=replace(be.hardware("h100-sxm").device, tdp_watts=None))
    )
    assert api.simulate(unknown, requests=20).summary.energy is None


@pytest.fixture(scope="module")
def found() -> Simulation:
    d = deployment(output_tokens=Spread(mean=120.0, p95=300.0), prefix_hit_rate=0.3)
    return api.simulate(d, requests=300, levers="all", jobs=1)


class TestLattice:
    def test_holds_every_combination_once_and_the_one_as_it_stands_is_exactly_one(self, found: Simulation) -> None:
        assert found.lattice is not None
        sets = [one.levers for one in found.lattice.combinations]
        assert len(set(sets)) == len(sets) == 2 ** len(found.lattice.levers)
        standing = [one for one in found.lattice.combinations if one.as_it_stands]
        assert len(standing) == 1 and standing[0].summary == found.summary
        assert {(one.gain, one.low, one.high) for one in standing[0].gains.values()} == {(1.0, 1.0, 1.0)}

    def test_levers_have_the_settings_that_advise_chooses(self, found: Simulation) -> None:
        assert found.lattice is not None
        advised = be.advise(found.deployment).levers
        assert {one.lever: one.setting for one in found.lattice.levers} == {
            one.lever: advised[one.lever].setting for one in found.lattice.levers
        }

    def test_a_lever_is_turned_or_has_its_reason(self, found: Simulation) -> None:
        assert found.lattice is not None
        turned = {one.lever for one in found.lattice.levers}
        assert turned | set(found.lattice.left_out) == set(api.levers())
        assert turned & set(found.lattice.left_out) == set()

    def test_the_answer_does_not_depend_on_how_many_processes_work(self, found: Simulation) -> None:
        again = api.simulate(found.deployment, requests=300, levers="all", jobs=2)
        assert again.lattice == found.lattice

    def test_a_lever_that_cannot_help_is_exactly_neutral(self) -> None:
        """A cap that never binds may be raised."""
        d = deployment()
        engine = replace(d.engine, max_num_seqs=64)
        found = api.simulate(replace(d, engine=engine), requests=200, levers=("batching",), jobs=1)
        assert found.lattice is not None
        gains = found.lattice.levers[0].gains
        assert {(one.gain, one.difference) for one in gains.values()} == {(1.0, 0.0)}


def test_the_shared_conversation_trace_keeps_the_laws(shared: Path) -> None:
    found = api.simulate(
        replace(large(), workload=be.load(file=None, flags=_flags(shared / MOONCAKE))[0].workload), shared / MOONCAKE, requests=2000
    )
    check_laws(found)
    assert found.summary.hit_tokens > 0


def test_the_shared_azure_trace_keeps_the_laws(shared: Path) -> None:
    found = api.simulate(replace(large(), workload=be.load(file=None, flags=_flags(shared / AZURE))[0].workload), shared / AZURE)
    check_laws(found)
    assert found.summary.counts.offered == 19_366
    assert found.summary.lookup_tokens == found.summary.hit_tokens == 0


def _flags(trace: Path) -> dict[str, object]:
    return {"model": "llama-3.1-70b", "hardware": "h100-sxm:4", "trace": str(trace)}
