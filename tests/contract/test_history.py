"""A day from a Prometheus server: what it kept of an engine becomes the same timeline as a live page."""

from __future__ import annotations

import numpy as np
import pytest
from prometheus_stub import Kept, Stub, engine, serving

from breakeven.endpoint import Endpoint
from breakeven.observation import history
from breakeven.observation.history import HistoryQuery
from breakeven.observation.prometheus import Server
from breakeven.observation.timeline import Series, Timeline

BASE = 1_790_000_000.0 - 1_790_000_000.0 % 86_400.0
DAY = 86_400.0


def read(stub: Stub, match: str = '{job="vllm"}', start: float = BASE, end: float = BASE + DAY, step: float | None = None) -> Timeline:
    with serving(stub):
        return history.read(Server(endpoint=Endpoint(url=stub.url)), HistoryQuery(match=match, start_s=start, end_s=end, step_s=step))


def one(timeline: Timeline, quantity: str, **told: str) -> Series:
    found = [s for s in timeline.series if s.quantity == quantity and all(getattr(s, name) == value for name, value in told.items())]
    assert len(found) == 1, [(s.source, s.rank, s.split) for s in found]
    return found[0]


def at(base: float = BASE, **told: object) -> list[Kept]:
    return engine(start=base, end=base + DAY, **told)  # type: ignore[arg-type]


def keys(timeline: Timeline) -> list[str]:
    return [note.key for note in timeline.notes]


def test_a_day_at_15_s_comes_back_reading_by_reading() -> None:
    timeline = read(Stub(at()))
    running, tokens = one(timeline, "running"), one(timeline, "output_tokens")
    assert (timeline.engine, timeline.every_s, timeline.readings, timeline.missed) == ("vllm", 15.0, 5760, 0)
    assert running.source == "10.0.0.1:8000" and set(running.values) == {20.0}
    assert tokens.values[-1] - tokens.values[0] == pytest.approx(2.0 * 100.0 * 15.0 * 5759)
    assert timeline.notes == ()


def test_scrapes_out_of_step_are_dated_when_they_were_made() -> None:
    timeline = read(Stub(at(BASE + 3.7)), end=BASE + DAY + 100)
    assert one(timeline, "running").times[0] == BASE + 3.7
    assert set(np.round(np.diff(one(timeline, "output_tokens").times), 6)) == {15.0}


def test_what_the_server_repeats_after_the_last_scrape_is_no_reading() -> None:
    kept = engine(start=BASE, end=BASE + 3600, stale=False)
    timeline = read(Stub(kept), end=BASE + 7200)
    assert timeline.end_s == kept[0].times[-1]
    assert timeline.readings == 240


@pytest.mark.parametrize("step", [0.7, 7.001, 15.001])
def test_readings_are_dated_by_their_scrapes_at_any_step(step: float) -> None:
    """A multiple of 0.7 is none in binary; a server answers in whole milliseconds."""
    kept = engine(start=BASE + 3.7, end=BASE + 1200, stale=False)
    timeline = read(Stub(kept), end=BASE + 1800, step=step)
    assert set(one(timeline, "running").times) <= set(kept[0].times) and timeline.end_s == kept[0].times[-1]


def test_scrapes_a_little_late_are_those_of_the_usual_interval() -> None:
    assert read(Stub(at(every=15.001))).every_s == 15.0
    assert read(Stub(at(every=17.0))).every_s == 17.0


def test_without_times_of_scrapes_that_is_said() -> None:
    timeline = read(Stub(engine(start=BASE, end=BASE + 3600, stale=False), no_stamps=True), end=BASE + 7200)
    assert keys(timeline) == ["history.no_stamps"]
    assert timeline.end_s - BASE == pytest.approx(3600 + 285, abs=30)


def test_a_gap_is_not_bridged_and_is_said() -> None:
    before, after = engine(start=BASE, end=BASE + 36_000), engine(start=BASE + 43_200, end=BASE + DAY)
    joined = [
        Kept(labels=a.labels, times=np.concatenate([a.times, b.times]), values=np.concatenate([a.values, b.values]))
        for a, b in zip(before, after, strict=True)
    ]
    timeline = read(Stub(joined))
    running = one(timeline, "running")
    assert np.diff(running.times).max() == pytest.approx(7215.0)
    assert keys(timeline) == ["history.gaps"]
    assert timeline.missed == pytest.approx(480, abs=1)


def test_a_restart_stays_in_the_counters() -> None:
    timeline = read(Stub(at(restarts=(BASE + 40_000.0,))))
    assert int((np.diff(one(timeline, "output_tokens").values) < 0).sum()) == 1


