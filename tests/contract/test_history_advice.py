"""The day's distribution: verdicts on a history are averaged over its windows, as those on a trace of the same day are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from prometheus_stub import Kept, Stub, engine, serving
from slot_engine import SlotEngine

from breakeven import api
from breakeven.errors import InputError
from breakeven.observation.history import HistoryQuery
from breakeven.origin.arrival_rates import arrival_rates, arrival_rates_of_windows, windows_of
from breakeven.spec.evidence import Evidence, Windowed

BASE = 1_789_948_800.0
DAY = 86_400.0
DEPLOYED: dict[str, Any] = {"file": None, "launch": None, "log": None, "catalog_dirs": ()}
FLAGS = {"model": "llama-3.1-8b", "hardware": "h100-sxm"}
INPUT, OUTPUT = 1000.0, 100.0


def busy_and_quiet(times: np.ndarray) -> np.ndarray:
    """Twelve hours at 0.2 requests a second, twelve at 8."""
    return np.where((times - BASE) % DAY < DAY / 2, 0.2, 8.0)


def day(**told: Any) -> list[Kept]:
    kept = engine(**{"start": BASE, "end": BASE + DAY, "rate": busy_and_quiet, **told})
    tokens = next(s for s in kept if s.labels["__name__"] == "vllm:generation_tokens_total")
    requests = tokens.values / OUTPUT

    def more(name: str, values: np.ndarray) -> Kept:
        return replace(tokens, labels={**tokens.labels, "__name__": name}, values=values)

    return [
        *kept,
        more("vllm:prompt_tokens_total", requests * INPUT),
        more("vllm:request_prompt_tokens_sum", requests * INPUT),
        more("vllm:request_prompt_tokens_count", requests),
        more("vllm:request_generation_tokens_sum", requests * OUTPUT),
        more("vllm:request_generation_tokens_count", requests),
        more("vllm:time_to_first_token_seconds_sum", requests * 0.2),
        more("vllm:time_to_first_token_seconds_count", requests),
        more("vllm:e2e_request_latency_seconds_sum", requests * 1.2),
        more("vllm:e2e_request_latency_seconds_count", requests),
    ]


def observed(kept: list[Kept], start: float = BASE, end: float = BASE + DAY) -> Evidence:
    with serving(Stub(kept)) as stub:
        return api.observe_history(stub.url, HistoryQuery(match="{}", start_s=start, end_s=end))


def test_windows_of_a_day_hold_its_requests_and_tokens() -> None:
    evidence = observed(day())
    windows = evidence.windows
    assert windows is not None
    assert windows.window_s == pytest.approx(300.0, rel=0.01) and len(windows.requests) in (287, 288)
    first, last = windows.requests[10], windows.requests[-10]
    assert (first / windows.window_s, last / windows.window_s) == pytest.approx((0.2, 8.0), rel=0.02)
    assert sum(windows.output_tokens) == pytest.approx(sum(windows.requests) * OUTPUT, rel=0.02)
    assert set(np.round(windows.observed, 6)) == {1.0}
    assert windows.running[10] < windows.running[-10]


def test_a_queue_that_grows_is_demand_that_was_not_served() -> None:
    kept = day(rate=lambda times: np.full(len(times), 4.0))
    waiting = next(s for s in kept if s.labels["__name__"] == "vllm:num_requests_waiting")
    waiting.values[:] = np.maximum(waiting.times - BASE - DAY / 2, 0.0) * 2.0
    windows = observed(kept).windows
    assert windows is not None
    assert windows.requests[10] / windows.window_s == pytest.approx(4.0, rel=0.02)
    assert windows.requests[-10] / windows.window_s == pytest.approx(6.0, rel=0.02)


def test_windows_in_a_gap_are_not_observed_and_do_not_count_as_quiet() -> None:
    kept = [
        replace(s, times=s.times[keep], values=s.values[keep])
        for s in day(rate=lambda times: np.full(len(times), 4.0))
        for keep in [(s.times < BASE + 20_000) | (s.times > BASE + 40_000)]
    ]
    evidence = observed(kept)
    assert evidence.windows is not None and min(evidence.windows.observed) == 0.0
    found = arrival_rates_of_windows(evidence.windows)
    assert found is None or min(found.factors) > 0.9


def without(kept: list[Kept], begin: float, end: float, anew: bool) -> list[Kept]:
    """The same without readings for a while, after which the engine went on, or began anew."""
    found = []
    for one in kept:
        keep = (one.times < begin) | (one.times >= end)
        values = one.values.copy()
        if anew and one.labels["__name__"].endswith(("_total", "_sum", "_count")):
            values[one.times >= end] -= values[np.argmax(one.times >= end)]
        found.append(replace(one, times=one.times[keep], values=values[keep]))
    return found


def steady(times: np.ndarray) -> np.ndarray:
    return np.full(len(times), 4.0)


def test_an_engine_that_went_on_behind_a_gap_was_running_and_one_that_began_anew_was_not_observed() -> None:
    gap = (BASE + 20_000.0, BASE + 41_600.0)
    went_on, anew = (observed(without(day(rate=steady), *gap, begun_anew)) for begun_anew in (False, True))
    assert went_on.seconds == pytest.approx(DAY, rel=1e-3)
    assert anew.seconds == pytest.approx(DAY - 21_600.0, rel=1e-3)
    for evidence in (went_on, anew):
        assert evidence.figures["request_rate_per_s"].value == pytest.approx(4.0, rel=1e-3)
        assert evidence.figures["running"].value == pytest.approx(40.0, rel=1e-3)
        assert any(one.key == "history.gaps" for one in evidence.warnings)


def test_pods_that_came_in_anothers_place_are_no_more_replicas() -> None:
    kept = [
        series
        for replica in range(2)
        for turn in range(3)
        for begin in [BASE + turn * DAY / 3]
        for series in day(start=begin, end=begin + DAY / 3, pod=f"vllm-{replica}-{turn}", instance=f"10.0.{turn}.{replica}:8000")
    ]
    evidence = observed(kept)
    assert evidence.replicas == 2


def test_the_rates_of_windows_are_those_of_a_trace_of_the_same_day() -> None:
    rng = np.random.default_rng(0)
    arrivals = np.sort(np.concatenate([rng.uniform(0, DAY / 2, 8640), rng.uniform(DAY / 2, DAY, 345_600), [DAY]]))
    counted = windows_of(arrivals, 300.0)
    counts = np.bincount(np.minimum((arrivals // 300.0).astype(int), 287), minlength=288)
    found = arrival_rates_of_windows(Windowed(window_s=300.0, requests=tuple(map(float, counts)), output_tokens=()))
    assert counted is not None and found is not None
    assert found.factors == pytest.approx([part.mean() for part in np.array_split(np.sort(counted[0]), 8)])
    whole = arrival_rates(arrivals)
    assert whole is not None and found.factors == pytest.approx(whole.factors, abs=0.07)


def test_windows_that_vary_by_chance_are_one_rate() -> None:
    counts = np.random.default_rng(1).poisson(100.0, 288)
    assert arrival_rates_of_windows(Windowed(window_s=300.0, requests=tuple(map(float, counts)), output_tokens=())) is None


def test_tokens_stand_in_where_an_engine_counts_no_requests() -> None:
    found = arrival_rates_of_windows(Windowed(window_s=300.0, requests=(), output_tokens=(100.0, 900.0) * 10))
    assert found is not None and min(found.factors) == pytest.approx(0.2)


def test_advice_on_a_history_is_averaged_over_the_day() -> None:
    evidence = observed(day())
    deployment, _ = api.load(**{**DEPLOYED, "flags": FLAGS, "evidence": evidence})
    assert deployment.provenance["workload.arrivals"] == "measured"
    assert deployment.workload.request_rate == pytest.approx(4.1, rel=0.01)
    advice = api.advise(deployment, draws=64)
    over_time = advice.operating_point.batch_over_time
    assert over_time is not None and over_time.p10 < over_time.p90 / 10
    flat = api.advise(replace(deployment, workload=replace(deployment.workload, arrivals=None)), draws=64)
    assert flat.operating_point.batch_over_time is None
    gains = [(advice.levers[name].metrics["tpot"].gain, flat.levers[name].metrics["tpot"].gain) for name in ("weight_quant", "kv_quant")]
    assert any(abs(averaged / at_mean - 1.0) > 0.005 for averaged, at_mean in gains if averaged and at_mean)


def test_a_history_of_llamacpp_asks_for_the_lengths_that_it_does_not_count() -> None:
    """A Prometheus server keeps the page alone, and no slots: nobody pinned the batch that is taken."""
    server, times = SlotEngine([(500, 80)] * 400), BASE + np.arange(0.0, 1200.0, 15.0)
    told: dict[str, list[float]] = {}
    for at in times:
        server.run(at - BASE)
        for line in server.page().decode().splitlines():
            name, value = line.split()
            told.setdefault(name, []).append(float(value))
    labels = {"instance": "10.0.0.1:8080", "job": "llama"}
    kept = [Kept(labels={"__name__": name, **labels}, times=times, values=np.array(values)) for name, values in told.items()]
    evidence = observed(kept, BASE, BASE + 1200.0)
    with pytest.raises(InputError, match=r"llama\.cpp counts no requests.*--input and --output.*--context") as refused:
        api.load(**{**DEPLOYED, "flags": FLAGS, "evidence": evidence})
    assert "pinned" not in str(refused.value)
    assert api.load(**{**DEPLOYED, "flags": {**FLAGS, "context": 540}, "evidence": evidence})[0].workload.context_tokens == 540.0
