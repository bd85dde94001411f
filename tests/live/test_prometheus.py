"""A real Prometheus server that scrapes an engine: its history is what the engine counted, and what is republished it scrapes too."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from advancing_engine import RecordedEngine, served
from live.server import free_port, running
from live_client import closed_loop, words

from breakeven.endpoint import Endpoint
from breakeven.errors import InputError
from breakeven.observation import history
from breakeven.observation.history import HistoryQuery
from breakeven.observation.prometheus import Server
from breakeven.observation.timeline import Series, Timeline

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
global: {{scrape_interval: {every}, scrape_timeout: 1s}}
scrape_configs:
"""
JOB = """- job_name: {name}
  static_configs: [{{targets: [{targets}]}}]
"""
Launch = Callable[..., Any]
ANSWERS_WITHIN_S = 60.0
STARTS_WITHIN_S = 60.0
"""A range ends when the program asks, not when it was started: on a busy machine the first scrapes would lie before it."""


@pytest.fixture
def prometheus(binaries: dict[str, str], logs: Path, tmp_path: Path) -> Launch:
    """Start a server that scrapes these targets, by their jobs, once a second."""

    @contextmanager
    def start(every: str = "1s", **jobs: str | list[str]) -> Iterator[str]:
        config = CONFIG.format(every=every)
        for name, targets in jobs.items():
            listed = [targets] if isinstance(targets, str) else targets
            config += JOB.format(name=name, targets=", ".join(f"'{one}'" for one in listed))
        (tmp_path / "prometheus.yml").write_text(config, encoding="utf-8")
        port = free_port()
        command = [
            *(binaries["prometheus"], "--config.file", str(tmp_path / "prometheus.yml"), "--storage.tsdb.path", str(tmp_path / "data")),
            *("--web.listen-address", f"127.0.0.1:{port}", "--log.level", "warn"),
        ]
        with running(command, log=logs / "prometheus.log", port=port, ready="/-/ready") as server:
            yield server.url

    return start


def read(url: str, start: float, end: float, match: str = '{job="engine"}', step: float | None = None) -> Timeline:
    return history.read(Server(endpoint=Endpoint(url=url)), HistoryQuery(match=match, start_s=start, end_s=end, step_s=step))


def one(timeline: Timeline, quantity: str, **told: str) -> Series:
    (found,) = [s for s in timeline.series if s.quantity == quantity and all(getattr(s, name) == value for name, value in told.items())]
    return found


def until(holds: Callable[[], bool], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.2)
    return held


def shown_at(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=ANSWERS_WITHIN_S) as answer:
        return bytes(answer.read())


def page(shared: Path) -> str:
    return (shared / "snapshots/vllm_metrics_load.txt").read_text(encoding="utf-8")