def test_no_query_passes_11_000_points_a_series_and_all_points_come() -> None:
    stub = Stub(at(every=5.0))
    timeline = read(stub, step=5.0)
    ranges = [asked for name, asked in stub.asked if name == "query_range"]
    assert max((float(a["end"]) - float(a["start"])) / float(a["step"]) for a in ranges) < 11_000
    assert len(ranges) > 2 and len(one(timeline, "running").times) == 17_280


def test_steps_are_aligned_so_that_two_queries_agree() -> None:
    stub = Stub(at(every=5.0))
    first = one(read(stub, start=BASE + 7.3, end=BASE + 3600, step=30.0), "running")
    again = one(read(stub, start=BASE + 11.9, end=BASE + 3600, step=30.0), "running")
    assert all(float(asked["start"]) % 30.0 == 0.0 for name, asked in stub.asked if name == "query_range")
    assert np.array_equal(first.times, again.times)


def test_the_step_is_not_finer_than_the_engine_was_scraped() -> None:
    stub = Stub(at(every=60.0))
    assert read(stub).every_s == 60.0
    assert read(stub, step=15.0).readings == 1440


def test_a_step_longer_than_the_scrapes_is_said() -> None:
    assert "history.coarse" in keys(read(Stub(at()), step=60.0))


def test_replicas_are_told_apart_by_pod_namespace_and_instance() -> None:
    kept = [*at(pod="vllm-0", namespace="a", instance="10.0.0.1:8000"), *at(pod="vllm-1", namespace="a", instance="10.0.0.2:8000")]
    assert {s.source for s in read(Stub(kept)).series} == {"a/vllm-0", "a/vllm-1"}


def test_two_engines_in_one_pod_are_told_apart_by_their_ports() -> None:
    kept = [*at(pod="p", instance="10.0.0.1:8000"), *at(pod="p", instance="10.0.0.1:8001")]
    assert {s.source for s in read(Stub(kept)).series} == {"p 10.0.0.1:8000", "p 10.0.0.1:8001"}


def test_without_labels_that_tell_replicas_apart_there_is_one_and_that_is_said() -> None:
    kept = at()
    for series in kept:
        del series.labels["instance"]
    timeline = read(Stub(kept))
    assert {s.source for s in timeline.series} == {""} and keys(timeline) == ["history.no_instance"]


def test_series_that_two_servers_scraped_count_once() -> None:
    timeline = read(Stub([*at(prometheus_replica="a"), *at(prometheus_replica="b")]))
    assert keys(timeline) == ["history.twins"]
    assert set(one(timeline, "running").values) == {20.0}


def test_ranks_stay_apart() -> None:
    kept = [*at(), *[Kept(labels={**s.labels, "engine": "1"}, times=s.times, values=s.values) for s in at()]]
    assert {s.rank for s in read(Stub(kept)).series if s.quantity == "running"} == {"0", "1"}


def test_an_engine_label_that_the_target_has_too_is_read_where_it_was_put() -> None:
    kept = at(engine="vllm", exported_engine="1")
    assert one(read(Stub(kept)), "running").rank == "1"


def test_names_with_underscores_for_colons_or_with_a_prefix_of_ray_are_known() -> None:
    kept = at()
    for series in kept:
        series.labels["__name__"] = "ray_" + series.labels["__name__"].replace(":", "_")
    assert one(read(Stub(kept)), "running").values[0] == 20.0


def test_nan_and_infinite_samples_are_no_samples() -> None:
    kept = at()
    kept[0].values[10:20] = np.nan
    kept[0].values[30] = np.inf
    assert len(one(read(Stub(kept)), "running").times) == 5760 - 11


def test_a_renamed_metric_goes_on_under_its_new_name() -> None:
    base = at()[0]
    half = len(base.times) // 2
    old = Kept(labels={**base.labels, "__name__": "vllm:gpu_cache_usage_perc"}, times=base.times[:half], values=base.values[:half] / 100)
    name = {"__name__": "vllm:kv_cache_usage_perc"}
    new = Kept(labels={**base.labels, **name}, times=base.times[half:], values=base.values[half:] / 100, stale_s=BASE + DAY)
    usage = [s for s in read(Stub([*at(), old, new])).series if s.quantity == "kv_usage"]
    assert sum(len(s.times) for s in usage) == 5760
    both = Kept(labels=old.labels, times=base.times, values=base.values / 100, stale_s=BASE + DAY)
    double = [s for s in read(Stub([*at(), both, new])).series if s.quantity == "kv_usage"]
    assert sum(len(s.times) for s in double) == 5760


