"""What was observed and advised, republished: the page, the server that shows it, and the loop that goes on when the engine does not."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import breakeven as be
from breakeven.advice import Advice
from breakeven.errors import InputError, UnreachableError
from breakeven.exporter import page, server
from breakeven.exporter.loop import Exporter, Loop, run
from breakeven.exporter.page import State, exposition
from breakeven.spec.evidence import Evidence, Figure, Told

DASHBOARD = Path(__file__).resolve().parents[2] / "docs/grafana/breakeven.json"
SECRET = "s3cr3t"


@pytest.fixture(scope="module")
def advice() -> Advice:
    deployment = be.Deployment(
        model=be.model("llama-3.1-8b"),
        hardware=be.hardware("h100-sxm"),
        engine=be.Engine(),
        workload=be.Workload(input_tokens=2000.0, output_tokens=300.0, request_rate=2.0),
    )
    return be.advise(deployment, draws=32)


def evidence(**figures: float) -> Evidence:
    return Evidence(
        breakeven="0",
        source="live",
        target="http://a:8000",
        start="2026-11-30T00:00:00Z",
        end="2026-11-30T00:01:00Z",
        seconds=60.0,
        readings=30,
        every_s=2.0,
        told=Told(engine="vllm"),
        figures={name: Figure(value=value, sure="counted", how="x", low=value * 0.9, high=value * 1.1) for name, value in figures.items()},
    )


def samples(body: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(body.decode())
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def value(body: bytes, name: str, **labels: str) -> float:
    return samples(body)[name, tuple(sorted(labels.items()))]


def fetched(port: int, path: str = "/metrics", method: str = "GET", host: str = "127.0.0.1") -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    connection.request(method, path)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


class TestThePage:
    def test_has_a_figure_with_its_interval(self) -> None:
        body = exposition(
            State(up={"http://a:8000": True}, read_s={"http://a:8000": 17.0}, evidence=evidence(effective_batch=30.0, mbu=0.5))
        )
        assert value(body, "breakeven_effective_batch") == 30.0
        assert value(body, "breakeven_effective_batch_low") == pytest.approx(27.0)
        assert value(body, "breakeven_bandwidth_utilization_ratio_high") == pytest.approx(0.55)
        assert value(body, "breakeven_up", target="http://a:8000") == 1.0
        assert value(body, "breakeven_last_success_timestamp_seconds", target="http://a:8000") == 17.0

    def test_has_every_figure_that_is_to_be_republished(self) -> None:
        body = exposition(State(evidence=evidence(**dict.fromkeys(page.FIGURES, 1.0))))
        told = {name for name, _ in samples(body)}
        assert {f"{name}{bound}" for name in page.FIGURES.values() for bound in page.BOUNDS} <= told

    def test_has_verdicts_and_gains_of_all_levers(self, advice: Advice) -> None:
        body = exposition(State(advice=advice, advised_s=20.0))
        for name, lever in advice.levers.items():
            assert value(body, "breakeven_lever_verdict", lever=name, verdict=lever.verdict) == 1.0
            gain = lever.metrics["tpot"]
            if gain.gain is not None and gain.low is not None:
                assert value(body, "breakeven_lever_gain_ratio", lever=name, metric="tpot") == pytest.approx(gain.gain)
                assert value(body, "breakeven_lever_gain_low_ratio", lever=name, metric="tpot") == pytest.approx(gain.low)
        ones = [found for (name, _), found in samples(body).items() if name == "breakeven_lever_verdict"]
        assert sum(ones) == len(advice.levers) and len(ones) == 6 * len(advice.levers)

    def test_names_are_ours_known_and_have_help_and_type(self, advice: Advice) -> None:
        state = State(
            up={"a": True}, read_s={"a": 1.0}, evidence=evidence(**dict.fromkeys(page.FIGURES, 1.0)), advice=advice, advised_s=1.0
        )
        text = exposition(state).decode()
        names = set(re.findall(r"^(\w+)[{ ]", re.sub(r"^#.*$", "", text, flags=re.MULTILINE), re.MULTILINE))
        assert names <= set(page.names()) and all(name.startswith("breakeven_") for name in names)
        assert (
            set(re.findall(r"^# HELP (\w+) .", text, re.MULTILINE)) == set(re.findall(r"^# TYPE (\w+) gauge", text, re.MULTILINE)) >= names
        )
        assert set(page.names()) == set(re.findall(r"^# TYPE (\w+) gauge", text, re.MULTILINE))

    def test_is_a_few_hundred_lines_at_most(self, advice: Advice) -> None:
        state = State(up={f"t{n}": True for n in range(1000)}, evidence=evidence(**dict.fromkeys(page.FIGURES, 1.0)), advice=advice)
        assert len(exposition(state).splitlines()) < 500

    def test_escapes_what_labels_hold(self) -> None:
        target = 'http://a:8000/"x"\\\n\x1b[31m'
        body = exposition(State(up={target: True}))
        assert b"\x1b" not in body
        assert [labels for (name, labels) in samples(body) if name == "breakeven_up"] != []

    def test_leaves_out_what_has_no_number(self) -> None:
        body = exposition(State(evidence=evidence(effective_batch=float("inf"), mbu=float("nan"))))
        told = {name for name, _ in samples(body)}
        assert "breakeven_effective_batch" not in told and "breakeven_bandwidth_utilization_ratio" not in told

    def test_speaks_chinese_in_its_help_alone(self) -> None:
        state = State(evidence=evidence(mbu=0.5))
        assert samples(exposition(state, "zh")) == samples(exposition(state, "en"))
        assert "显存" in exposition(state, "zh").decode()


class TestTheServer:
    @pytest.mark.parametrize("given", ["9877", ":", ":abc", ":70000", "a b:1", "http://a:1", ":-1", "", "::1:9877x"])
    def test_refuses_what_is_no_place(self, given: str) -> None:
        with pytest.raises(InputError) as raised:
            server.place(given)
        assert raised.value.message.key == "error.export_place"

    def test_shows_one_page_and_no_other(self) -> None:
        with server.PageServer("127.0.0.1", 0, lambda: b"breakeven_up 1\n") as serving:
            status, headers, body = fetched(serving.port)
            assert (status, body, headers["Content-Type"]) == (200, b"breakeven_up 1\n", server.TYPE)
            assert headers["Server"] == "breakeven"
            assert fetched(serving.port, "/metrics?x=1")[0] == 200
            assert fetched(serving.port, method="HEAD")[2] == b""
            assert {fetched(serving.port, path)[0] for path in ("/", "/metrics/", "/../etc/passwd", "/debug")} == {404}
            assert {fetched(serving.port, method=method)[0] for method in ("POST", "PUT", "DELETE")} == {501}

    def test_listens_on_this_machine_alone_unless_a_host_is_named(self) -> None:
        host, _ = server.place(":9877")
        assert host == "127.0.0.1"

    def test_says_that_a_port_is_taken(self) -> None:
        with server.PageServer("127.0.0.1", 0, bytes) as serving, pytest.raises(InputError) as raised:
            server.PageServer("127.0.0.1", serving.port, bytes)
        assert raised.value.message.key == "error.export_bind"

    def test_answers_others_while_many_clients_dawdle(self) -> None:
        with server.PageServer("127.0.0.1", 0, lambda: b"x\n") as serving:
            idle = [socket.create_connection(("127.0.0.1", serving.port)) for _ in range(server.MOST_AT_ONCE - 1)]
            assert fetched(serving.port)[0] == 200
            for one in idle:
                one.close()


def looped(observe: Callable[..., Evidence], **told: Any) -> Loop:
    return Loop(targets=("http://a:8000",), observe=observe, **{"retry_s": 0.01, **told})


class TestTheLoop:
    def test_shows_figures_and_then_verdicts(self, advice: Advice) -> None:
        def observe(heard: Callable[[str, float | None], None]) -> Evidence:
            heard("http://a:8000", 5.0)
            return evidence(effective_batch=12.0)

        exporter = Exporter(looped(observe, advise=lambda _: advice))
        assert value(exporter.page(), "breakeven_up", target="http://a:8000") == 0.0
        assert exporter.once()
        assert value(exporter.page(), "breakeven_up", target="http://a:8000") == 1.0
        assert value(exporter.page(), "breakeven_effective_batch") == 12.0
        assert abs(value(exporter.page(), "breakeven_last_advice_timestamp_seconds") - time.time()) < 10

    def test_goes_on_when_the_engine_dies_and_when_it_comes_back(self, advice: Advice) -> None:
        alive = [True]

        def observe(heard: Callable[[str, float | None], None]) -> Evidence:
            heard("http://a:8000", 5.0 if alive[0] else None)
            if not alive[0]:
                raise UnreachableError("endpoint_connection_refused", target="http://a:8000")
            return evidence(effective_batch=12.0)

        exporter = Exporter(looped(observe, advise=lambda _: advice))
        assert exporter.once()
        alive[0] = False
        assert not exporter.once()
        body = exporter.page()
        assert value(body, "breakeven_up", target="http://a:8000") == 0.0
        assert value(body, "breakeven_last_success_timestamp_seconds", target="http://a:8000") == 5.0
        assert "breakeven_effective_batch" not in {name for name, _ in samples(body)}
        assert "breakeven_lever_verdict" in {name for name, _ in samples(body)}
        alive[0] = True
        assert exporter.once() and value(exporter.page(), "breakeven_effective_batch") == 12.0

    def test_waits_for_an_engine_that_is_not_up_yet_and_refuses_what_is_wrong(self) -> None:
        def away(heard: object) -> Evidence:
            raise UnreachableError("endpoint_connection_refused", target="http://a:8000")

        def wrong(heard: object) -> Evidence:
            raise InputError("endpoint_denied", target="http://a:8000", status=403)

        assert not Exporter(looped(away)).once()
        with pytest.raises(InputError):
            Exporter(looped(wrong)).once()

    def test_advises_no_more_often_than_it_may_and_never_in_a_request(self, advice: Advice) -> None:
        asked: list[float] = []

        def advise(_: Evidence) -> Advice:
            asked.append(time.monotonic())
            return advice

        exporter = Exporter(looped(lambda heard: evidence(mbu=0.5), advise=advise, advise_every_s=3600.0))
        for _ in range(5):
            exporter.once()
        with server.PageServer("127.0.0.1", 0, exporter.page) as serving:
            for _ in range(20):
                fetched(serving.port)
        assert len(asked) == 1

    def test_an_advice_that_cannot_be_given_leaves_the_figures(self, capsys: pytest.CaptureFixture[str]) -> None:
        def advise(_: Evidence) -> Advice:
            raise InputError("no_model")

        exporter = Exporter(looped(lambda heard: evidence(mbu=0.5), advise=advise, advise_every_s=0.0))
        assert exporter.once() and exporter.once()
        assert value(exporter.page(), "breakeven_bandwidth_utilization_ratio") == 0.5
        assert len(capsys.readouterr().err.splitlines()) == 1

    def test_ends_when_it_is_stopped_and_lets_go_of_its_port(self) -> None:
        stop = threading.Event()
        port = free_port()
        loop = looped(lambda heard: evidence(mbu=0.5), pause_s=0.05)
        thread = threading.Thread(target=run, args=(loop, "127.0.0.1", port), kwargs={"stop": stop})
        thread.start()
        assert until(lambda: "breakeven_bandwidth_utilization_ratio" in {n for n, _ in samples(fetched(port)[2])})
        stop.set()
        thread.join(5)
        assert not thread.is_alive()
        with server.PageServer("127.0.0.1", port, bytes):
            pass

    def test_ctrl_c_is_its_clean_end(self, capsys: pytest.CaptureFixture[str]) -> None:
        def observe(heard: object) -> Evidence:
            raise KeyboardInterrupt

        run(looped(observe), "127.0.0.1", 0)
        assert "ended" in capsys.readouterr().err


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if holds():
                return True
        except OSError:
            pass
        time.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


class TestTheDashboard:
    def test_asks_for_metrics_that_are_exported_and_no_others(self, dashboard: dict[str, Any]) -> None:
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
        told = {name for expr in expressions for name in re.findall(r"\bbreakeven_\w+", expr)}
        assert expressions and told <= set(page.names())
        assert all(re.search(r"\bbreakeven_\w+", expr) for expr in expressions)

    def test_shows_every_figure_and_the_verdicts(self, dashboard: dict[str, Any]) -> None:
        text = json.dumps(dashboard["panels"])
        wanted = ("effective_batch", "bandwidth_utilization_ratio", "compute_utilization_ratio", "kv_share_ratio", "prefix_hit_ratio")
        wanted += ("acceptance_length_tokens", "step_seconds", "lever_verdict", "lever_gain_ratio", "up", "last_success_timestamp_seconds")
        assert [name for name in wanted if f"breakeven_{name}" not in text] == []

    def test_takes_its_data_source_from_a_variable(self, dashboard: dict[str, Any]) -> None:
        variables = {one["name"]: one["type"] for one in dashboard["templating"]["list"]}
        assert variables["datasource"] == "datasource"
        used = [panel["datasource"] for panel in dashboard["panels"] if panel["type"] != "row"]
        assert used and all(one == {"type": "prometheus", "uid": "${datasource}"} for one in used)

    def test_has_panels_that_do_not_overlap_and_have_their_own_ids(self, dashboard: dict[str, Any]) -> None:
        panels = dashboard["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        cells = [(x, y) for p in panels for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
                 for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])]  # fmt: skip
        assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24


def test_no_secret_comes_onto_the_page() -> None:
    from breakeven.use_cases import observe

    targets = observe.targets_of([f"http://ann:{SECRET}@127.0.0.1:9/metrics?key={SECRET}"], headers={"Authorization": SECRET})
    state = State(up={one.source: True for one in targets}, evidence=replace(evidence(mbu=0.5), target=targets[0].source))
    assert SECRET not in exposition(state).decode()
