"""Servers that answer for a Prometheus server wrongly, or with too much: one line says what is wrong, and no secret is in it."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from prometheus_stub import Kept, Raw, Stub, answered, engine, refused, serving

from breakeven.endpoint import Endpoint
from breakeven.errors import BreakevenError, InputError, UnreachableError
from breakeven.messages import text
from breakeven.observation import history
from breakeven.observation.history import HistoryQuery
from breakeven.observation.prometheus import Server

BASE = 1_789_948_800.0
HOUR = 3600.0
SECRET = "s3cr3t-t0ken"
LOGIN = b"<!DOCTYPE html><html><title>Sign in</title></html>"


def read(stub: Stub, match: str = "{}", end: float = BASE + HOUR, step: float | None = None) -> None:
    with serving(stub):
        url = stub.url.replace("http://", f"http://ann:{SECRET}@") + f"?key={SECRET}"
        server = Server(endpoint=Endpoint(url=url, headers={"X-Scope": SECRET}))
        history.read(server, HistoryQuery(match=match, start_s=BASE, end_s=end, step_s=step))


def fails(stub: Stub, **asked: object) -> BreakevenError:
    with pytest.raises(BreakevenError) as raised:
        read(stub, **asked)  # type: ignore[arg-type]
    for language in ("en", "zh"):
        line = text(raised.value.message, language)
        assert SECRET not in line and "\n" not in line and len(line) < 600
    return raised.value


def stub(*wrong: tuple[str, Callable[[], Raw]]) -> Stub:
    return Stub(engine(start=BASE, end=BASE + HOUR), wrong=dict(wrong))


ENDPOINTS = ("label/__name__/values", "series", "query_range")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ((200, "text/html", LOGIN), "prometheus_html"),
        ((403, "text/html", LOGIN), "prometheus_denied"),
        ((401, "application/json", b"{}"), "prometheus_denied"),
        ((200, "application/json", b'{"status":"success","data":{"resultType":"matrix","result":[{"metric"'), "prometheus_not_json"),
        ((200, "application/json", b""), "prometheus_not_json"),
        ((200, "text/plain", b"vllm:num_requests_running 1"), "prometheus_not_json"),
        ((200, "application/json", b'{"up": true}'), "prometheus_not_json"),
        ((200, "application/json", b'{"status":"success"}'), "prometheus_shape"),
        ((200, "application/json", b'{"status":"success","data":{"result":[{"metric":{},"values":[[1,2,3]]}]}}'), "prometheus_shape"),
        ((200, "application/json", b'{"status":"success","data":17}'), "prometheus_shape"),
        ((404, "text/plain", b"404 page not found"), "prometheus_not_json"),
    ],
)
def test_a_wrong_answer_is_one_line(endpoint: str, answer: Raw, key: str) -> None:
    assert fails(stub((endpoint, lambda: answer))).message.key == f"error.{key}"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_failing_server_exits_3(endpoint: str) -> None:
    error = fails(stub((endpoint, lambda: (500, "text/plain", b"oops"))))
    assert isinstance(error, UnreachableError) and error.exit_code == 3


def test_an_error_that_the_server_names_is_passed_on_and_cut() -> None:
    error = fails(stub(("query_range", lambda: refused("query processing would load too many samples\x1b[31m\n" + "x" * 9000, 422))))
    assert "too many samples" in str(error) and "\x1b" not in str(error)


def test_an_error_in_an_answer_that_says_200_is_an_error() -> None:
    body = json.dumps({"status": "error", "errorType": "timeout", "error": "query timed out"}).encode()
    assert "timed out" in str(fails(stub(("query_range", lambda: (200, "application/json", body)))))


def test_a_truncated_body_is_no_history() -> None:
    error = fails(Truncating(engine(start=BASE, end=BASE + HOUR)))
    assert error.message.key == "error.prometheus_not_json"


class Truncating(Stub):
    """Its ranges end in the middle."""

    def __init__(self, series: list[Kept]) -> None:
        whole = answered(Stub(), {"resultType": "matrix", "result": [{"metric": series[0].labels, "values": [[1, "1"]] * 1000}]})
        super().__init__(series, wrong={"query_range": lambda: (200, whole[1], whole[2][: len(whole[2]) // 2])})


def test_a_value_that_is_no_number_is_no_history() -> None:
    body = b'{"status":"success","data":{"result":[{"metric":{"__name__":"vllm:num_requests_running"},"values":[[1,"one"]]}]}}'
    assert fails(stub(("query_range", lambda: (200, "application/json", body)))).message.key == "error.prometheus_shape"


def test_nothing_stored_is_said() -> None:
    assert fails(Stub()).message.key == "error.history_empty"
    assert fails(stub(), match='{job="other"}').message.key == "error.history_empty"


def test_nothing_stored_in_the_range_is_said() -> None:
    gone = Stub(engine(start=BASE - 10 * HOUR, end=BASE - 9 * HOUR))
    assert fails(gone).message.key == "error.history_empty"


def test_only_nan_is_nothing() -> None:
    kept = engine(start=BASE, end=BASE + HOUR)
    for series in kept:
        series.values[:] = np.nan
    assert fails(Stub(kept)).message.key == "error.history_empty"


def test_several_models_are_refused_by_their_names() -> None:
    error = fails(Stub([*engine(start=BASE, end=BASE + HOUR, model="a"), *engine("b:1", start=BASE, end=BASE + HOUR, model="b")]))
    assert error.message.key == "error.history_models" and "a, b" in str(error) and "model_name=" in str(error)


def test_names_of_recording_rules_are_refused_by_their_names() -> None:
    kept = engine(start=BASE, end=BASE + HOUR)
    for series in kept:
        series.labels["__name__"] = "job:tokens:rate5m"
    error = fails(Stub(kept[:1]))
    assert error.message.key == "error.history_unknown" and "job:tokens:rate5m" in str(error)


def test_200_000_series_are_refused_and_not_read() -> None:
    one = engine(start=BASE, end=BASE + HOUR)[0].labels
    many = [{**one, "instance": f"i{n}"} for n in range(200_000)]
    flooded = stub(("series", lambda: answered(Stub(), many)))
    error = fails(flooded)
    assert error.message.key in ("error.history_series", "error.endpoint_large")
    assert not any(name == "query_range" for name, _ in flooded.asked)


def test_more_points_than_are_read_are_refused_before_they_are_asked_for() -> None:
    many = Stub([series for n in range(300) for series in engine(f"i{n}", start=BASE, end=BASE + 60)])
    assert fails(many, step=0.1).message.key == "error.history_points"
    assert not any(name == "query_range" for name, _ in many.asked)


@pytest.mark.parametrize(
    "match",
    ["", "job", '{job="a"', "{job=a}", '{job="a"} or {job="b"}', 'up{job="a"}', '{job="a"}[5m]', '{"job"="a"}', '{job="a" pod="b"}'],
)
def test_a_match_that_is_not_one_selector_is_refused(match: str) -> None:
    assert fails(stub(), match=match).message.key == "error.history_match"


@pytest.mark.parametrize("match", ["{}", ' { job = "vllm" , } ', '{job=~"v.*",model_name!="x"}', "{job='vllm'}", '{job="a}b{\\"c"}'])
def test_a_match_in_any_of_the_forms_of_the_language_is_taken(match: str) -> None:
    history.matchers(match)


def test_a_range_without_two_readings_is_refused() -> None:
    assert fails(stub(), end=BASE + 10).message.key == "error.history_short"


def test_interval_and_times_of_scrapes_are_not_needed() -> None:
    quiet = stub(("query", lambda: refused("not supported")))
    quiet.no_stamps = True
    with serving(quiet):
        timeline = history.read(Server(endpoint=Endpoint(url=quiet.url)), HistoryQuery(match="{}", start_s=BASE, end_s=BASE + HOUR))
    assert timeline.readings == 240 and isinstance(timeline.every_s, float)


def test_nothing_listens() -> None:
    with pytest.raises(UnreachableError):
        history.read(Server(endpoint=Endpoint(url="http://127.0.0.1:9")), HistoryQuery(match="{}", start_s=BASE, end_s=BASE + HOUR))


def test_input_errors_exit_2() -> None:
    assert InputError.exit_code == 2