def recorded(text: str, name: str) -> float:
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name}{{"))


def test_the_history_of_a_recorded_page_is_what_it_counted_through_a_restart(prometheus: Launch, shared: Path) -> None:
    text = page(shared)
    engine = RecordedEngine(text, gauges={"vllm:num_requests_running": lambda since: 8.0 + since % 2})
    began = time.time()
    with served(engine), prometheus(engine=f"127.0.0.1:{engine.port}") as url:
        assert until(lambda: len(engine.scrapes) >= 10)
        engine.restart()
        assert until(lambda: len(engine.scrapes) >= 18)
        scrapes = [at for at in engine.scrapes if at > began]
        timeline = read(url, began, time.time())
        tokens = one(timeline, "output_tokens")
        assert len(tokens.times) == pytest.approx(len(scrapes), abs=2)
        assert np.abs(tokens.times[:, None] - np.array(scrapes)).min(axis=1).max() < 0.25
        assert int((np.diff(tokens.values) < 0).sum()) == 1
        rate = np.diff(tokens.values) / np.diff(tokens.times)
        assert np.median(rate) == pytest.approx(recorded(text, "vllm:generation_tokens_total"), rel=0.05)
        buckets = [s for s in timeline.series if s.quantity == "ttft" and s.part == "bucket" and s.le == float("inf")]
        assert buckets[0].values[-1] > 0 and timeline.every_s == 1.0


def test_a_target_that_is_gone_has_no_readings_from_then_on(prometheus: Launch, shared: Path) -> None:
    engine = RecordedEngine(page(shared))
    began = time.time()
    with prometheus(engine=f"127.0.0.1:{(port := free_port())}") as url:
        with served(engine, port=port):
            assert until(lambda: len(engine.scrapes) >= 6)
        gone = time.time()
        time.sleep(4.0)
        assert read(url, began, time.time()).end_s <= gone
        with served(engine, port=port):
            before = len(engine.scrapes)
            assert until(lambda: len(engine.scrapes) >= before + 6)
            timeline = read(url, began, time.time())
    running = one(timeline, "running")
    assert np.diff(running.times).max() >= 4.0
    assert timeline.missed >= 3


def test_more_than_11_000_points_are_refused_by_the_server_and_asked_for_in_parts_by_us(prometheus: Launch, shared: Path) -> None:
    engine = RecordedEngine(page(shared))
    with served(engine), prometheus(engine=f"127.0.0.1:{engine.port}") as url:
        assert until(lambda: len(engine.scrapes) >= 5)
        end = time.time()
        start = end - 30_000
        asked = urllib.parse.urlencode({"query": "vllm:num_requests_running", "start": start, "end": end, "step": 1})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/v1/query_range?{asked}", timeout=ANSWERS_WITHIN_S)
        assert refused.value.code == 400 and b"11,000" in refused.value.read()
        assert one(read(url, start, end, step=1.0), "running").times.size >= 4
        with pytest.raises(InputError) as raised:
            read(url, end - 60, end, match='{job=~"("}')
        assert raised.value.message.key == "error.prometheus_error"


def test_steps_are_of_the_grid_and_the_step_may_be_longer_than_the_scrapes(prometheus: Launch, shared: Path) -> None:
    engine = RecordedEngine(page(shared))
    with served(engine), prometheus(engine=f"127.0.0.1:{engine.port}") as url:
        assert until(lambda: len(engine.scrapes) >= 14)
        end = time.time()
        fine, coarse = (one(read(url, end - 60, end, step=step), "output_tokens") for step in (1.0, 5.0))
    assert set(coarse.times) <= set(fine.times) and 2 <= len(coarse.times) <= len(fine.times) / 4 + 1
    assert np.array_equal(coarse.values, fine.values[np.isin(fine.times, coarse.times)])


def test_two_replicas_are_two_and_two_models_are_refused(prometheus: Launch, shared: Path) -> None:
    text = page(shared)
    first, second, other = RecordedEngine(text), RecordedEngine(text), RecordedEngine(text.replace('model_name="m"', 'model_name="n"'))
    with served(first), served(second), served(other):
        targets = [f"127.0.0.1:{engine.port}" for engine in (first, second)]
        with prometheus(engine=targets, other=f"127.0.0.1:{other.port}") as url:
            assert until(lambda: min(len(engine.scrapes) for engine in (first, second, other)) >= 4)
            end = time.time()
            assert {s.source for s in read(url, end - 60, end).series} == set(targets)
            with pytest.raises(InputError) as raised:
                read(url, end - 60, end, match="{}")
    assert raised.value.message.values["names"] == "m, n"


def test_tokens_in_the_history_of_a_live_engine_equal_what_its_client_got(llama: Any, prometheus: Launch, tmp_path: Path) -> None:
    began = time.time()
    with llama("-np", "2", "-c", "2048") as server, prometheus(engine=server.url.removeprefix("http://")) as url:
        assert until(lambda: value(url, "llamacpp:tokens_predicted_total") is not None)
        answers = closed_loop(server.url, "llama", [words(48, f"history {number}") for number in range(4)], 16, clients=2)
        got = sum(len(answer.tokens) for answer in answers)
        assert until(lambda: (value(url, "llamacpp:tokens_predicted_total") or 0.0) >= got)
        time.sleep(1.1)  # a history is read at whole steps, and the last scrape lies before the next of them
        kept = tmp_path / "evidence.json"
        command = [
            "observe",
            "--prometheus",
            url,
            "--match",
            '{job="engine"}',
            "--range",
            f"{time.time() - began + STARTS_WITHIN_S:.0f}s",
            "--out",
            str(kept),
        ]
        done = subprocess.run([sys.executable, "-m", "breakeven", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    evidence = json.loads(kept.read_text(encoding="utf-8"))
    assert (evidence["source"], evidence["told"]["engine"]) == ("history", "llamacpp")
    assert evidence["counts"]["output_tokens"] == got == 64
    assert evidence["counts"]["prompt_tokens_computed"] + evidence["counts"]["prompt_tokens_cached"] == 4 * 48


def test_what_is_republished_passes_promtool_and_is_scraped(prometheus: Launch, binaries: dict[str, str], shared: Path, logs: Path) -> None:
    engine = RecordedEngine(page(shared), gauges={"vllm:num_requests_running": lambda since: 8.0})
    with served(engine) as exported:
        port = free_port()
        command = [
            *(sys.executable, "-m", "breakeven", "observe", f"http://127.0.0.1:{exported.port}", "--export", f":{port}"),
            *("--for", "3s", "--every", "500ms", "--model", "llama-3.1-8b", "--hardware", "h100-sxm"),
        ]
        with running(command, log=logs / "exporter.log", port=port, ready="/metrics"), prometheus(engine=f"127.0.0.1:{port}") as url:
            shown = f"http://127.0.0.1:{port}/metrics"
            assert until(lambda: b"breakeven_lever_verdict{" in shown_at(shown))
            body = shown_at(shown)
            checked = subprocess.run([binaries["promtool"], "check", "metrics"], input=body, capture_output=True, check=False)
            assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
            assert until(lambda: value(url, "breakeven_effective_batch") is not None)
            assert value(url, "breakeven_up") == 1.0
            assert until(lambda: value(url, "count(breakeven_lever_verdict == 1)") == 5.0)


def test_the_exporter_goes_on_when_the_engine_dies(prometheus: Launch, shared: Path, logs: Path) -> None:
    engine, at = RecordedEngine(page(shared)), free_port()
    port = free_port()
    command = [
        *(sys.executable, "-m", "breakeven", "observe", f"http://127.0.0.1:{at}", "--export", f":{port}"),
        *("--for", "2s", "--every", "500ms"),
    ]
    with running(command, log=logs / "exporter.log", port=port, ready="/metrics"):
        shown = f"http://127.0.0.1:{port}/metrics"

        def up() -> bool:
            return b"\nbreakeven_up{target=" in (body := shown_at(shown)) and b"} 1.0" in body.partition(b"breakeven_up{")[2][:80]

        assert not up()
        for _ in range(2):
            with served(engine, port=at):
                assert until(up)
            assert until(lambda: not up())


def value(url: str, query: str) -> float | None:
    found = json.loads(shown_at(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"))["data"]["result"]
    return float(found[0]["value"][1]) if found else None
