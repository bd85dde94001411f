"""Laws of what is made of readings: nothing is lost or invented, whatever the order, the restarts, the ranks and the moments of reading."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_engine import Engine, Request, Watch, run

from breakeven.adapter import Alias
from breakeven.exposition.page import read
from breakeven.observation import gauges, histograms, increases
from breakeven.observation.quantities import Quantities
from breakeven.observation.summary import summarised
from breakeven.observation.timeline import Series, Timeline
from breakeven.spec.evidence import Evidence, Told

STEPS = st.lists(st.integers(0, 50), min_size=1, max_size=30)


def counter(values: list[float], *, quantity: str = "output_tokens", source: str = "a", rank: str = "", start: float = 0.0) -> Series:
    times = start + np.arange(len(values), dtype=float)
    return Series(
        quantity=quantity,
        source=source,
        rank=rank,
        alias=Alias(family=f"made:{quantity}"),
        times=times,
        values=np.array(values, dtype=float),
    )


def timeline(*some: Series) -> Timeline:
    return Timeline(
        engine="vllm",
        series=some,
        start_s=float(min(one.times[0] for one in some)),
        end_s=float(max(one.times[-1] for one in some)),
        readings=max(one.times.size for one in some),
        every_s=1.0,
    )


def evidence(made: Timeline) -> Evidence:
    return summarised(made, Told(engine="vllm"), target="made", source="live")


def load(seed: int, count: int = 120, apart: float = 0.3) -> list[Request]:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(apart, count))
    return [Request(came=float(at), prompt=int(rng.integers(10, 400)), output=int(rng.integers(2, 80))) for at in times]


@given(first=STEPS, second=STEPS, unseen=st.integers(0, 40))
def test_a_restart_loses_what_was_counted_between_the_last_reading_and_it_and_nothing_else(
    first: list[int], second: list[int], unseen: int
) -> None:
    before = np.concatenate([[100], 100 + np.cumsum(first)])
    after = np.cumsum(second)
    steps, resets = increases.increments(np.concatenate([before, after]).astype(float))
    if after[0] < before[-1]:  # else the restart cannot be seen from this counter
        assert resets == 1 and steps.sum() == sum(first) + sum(second)
    truth = sum(first) + unseen + sum(second)
    assert steps.sum() <= truth


@given(values=STEPS, restart=st.integers(1, 25), grown=st.integers(0, 500))
def test_a_counter_that_grew_past_where_it_stood_is_reset_by_the_others_of_its_server(values: list[int], restart: int, grown: int) -> None:
    at = min(restart, len(values))
    seen = [10.0] * at + [10.0 + grown] * (len(values) - at + 1)
    fallen = [[1000.0] * at + [float(i)] * (len(values) - at + 1) for i in (1, 2, 3)]
    some = [counter(seen), *(counter(one, quantity=name) for one, name in zip(fallen, ("prompt_tokens", "steps", "drafts"), strict=True))]
    q = Quantities(timeline(*some))
    assert q.rise("output_tokens") == 10.0 + grown
    assert [q.rise(name) for name in ("prompt_tokens", "steps", "drafts")] == [1.0, 2.0, 3.0]


def test_a_counter_that_falls_alone_does_not_begin_the_others_anew() -> None:
    some = [counter([1000.0 + i, 1001.0 + i], quantity=name) for i, name in enumerate(("prompt_tokens", "steps", "drafts"))]
    q = Quantities(timeline(counter([50.0, 3.0]), *some))
    assert [q.rise(name) for name in ("output_tokens", "prompt_tokens", "steps")] == [3.0, 1.0, 1.0]


@given(values=STEPS, seed=st.integers(0, 1000))
def test_the_order_and_the_repetition_of_readings_change_nothing(values: list[int], seed: int) -> None:
    series = counter(list(np.cumsum(values).astype(float)))
    rng = np.random.default_rng(seed)
    places = np.concatenate([rng.permutation(series.times.size), rng.integers(0, series.times.size, 5)])
    mixed = replace(series, times=series.times[places], values=series.values[places])
    assert Quantities(timeline(mixed)).rise("output_tokens") == Quantities(timeline(series)).rise("output_tokens")


@given(ranks=st.lists(STEPS, min_size=1, max_size=4), sources=st.integers(1, 3))
def test_ranks_and_replicas_are_added_up(ranks: list[list[int]], sources: int) -> None:
    some = [
        counter(list(np.cumsum([0, *steps]).astype(float)), source=f"s{source}", rank=str(rank))
        for source in range(sources)
        for rank, steps in enumerate(ranks)
    ]
    q = Quantities(timeline(*some))
    assert q.rise("output_tokens") == sources * sum(map(sum, ranks))
    assert (q.replicas, q.ranks) == (sources, len(ranks))


def test_a_counter_that_appears_late_has_risen_from_nothing_and_is_said() -> None:
    late = counter([7.0, 9.0], start=2.0)
    found = evidence(timeline(counter([100.0, 101.0, 102.0, 103.0], quantity="prompt_tokens"), late))
    assert found.counts["output_tokens"] == 9.0
    assert any(one.key == "observed.warn_late" and "output_tokens" in str(one.values["metrics"]) for one in found.warnings)


def test_a_counter_that_was_no_number_at_first_is_not_taken_to_begin_at_nothing() -> None:
    late = counter([700.0, 709.0], start=2.0)
    made = timeline(counter([100.0, 101.0, 102.0, 103.0], quantity="prompt_tokens"), late)
    said = read(b"vllm:generation_tokens_total NaN\nvllm:prompt_tokens_total 100\n").notes
    assert evidence(replace(made, notes=said)).counts["output_tokens"] == 9.0
    assert evidence(made).counts["output_tokens"] == 709.0


def test_what_a_server_counted_before_it_was_first_read_is_not_of_the_window() -> None:
    one, late = counter([0.0, 1.0, 2.0, 3.0]), counter([500.0, 505.0], source="b", start=2.0)
    assert evidence(timeline(one, late)).counts["output_tokens"] == 8.0


HISTOGRAM = st.lists(st.floats(0.001, 60.0), min_size=1, max_size=200)


def made_of(values: list[float], bounds: list[float]) -> histograms.Histogram:
    return histograms.histogram([(bound, float(sum(v <= bound for v in values))) for bound in bounds], sum(values), float(len(values)))


@given(first=HISTOGRAM, second=HISTOGRAM, q=st.floats(0.01, 0.99))
def test_histograms_of_unlike_bounds_never_tell_a_quantile_too_small(first: list[float], second: list[float], q: float) -> None:
    fine, coarse = [0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 100.0, inf], [0.25, 2.0, 10.0, 100.0, inf]
    both = histograms.merged([made_of(first, fine), made_of(second, coarse)])
    assert both.unlike and both.count == len(first) + len(second) and both.total == pytest.approx(sum(first) + sum(second))
    whole = made_of(first + second, sorted({*fine, *coarse}))
    assert all(mine <= theirs for mine, theirs in zip(both.counts, whole.counts, strict=True))
    told, least = histograms.quantile(both, q), histograms.quantile(whole, q)
    assert told is None or (least is not None and told >= least - 1e-9)


@given(values=HISTOGRAM, q=st.floats(0.01, 0.99))
def test_a_quantile_lies_in_the_bucket_of_the_true_one_or_is_not_told(values: list[float], q: float) -> None:
    bounds = [0.01, 0.1, 1.0, 10.0, inf]
    told = histograms.quantile(made_of(values, bounds), q)
    true = sorted(values)[min(int(np.ceil(q * len(values) - 1e-9)), len(values)) - 1]
    place = next(i for i, bound in enumerate(bounds) if true <= bound)
    if bounds[place] == inf:
        assert told is None
    else:
        assert told is not None and (bounds[place - 1] if place else 0.0) - 1e-12 <= told <= bounds[place] + 1e-12


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), every=st.floats(0.3, 7.0), emits=st.integers(1, 4))
def test_the_batch_by_latencies_is_the_true_one_within_its_interval_drafting_or_not(seed: int, every: float, emits: int) -> None:
    engine = Engine(emits=emits)
    watch = run(engine, load(seed), 45.0, every_s=every)
    found = evidence(watch.timeline())
    last = watch.pages[-1][0]
    sequences_s = engine.decoding_s
    batch = found.figures["effective_batch"]
    assert batch.how == "observed.how_little_itl" and batch.low is not None and batch.high is not None
    running = max(page["running", "", None] for _, page in watch.pages)
    assert abs(batch.value * last - sequences_s) <= running * 0.2 + 1e-6
    assert batch.low <= batch.value <= batch.high


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), warm=st.floats(0.0, 20.0))
def test_counts_of_a_window_are_those_of_the_engine_in_it(seed: int, warm: float) -> None:
    engine = Engine()
    watch = run(engine, load(seed), 60.0, every_s=2.0, warm=warm)
    first, last = watch.pages[0][1], watch.pages[-1][1]
    found = evidence(watch.timeline())
    for quantity in ("output_tokens", "prompt_tokens", "requests_finished", "steps"):
        assert found.counts.get(quantity, 0.0) == last.get((quantity, "", None), 0.0) - first.get((quantity, "", None), 0.0)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), at=st.floats(5.0, 25.0))
def test_a_restarting_engine_is_counted_but_for_what_no_reading_saw(seed: int, at: float) -> None:
    engine, every = Engine(), 1.0
    watch = run(engine, load(seed), 40.0, every_s=every, restarts=[at])
    pages = [page.get(("output_tokens", "", None), 0.0) for _, page in watch.pages]
    fell = [i for i in range(1, len(pages)) if pages[i] < pages[i - 1]]
    seen = sum(pages[i - 1] for i in fell) + pages[-1] - pages[0]
    found = evidence(watch.timeline())
    assert found.counts["output_tokens"] == seen
    assert found.figures["effective_batch"].value < 60.0


def test_estimators_agree_on_a_constant_load() -> None:
    requests = [Request(came=0.0, prompt=100, output=100_000) for _ in range(8)]
    found = evidence(run(Engine(), requests, 60.0, warm=5.0).timeline())
    for name in ("effective_batch", "batch_in_step"):
        assert [one.value for one in found.estimators[name]] == pytest.approx([8.0] * len(found.estimators[name]), rel=2e-3)
    assert found.figures["busy_share"].value == pytest.approx(1.0, abs=2e-3)
    assert found.figures["step_s"].value == pytest.approx(0.028)


def test_gauges_alias_and_counters_do_not() -> None:
    """Bursts that are over before the next reading: each 5 s of work in every 15 s, read in the pauses."""
    requests = [Request(came=15.0 * i + 1.0, prompt=10, output=100) for i in range(20) for _ in range(10)]
    engine = Engine()
    watch = run(engine, requests, 300.0, every_s=15.0)
    found = evidence(watch.timeline())
    gauge = next(one for one in found.estimators["effective_batch"] if one.sure == "sampled")
    assert gauge.value == 0.0
    assert found.figures["effective_batch"].value == pytest.approx(engine.decoding_s / 300.0, rel=1e-6)
    assert any(one.key == "observed.warn_unseen" for one in found.warnings)
    in_step, busy = found.figures["batch_in_step"].value, found.figures["busy_share"].value
    assert in_step == pytest.approx(9.9, rel=0.02) and in_step * busy == pytest.approx(found.figures["effective_batch"].value, rel=0.05)


def test_a_level_weighs_each_reading_by_its_time_and_a_lost_stretch_by_nothing() -> None:
    times = np.array([0.0, 1.0, 2.0, 102.0, 103.0])
    one = replace(counter([0.0] * 5, quantity="running"), times=times, values=np.array([4.0, 4.0, 4.0, 0.0, 0.0]))
    level = gauges.level([one])
    assert level is not None and level.mean == pytest.approx(4.0 * 3.0 / 5.0)
    assert level.weights.sum() < 10.0


def test_ranks_run_together_and_share_their_pool_by_its_blocks() -> None:
    running = [replace(counter([3.0, 3.0], quantity="running"), rank=rank) for rank in "01"]
    usage = [replace(counter([value] * 2, quantity="kv_usage"), rank=rank) for rank, value in (("0", 1.0), ("1", 0.0))]
    pool = [replace(counter([value] * 2, quantity="kv_total_tokens"), rank=rank) for rank, value in (("0", 3000.0), ("1", 1000.0))]
    found = evidence(timeline(*running, *usage, *pool))
    assert found.levels["running"].values == (6.0,)
    assert found.figures["kv_usage"].value == pytest.approx(0.75)


def test_an_idle_replica_beside_full_ones_is_said() -> None:
    watch: list[Watch] = [run(Engine(), load(seed) if seed else [], 30.0, every_s=2.0) for seed in (0, 1, 2)]
    some = [one for place, each in enumerate(watch) for one in each.series(source=f"http://engine-{place}")]
    found = evidence(timeline(*some))
    told = next(one for one in found.warnings if one.key == "observed.warn_imbalance")
    assert told.values["who"] == "http://engine-0" and found.replicas == 3


def test_a_long_observation_has_windows_that_add_up_to_it() -> None:
    found = evidence(run(Engine(), load(3, count=2000, apart=0.5), 900.0, every_s=5.0).timeline())
    assert found.windows is not None
    assert sum(found.windows.output_tokens) == pytest.approx(found.counts["output_tokens"])
    assert sum(found.windows.requests) == pytest.approx(found.counts["ttft_count"])
    mean = np.mean(found.windows.running)
    assert mean == pytest.approx(found.figures["effective_batch"].value, rel=1e-6)
    assert evidence(run(Engine(), load(3), 60.0).timeline()).windows is None


def spread(values: list[float], apart: float, part: str = "") -> Series:
    made = counter(values, quantity="itl" if part else "output_tokens")
    return replace(made, times=made.times * apart, part=part)


def test_readings_too_far_apart_for_a_window_of_four_make_none() -> None:
    """A quarter of an hour read every five minutes."""
    some = (spread([0.0, 10.0, 20.0, 30.0], 300.0), spread([0.0, 1.0, 2.0, 3.0], 300.0, "sum"))
    found = evidence(replace(timeline(*some), every_s=300.0))
    assert found.windows is None and found.seconds == 900.0


def test_two_readings_with_a_restart_between_them_were_of_no_time_at_all() -> None:
    some = (spread([100.0, 10.0], 700.0), spread([50.0, 1.0], 700.0, "sum"), spread([50.0, 1.0], 700.0, "count"))
    found = evidence(replace(timeline(*some), every_s=15.0))
    assert found.seconds == 0.0 and found.windows is not None and set(found.windows.observed) == {0.0}
