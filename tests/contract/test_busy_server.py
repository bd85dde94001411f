"""A server that takes connections and is too busy to give its first page is waited for; one that is not there is not."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from composed_pages import Counting, vllm
from hostile_server import Answering, Handler, free_port, in_turn, serving, slowly, status, whole
from telling_engine import Stub
from telling_engine import serving as telling

from breakeven import cli
from breakeven.endpoint import Endpoint, get
from breakeven.errors import BreakevenError, UnreachableError
from breakeven.messages import LANGUAGES, text
from breakeven.observation import scrape, window
from breakeven.observation.timeline import Timeline

MUTE = slowly(b"", b"", 0.02)
TIMEOUT_S = 0.2


def late(seconds: float, then: Answering) -> Answering:
    def answer(handler: Handler) -> None:
        if not handler.state.over.wait(seconds):
            then(handler)

    return answer


def read(*urls: str, for_s: float = 0.4, every_s: float = 0.05, patience_s: float = 20.0) -> Timeline:
    return window.observe(scrape.targets(urls, timeout_s=TIMEOUT_S), for_s=for_s, every_s=every_s, patience_s=patience_s)


def refused(*urls: str, **options: float) -> str:
    with pytest.raises(UnreachableError) as caught:
        read(*urls, **options)
    lines = [text(caught.value.message, language) for language in LANGUAGES]
    assert all(line and "\n" not in line for line in lines)
    return lines[0]


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short times, as they are typed nowhere."""
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setattr(scrape, "targets", partial(scrape.targets, timeout_s=TIMEOUT_S))
    monkeypatch.setattr(window, "observe", partial(window.observe, patience_s=1.5))