def test_a_native_histogram_is_read_as_a_classic_one() -> None:
    base = at()[0]
    native = [
        {"count": f"{3 * n}", "sum": f"{0.9 * n}", "buckets": [[0, "0.1", "0.2", f"{n}"], [0, "0.4", "0.8", f"{2 * n}"]][: 1 + (n > 1)]}
        for n in range(1, len(base.times) + 1)
    ]
    histogram = Kept(
        labels={**base.labels, "__name__": "vllm:time_to_first_token_seconds"}, times=base.times, values=base.values, native=native
    )
    timeline = read(Stub([*at(), histogram]))
    buckets = {s.le: s.values[-1] for s in timeline.series if s.quantity == "ttft" and s.part == "bucket"}
    assert buckets == {0.2: 5760.0, 0.8: 17_280.0, float("inf"): 17_280.0}
    assert one(timeline, "ttft", part="sum").values[-1] == pytest.approx(0.9 * 5760)
    assert one(timeline, "ttft", part="count").values[-1] == 17_280.0


def test_a_warning_of_the_server_is_said() -> None:
    timeline = read(Stub(at(), warnings=["store gateway timed out"]))
    assert [(n.key, n.values["reason"]) for n in timeline.notes] == [("history.warning", "store gateway timed out")]


def test_the_header_is_sent_with_every_query() -> None:
    stub = Stub(at())
    with serving(stub):
        server = Server(endpoint=Endpoint(url=stub.url, headers={"Authorization": "Bearer s3cret"}))
        history.read(server, HistoryQuery(match="{}", start_s=BASE, end_s=BASE + DAY))
    assert {headers.get("Authorization") for headers in stub.headers} == {"Bearer s3cret"}


@pytest.mark.parametrize("tail", ["", "/", "/graph?g0.expr=up", "/api/v1/", "/api/v1"])
def test_the_address_may_be_that_of_a_page_of_the_server(tail: str) -> None:
    stub = Stub(at())
    with serving(stub):
        timeline = history.read(Server(endpoint=Endpoint(url=stub.url + tail)), HistoryQuery(match="{}", start_s=BASE, end_s=BASE + DAY))
    assert timeline.readings == 5760


def test_a_long_history_of_many_series_is_read_in_longer_steps() -> None:
    kept = [s for n in range(40) for s in engine(f"10.0.0.{n}:8000", start=BASE, end=BASE + DAY, every=300.0)]
    timeline = read(Stub(kept), start=BASE - 29 * DAY)
    assert timeline.every_s == 300.0 and timeline.readings == 288


def test_a_router_beside_its_engines_is_left_out_and_said() -> None:
    base = at()[0]
    router = {"__name__": "vllm:healthy_pods_total", "instance": "router:8001", "job": "vllm"}
    running = {**router, "__name__": "vllm:num_requests_running", "server": "http://10.0.0.1:8000"}
    kept = [*at(), *(Kept(labels=labels, times=base.times, values=base.values) for labels in (router, running))]
    timeline = read(Stub(kept))
    assert keys(timeline) == ["history.others"] and {s.source for s in timeline.series} == {"10.0.0.1:8000"}


def test_what_follows_from_two_metrics_is_made_over_time() -> None:
    base = at()[0]
    labels = {"instance": "a:8080", "job": "llama"}

    def kept(name: str, values: np.ndarray) -> Kept:
        return Kept(labels={"__name__": f"llamacpp:{name}", **labels}, times=base.times, values=values)

    count = np.arange(len(base.times)) + 1.0
    timeline = read(Stub([kept("n_busy_slots_per_decode", np.full(len(count), 3.0)), kept("n_decode_total", count)]), match="{}")
    assert one(timeline, "busy_sequence_steps").values[-1] == 3.0 * count[-1]


def test_a_model_that_ended_before_the_range_is_none_of_it_though_the_server_lists_it() -> None:
    before = engine("10.0.0.1:8000", start=BASE - 7200, end=BASE - 3600, model="old")
    timeline = read(Stub([*before, *at()]))
    assert timeline.readings == 5760 and set(one(timeline, "running").values) == {20.0}


def test_a_model_is_picked_by_its_name() -> None:
    stub = Stub([*at(model="a-1"), *at(instance="b:1", model='b"x')])
    for model, source in (("a-1", "10.0.0.1:8000"), ('b"x', "b:1")):
        with serving(stub):
            asked = HistoryQuery(match="{}", start_s=BASE, end_s=BASE + DAY, model=model)
            timeline = history.read(Server(endpoint=Endpoint(url=stub.url)), asked)
        assert {s.source for s in timeline.series} == {source}


def test_servers_of_any_name_that_scraped_the_same_engines_count_once() -> None:
    timeline = read(Stub([*at(prometheus_replica="prometheus-k8s-0"), *at(prometheus_replica="prometheus-k8s-1")]))
    assert set(one(timeline, "running").values) == {20.0}
