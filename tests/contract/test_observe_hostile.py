"""Servers that are slow, broken, restarted, or not engines at all: reading goes on, says what it lost, and never gives a secret away."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from threading import Event, main_thread
from threading import enumerate as enumerate_threads
from urllib.parse import urlsplit

import pytest
from composed_pages import Counting, vllm
from hostile_server import endless, free_port, in_turn, serving, slowly, status, whole
from typed_observe import run

from breakeven.errors import BreakevenError, InputError, UnreachableError
from breakeven.messages import LANGUAGES, text
from breakeven.observation import scrape, window
from breakeven.observation.record import Record
from breakeven.observation.scrape import Missed, Read
from breakeven.observation.timeline import Series, Timeline

pytestmark = pytest.mark.usefixtures("english")

EVERY_S = 0.05


def read(*urls: str, readings: int = 5, every_s: float = EVERY_S, timeout_s: float = 5.0, heard: window.Heard | None = None) -> Timeline:
    """So many readings at most."""
    return window.observe(scrape.targets(urls, timeout_s=timeout_s), for_s=(readings - 1) * every_s, every_s=every_s, heard=heard)


def read_until(url: str, enough: int) -> Timeline:
    """At least so many answers, good or bad, however slow the machine; then the user ends it, which is left out of the notes."""
    heard = 0

    def count(one: Read | Missed, record: Record) -> None:
        nonlocal heard
        heard += 1
        if heard == enough:
            signal.raise_signal(signal.SIGINT)

    timeline = read(url, readings=10_000, heard=count)
    return replace(timeline, notes=tuple(note for note in timeline.notes if note.key != "observe.note_interrupted"))


def series(timeline: Timeline, quantity: str, source: str = "") -> Series:
    [found] = [one for one in timeline.series if one.quantity == quantity and source in one.source]
    return found


def notes(timeline: Timeline) -> list[str]:
    return [text(note) for note in timeline.notes]


def error_of(*urls: str, **options: float) -> str:
    with pytest.raises(BreakevenError) as caught:
        read(*urls, **options)  # type: ignore[arg-type]
    lines = [text(caught.value.message, language) for language in LANGUAGES]
    assert all(line and "\n" not in line for line in lines)
    return lines[0]


def test_readings_become_series_dated_at_the_middle_of_their_request() -> None:
    with serving({"/metrics": Counting()}) as server:
        began = scrape.now_s()
        timeline = read(f"{server.url}/metrics")
        ended = scrape.now_s()
    tokens = series(timeline, "output_tokens")
    assert timeline.engine == "vllm" and timeline.readings == len(server.asked) == len(tokens.times)
    assert list(tokens.values) == [100.0 + 10.0 * at for at in range(timeline.readings)]
    assert began < timeline.start_s <= timeline.end_s < ended and all(tokens.times[1:] > tokens.times[:-1])
    assert tokens.source == f"{server.url}/metrics" and timeline.missed == 0 and timeline.notes == ()


def test_a_reading_is_dated_at_the_middle_of_a_slow_request() -> None:
    def slow(handler: object) -> None:
        time.sleep(0.2)
        whole(vllm(1))(handler)  # type: ignore[arg-type]

    with serving({"/metrics": slow}) as server:
        [target] = scrape.targets([f"{server.url}/metrics"])
        began = scrape.now_s()
        at_s = scrape.scrape(target).at_s
        ended = scrape.now_s()
    assert began + 0.1 <= at_s <= ended - 0.1


def test_there_is_at_most_one_reading_an_interval_and_the_schedule_does_not_catch_up() -> None:
    asked: list[float] = []

    def slow(handler: object) -> None:
        asked.append(time.monotonic())
        time.sleep(0.12)
        whole(vllm(len(asked)))(handler)  # type: ignore[arg-type]

    with serving({"/metrics": slow}) as server:
        began = time.monotonic()
        timeline = read(f"{server.url}/metrics", readings=11, every_s=0.05)
        ended = time.monotonic()
    assert timeline.readings == len(asked)
    assert len(asked) <= min(11, (ended - began) / 0.12 + 1)
    assert len({int((at - began) / 0.05) for at in asked}) == len(asked) <= 5, (
        "0.5 s hold five answers of 0.12 s, each in an interval of its own"
    )


def test_a_server_that_answers_again_is_read_on_and_what_is_missing_is_told() -> None:
    answers = [whole(vllm(100)), status(500), status(503), whole(vllm(140)), whole(vllm(150))]
    with serving({"/metrics": in_turn(*answers)}) as server:
        timeline = read_until(f"{server.url}/metrics", 6)
    assert timeline.missed == 2 and list(series(timeline, "output_tokens").values[:3]) == [100.0, 140.0, 150.0]
    [lost, why] = notes(timeline)
    assert "2 readings did not come back; it was not seen for" in lost
    assert "fails (status 503)" in why


def test_a_restart_in_the_middle_is_read_through_and_told() -> None:
    answers = [
        whole(vllm(1000, started=1e9)),
        whole(vllm(1100, started=1e9)),
        status(503),
        whole(vllm(30, started=1e9 + 60)),
        whole(vllm(90, started=1e9 + 60)),
    ]
    with serving({"/metrics": in_turn(*answers)}) as server:
        timeline = read_until(f"{server.url}/metrics", 5)
    assert list(series(timeline, "output_tokens").values[:4]) == [1000.0, 1100.0, 30.0, 90.0], "as they stand on the page"
    told = notes(timeline)
    assert sum("began anew" in note and "(2 counters fell)" in note for note in told) == 1
    assert any("1 readings did not come back" in note for note in told)


def test_a_restart_that_no_counter_shows_is_told_by_the_start_of_the_process() -> None:
    with serving({"/metrics": in_turn(whole(vllm(10, started=1e9)), whole(vllm(500, started=1e9 + 9)))}) as server:
        timeline = read_until(f"{server.url}/metrics", 3)
    assert [note.key for note in timeline.notes] == ["observe.note_restart_unseen"]


def test_many_restarts_are_one_line() -> None:
    with serving({"/metrics": in_turn(*(whole(vllm(100 - at)) for at in range(10)))}) as server:
        timeline = read_until(f"{server.url}/metrics", 10)
    assert [note.key for note in timeline.notes] == ["observe.note_restarts"]


def test_two_engines_behind_one_address_are_told_apart_from_restarts() -> None:
    first, second = whole(vllm(1000, started=1e9)), whole(vllm(2000, started=1e9 + 5))
    with serving({"/metrics": in_turn(first, second, first, second)}) as server:
        timeline = read_until(f"{server.url}/metrics", 4)
    assert [note.key for note in timeline.notes] == ["observe.note_alternates"]
    assert "give the address of each engine" in notes(timeline)[0]


def test_a_server_that_dies_in_the_middle_leaves_what_it_told() -> None:
    with serving({"/metrics": in_turn(whole(vllm(100)), whole(vllm(110)), lambda handler: None)}) as server:
        timeline = read_until(f"{server.url}/metrics", 4)
    assert timeline.readings == 2 and timeline.missed >= 1
    assert "nor since" in notes(timeline)[0] and "closed before the answer was whole" in notes(timeline)[1]


def test_of_several_replicas_one_may_never_answer() -> None:
    port = free_port()
    with serving({"/metrics": Counting(first=100)}) as one, serving({"/metrics": Counting(first=900)}) as two:
        timeline = read(one.url, f"127.0.0.1:{port}", two.url)
    assert series(timeline, "output_tokens", one.url).values[0] == 100.0
    assert series(timeline, "output_tokens", two.url).values[0] == 900.0
    assert timeline.readings == one.asked.count("/metrics") + two.asked.count("/metrics")
    assert f"127.0.0.1:{port}/metrics" in error_of(f"127.0.0.1:{port}"), "the usual page is named, not the one that is looked for first"
    assert (
        notes(timeline)[0]
        == f"http://127.0.0.1:{port}: not one of {timeline.missed} readings came back; its share of the load is in no figure"
    )


def test_a_slow_replica_does_not_hold_up_the_others() -> None:
    with serving({"/metrics": Counting()}) as quick, serving({"/metrics": slowly(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.02)}) as slow:
        timeline = read(quick.url, slow.url, readings=5, timeout_s=0.3)
    assert len(series(timeline, "output_tokens", quick.url).times) >= 2
    assert f"{slow.url}: not one of" in notes(timeline)[0]


def test_the_first_failure_of_all_is_one_line_and_ends_it() -> None:
    began, before = time.monotonic(), set(enumerate_threads())
    assert "nothing listens there" in error_of(f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}", readings=1000)
    for thread in set(enumerate_threads()) - before:
        thread.join(10.0)
        assert not thread.is_alive(), "nothing is asked on"
    assert time.monotonic() - began < 20.0


def test_a_replica_is_named_once() -> None:
    with pytest.raises(InputError, match="named twice"):
        scrape.targets(["http://127.0.0.1:1", "http://127.0.0.1:1"])


def test_two_addresses_that_look_the_same_without_their_query_are_numbered() -> None:
    assert [one.source for one in scrape.targets(["http://h:1/metrics?model=a", "http://h:1/metrics?model=b"])] == [
        "http://h:1/metrics",
        "http://h:1/metrics (2)",
    ]


@pytest.mark.parametrize("elsewhere", [404, 400, 503])
def test_a_page_is_looked_for_where_engines_have_it(elsewhere: int) -> None:
    with serving({"/prometheus/metrics": Counting()}) as server:
        timeline = read(server.url)
    assert set(server.asked) == {"/prometheus/metrics"} and timeline.readings == len(server.asked)
    with serving({"/metrics": Counting(), "/prometheus/metrics": status(elsewhere)}) as server:
        timeline = read(server.url)
    assert server.asked[:3] == ["/prometheus/metrics", "/metrics", "/metrics"]
    assert server.asked.count("/prometheus/metrics") == 1 and timeline.readings == len(server.asked) - 1


def test_the_page_that_was_named_is_the_only_one_asked_for() -> None:
    with serving({"/prometheus/metrics": Counting()}) as server:
        assert "no such page" in error_of(f"{server.url}/team/metrics")
    assert server.asked == ["/team/metrics"]


@pytest.mark.parametrize("nothing", [404, 400])
@pytest.mark.parametrize("path", ["", "/metrics"])
def test_no_other_port_is_asked_where_nothing_is_and_triton_s_is_named(nothing: int, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"/metrics": status(nothing), "/prometheus/metrics": status(nothing)}
    with serving(pages) as requests:
        assert "8002" not in error_of(f"{requests.url}{path}")
        monkeypatch.setattr(scrape, "TRITON", requests.port)
        line = error_of(f"{requests.url}{path}")
        [target] = scrape.targets([requests.url])
    assert f"{requests.url}/metrics" in line and "port 8002" in line and str(nothing) in line
    assert {urlsplit(place.url).port for place in target.places} == {requests.port}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<html><body>Welcome</body></html>", "text/html"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        ("", "text/plain"),
        ("up 1\n", "text/plain"),
        ('{"a": 1}', "application/json"),
        ("{", "application/json"),
    ],
)
def test_what_is_no_page_of_an_engine_is_one_line(body: str | bytes, content_type: str) -> None:
    with serving({"/metrics": whole(body, content_type)}) as server:
        line = error_of(f"{server.url}/metrics")
    assert server.url in line and "Traceback" not in line


def test_a_page_in_the_wrong_content_type_is_read_for_what_it_is() -> None:
    with serving({"/metrics": whole(vllm(100), "application/octet-stream")}) as server:
        assert read(f"{server.url}/metrics").engine == "vllm"


def test_counters_that_are_no_numbers_are_no_samples() -> None:
    answers = [whole(vllm(100)), whole(vllm("NaN")), whole(vllm("+Inf")), whole(vllm(130))]
    with serving({"/metrics": in_turn(*answers)}) as server:
        timeline = read_until(f"{server.url}/metrics", 5)
    assert list(series(timeline, "output_tokens").values[:2]) == [100.0, 130.0]
    assert any("NaN" in note for note in notes(timeline))


def test_what_is_wrong_with_the_program_is_no_result_of_what_was_read_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[int] = []

    def breaks(found: object, further: object) -> object:
        readings.append(1)
        if len(readings) == 2:
            raise ZeroDivisionError("a fault of ours")
        return further

    monkeypatch.setattr(window.pages, "added", breaks)
    monkeypatch.setattr("threading.excepthook", lambda told: None)
    with serving({"/metrics": whole(vllm(100))}) as server, pytest.raises(ZeroDivisionError, match="a fault of ours"):
        read(f"{server.url}/metrics")


def test_a_series_that_stands_twice_counts_once() -> None:
    again = 'vllm:generation_tokens_total{engine="0",model_name="m"} 7777\n'
    with serving({"/metrics": whole(vllm(100, more=again))}) as server:
        timeline = read(f"{server.url}/metrics")
    assert set(series(timeline, "output_tokens").values) == {100.0}
    assert any("twice" in note for note in notes(timeline))


def test_ranks_of_a_replica_are_kept_apart() -> None:
    page = vllm(100) + 'vllm:generation_tokens_total{engine="1",model_name="m"} 50\n'
    with serving({"/metrics": whole(page)}) as server:
        timeline = read(f"{server.url}/metrics")
    ranks = {one.rank: float(one.values[0]) for one in timeline.series if one.quantity == "output_tokens"}
    assert sorted(ranks.values()) == [50.0, 100.0]


def test_a_page_of_two_hundred_thousand_series_is_read_in_seconds() -> None:
    many = "".join(f'python_gc_of_another{{id="{at}",path="/v1/chat/completions"}} {at}.0\n' for at in range(200_000))
    with serving({"/metrics": whole(vllm(100, more=many))}) as server:
        [target] = scrape.targets([f"{server.url}/metrics"])
        began = time.process_time()
        found = scrape.scrape(target)
        taken = time.process_time() - began
    assert [one.value for one in found.page.readings if one.quantity == "output_tokens"] == [100.0]
    assert taken < 10.0


def test_a_page_without_end_is_one_line() -> None:
    with serving({"/metrics": endless(vllm(1).encode() * 50)}) as server:
        assert "larger than" in error_of(f"{server.url}/metrics")


def test_ctrl_c_ends_it_early_and_keeps_what_was_read() -> None:
    def third(one: Read | Missed, record: Record) -> None:
        if record.readings == 3:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with serving({"/metrics": Counting()}) as server:
        began = time.monotonic()
        timeline = read(f"{server.url}/metrics", readings=10_000, heard=third)
    assert time.monotonic() - began < 30.0
    assert timeline.readings >= 3 and [note.key for note in timeline.notes] == ["observe.note_interrupted"]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_before_anything_was_read_ends_the_program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    over = Event()

    def interrupted(*_: object) -> None:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
        over.wait(30.0)
        raise UnreachableError("endpoint_closed", target="nowhere")

    monkeypatch.setattr(window, "first", interrupted)
    assert run(capsys, "http://127.0.0.1:1/metrics")[0] == 130
    over.set()


def test_the_sliding_end_of_a_record_is_its_last_seconds() -> None:
    ends: list[int] = []

    def heard(one: Read | Missed, record: Record) -> None:
        ends.append(record.timeline(2.5 * EVERY_S).readings)

    with serving({"/metrics": Counting()}) as server:
        timeline = read(f"{server.url}/metrics", readings=8, heard=heard)
    assert ends[0] == 1 and max(ends) <= 4 < timeline.readings