@contextmanager
def dropping() -> Iterator[str]:
    """An address where a connection neither comes about nor is refused: what listens there has no room for one more."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in (first, second):
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield f"http://127.0.0.1:{full.getsockname()[1]}"


def test_a_first_page_that_is_late_is_waited_for_and_the_window_begins_with_it() -> None:
    with serving({"/metrics": in_turn(MUTE, MUTE, Counting())}) as server:
        began = time.monotonic()
        timeline = read(f"{server.url}/metrics", for_s=1.0)
    assert time.monotonic() - began > 2 * TIMEOUT_S + 1.0
    assert timeline.readings >= 2 and timeline.end_s - timeline.start_s > 0.1
    assert timeline.missed >= 2 and [note.key for note in timeline.notes] == ["observe.note_missed", scrape.BUSY]


def test_a_busy_server_is_given_more_time_and_not_asked_more_often() -> None:
    with serving({"/metrics": late(0.5, Counting())}) as server:
        timeline = read(f"{server.url}/metrics", for_s=1.0)
        asked = len(server.asked)
    assert timeline.readings >= 2 and timeline.missed <= 2 and asked <= 6


def test_no_answer_is_given_more_than_a_minute_or_than_is_left() -> None:
    [target] = scrape.targets(["http://h/metrics"], timeout_s=10.0)
    times = []
    for left_s in (300.0, 300.0, 300.0, 15.0):
        target = scrape.patient(target, left_s)
        times.append(target.places[0].timeout_s)
    assert times == [20.0, 40.0, 60.0, 60.0]
    assert scrape.patient(scrape.targets(["http://h/metrics"], timeout_s=10.0)[0], 3.0).places[0].timeout_s == 10.0


def test_a_server_that_never_answers_ends_with_the_window_in_one_line_that_says_how_often_it_was_asked() -> None:
    with serving({"/metrics": MUTE}) as server:
        began = time.monotonic()
        line = refused(f"{server.url}/metrics", for_s=1.0, patience_s=0.0)
        assert 0.9 < time.monotonic() - began < 10.0
        asked = len(server.asked)
    assert line.startswith(f"{server.url}/metrics: takes connections and gave no page in 1.") and f"({asked} times asked)" in line


def test_a_short_window_is_no_reason_to_give_up_at_the_first_answer_that_is_late() -> None:
    with serving({"/metrics": MUTE}) as server:
        began = time.monotonic()
        refused(f"{server.url}/metrics", for_s=0.1, patience_s=0.8)
        assert time.monotonic() - began > 0.7


def test_a_server_that_dies_while_it_is_waited_for_is_not_waited_for_any_longer() -> None:
    with serving({"/metrics": in_turn(MUTE, status(503))}) as server:
        began = time.monotonic()
        assert "fails (status 503)" in refused(f"{server.url}/metrics", for_s=60.0)
    assert time.monotonic() - began < 30.0


def test_of_two_servers_the_busy_one_is_waited_for_though_the_other_is_not_there() -> None:
    with serving({"/metrics": in_turn(MUTE, Counting())}) as server:
        timeline = read(f"http://127.0.0.1:{free_port()}", f"{server.url}/metrics")
    assert timeline.readings >= 2 and {one.source for one in timeline.series} == {f"{server.url}/metrics"}


def test_a_busy_server_lengthens_no_window_in_which_another_is_read() -> None:
    with serving({"/metrics": Counting()}) as quick, serving({"/metrics": MUTE}) as mute:
        began = time.monotonic()
        timeline = read(quick.url, f"{mute.url}/metrics", for_s=0.6)
    assert time.monotonic() - began < 10.0 and timeline.readings >= 2
    assert any(note.key == "observe.note_never" for note in timeline.notes)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(status(404), "no such page"), (status(401), "who asks"), (status(503), "fails"), (whole("<html></html>", "text/html"), "metrics")],
)
def test_an_answer_that_is_no_page_ends_it_at_once(answer: Answering, words: str) -> None:
    with serving({"/metrics": answer}) as server:
        began = time.monotonic()
        with pytest.raises(BreakevenError) as caught:
            read(f"{server.url}/metrics", for_s=60.0, patience_s=60.0)
    assert words in text(caught.value.message) and time.monotonic() - began < 30.0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue of connections refuses")
def test_where_no_connection_comes_about_it_is_said_at_once_and_a_firewall_is_named() -> None:
    with dropping() as url:
        with pytest.raises(UnreachableError, match=r"no connection within 200 ms.*firewall"):
            get(Endpoint(url=url, timeout_s=TIMEOUT_S))
        began = time.monotonic()
        assert "no connection within 200 ms" in refused(url, for_s=60.0, patience_s=60.0)
    assert time.monotonic() - began < 30.0


def test_while_it_waits_it_says_so_once_and_then_that_the_server_answers(hurried: None, capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": in_turn(MUTE, MUTE, Counting())}) as server:
        assert cli.run(["observe", f"{server.url}/metrics", "--for", "300ms", "--every", "100ms", "--json"]) == 0
    written = capsys.readouterr()
    _, waits, again, *rest = written.err.splitlines()
    assert waits.startswith(f"{server.url}/metrics: no page within 200 ms, though it takes connections; it is tried again")
    assert again.endswith("answers again") and not rest
    assert json.loads(written.out)["readings"] >= 2


def test_a_view_says_so_too(hurried: None, capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": in_turn(MUTE, Counting())}) as server:
        assert cli.run(["observe", f"{server.url}/metrics", "--for", "300ms", "--every", "100ms", "--watch"]) == 0
    assert capsys.readouterr().err.count("though it takes connections") == 1


def test_the_end_of_waiting_is_one_line_and_exit_code_3(hurried: None, capsys: pytest.CaptureFixture[str]) -> None:
    with serving({"/metrics": MUTE}) as server:
        assert cli.run(["observe", f"{server.url}/metrics", "--for", "300ms", "--every", "100ms"]) == 3
    out, err = capsys.readouterr()
    assert not out and len(err.splitlines()) == 3 and "takes connections and gave no page" in err.splitlines()[-1]


def test_advice_waits_for_a_busy_engine(hurried: None, capsys: pytest.CaptureFixture[str], shared: Path) -> None:
    page = (shared / "snapshots/vllm_metrics_load.txt").read_text()
    engine = Stub(page=page, seconds=30.0, answers={"/v1/models": {"data": [{"id": "chat", "root": "meta-llama/Llama-3.1-8B-Instruct"}]}})
    busy = 0

    def relay(handler: Handler) -> None:
        nonlocal busy
        busy += 1
        answer = MUTE if busy == 1 else whole(get(Endpoint(url=f"{engine.url}{handler.path}")).body)
        answer(handler)

    with telling(engine), serving({"/metrics": relay, "/v1/models": relay}) as server:
        named = ("--hardware", "h100-sxm", "--draws", "16", "--for", "1s", "--json")
        assert cli.run(["advise", "--url", f"{server.url}/metrics", *named]) == 0
    written = capsys.readouterr()
    assert "though it takes connections" in written.err
    assert json.loads(written.out)["provenance"]["workload.output_tokens"] == "measured"


def test_a_page_that_is_late_in_the_middle_is_given_more_time(hurried: None) -> None:
    with serving({"/metrics": in_turn(whole(vllm(100)), late(0.35, whole(vllm(150))))}) as server:
        timeline = window.observe(scrape.targets([f"{server.url}/metrics"]), for_s=1.5, every_s=0.05)
    [tokens] = [one for one in timeline.series if one.quantity == "output_tokens"]
    assert list(tokens.values[:2]) == [100.0, 150.0] and timeline.missed <= 2
