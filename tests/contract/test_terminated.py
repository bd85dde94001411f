"""SIGTERM (`timeout`, a service's stop, a container's) ends the program as Ctrl-C does: what was read is kept, nothing runs on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import prometheus_stub
import pytest
import streaming_engine
from advancing_engine import RecordedEngine, served
from composed_pages import Counting
from hostile_server import Answering, Handler, free_port, serving, slowly, whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows ends a program without asking it")
LONGEST_S = 120.0
MUTE = slowly(b"", b"", 0.02)
PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 100
"""
ENDED = """# TYPE vllm:request_success counter
vllm:request_success_total{engine="0",model_name="m",finished_reason="stop"} 7
"""
DEVICE = """
title = "A processor of the tests"
vendor = "none"
family = "cpu"
memory_bytes = 16e9
bandwidth_bytes_per_s = 100e9
matmul_flops = {bf16 = 2e11, fp16 = 2e11}
sources = {memory_bytes = "made up", bandwidth_bytes_per_s = "made up", matmul_flops = "made up"}
"""


@contextmanager
def typed(*arguments: str, module: bool = True) -> Iterator[subprocess.Popen[str]]:
    """The program in a group of its own, of which nothing is left afterwards."""
    command = [sys.executable, *(("-m", "breakeven") if module else ()), *arguments]
    environment = {**os.environ, "BREAKEVEN_LANG": "en"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, process_group=0) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def until(holds: Callable[[], object], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + LONGEST_S
    while not holds():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.02)


def terminated(process: subprocess.Popen[str], sent: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(sent)
    out, err = process.communicate(timeout=LONGEST_S)
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    return process.returncode, out, err


@pytest.mark.parametrize("watch", [(), ("--watch",)])
def test_an_observation_keeps_what_was_read_and_says_what_ended_it(tmp_path: Path, watch: tuple[str, ...]) -> None:
    kept = tmp_path / "evidence.json"
    with serving({"/metrics": Counting()}) as server:
        options = ("--for", "600s", "--every", "100ms", "--json", "--out", str(kept), *watch)
        with typed("observe", f"{server.url}/metrics", *options) as process:
            until(lambda: server.asked.count("/metrics") >= 4, process)
            code, out, err = terminated(process)
    assert code == 0, err
    evidence = json.loads(out)
    assert evidence == json.loads(kept.read_text(encoding="utf-8")) and evidence["readings"] >= 3
    assert [one["key"] for one in evidence["warnings"]].count("observe.note_terminated") == 1


def test_before_anything_was_read_there_is_nothing_to_keep_and_the_exit_code_is_the_signal_s() -> None:
    with serving({"/metrics": MUTE}) as server, typed("observe", f"{server.url}/metrics") as process:
        until(lambda: server.asked, process)
        code, out, err = terminated(process)
    assert (code, out) == (128 + signal.SIGTERM, "")
    assert err.splitlines()[-1] == "ended by SIGTERM before enough was read"


class Unending:
    """An engine that generates for requests none of which ends."""

    def __init__(self) -> None:
        self.tokens = 100

    def __call__(self, handler: Handler) -> None:
        self.tokens += 10
        page = PAGE.replace(" 100\n", f" {self.tokens}\n") + ENDED
        whole(page)(handler)


DESCRIBED = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--draws", "16")


@pytest.mark.parametrize(("sent", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "Ctrl-C")])
@pytest.mark.parametrize("page", [MUTE, whole(PAGE), Unending()], ids=["no page", "one page", "no request ended"])
def test_advice_on_an_engine_that_was_not_read_for_long_enough_says_what_ended_it(page: Answering, sent: signal.Signals, name: str) -> None:
    with serving({"/metrics": page}) as server, typed("advise", "--url", f"{server.url}/metrics", "--for", "600s", *DESCRIBED) as process:
        until(lambda: server.asked.count("/metrics") >= (3 if isinstance(page, Unending) else 1), process)
        time.sleep(0.3)
        code, out, err = terminated(process, sent)
    last = err.splitlines()[-1]
    assert (code, out) == (128 + sent, "") and last.startswith(f"ended by {name} before enough was read"), err


def test_advice_goes_on_with_what_was_read_where_that_is_enough() -> None:
    with serving({"/metrics": Counting()}) as server:
        words = ("--for", "600s", "--json", "--input", "100", "--output", "100", "--rate", "1")
        with typed("advise", "--url", f"{server.url}/metrics", *words, *DESCRIBED) as process:
            until(lambda: server.asked.count("/metrics") >= 3, process)
            code, out, err = terminated(process)
    assert code == 0, err
    assert json.loads(out)["observed"] and err.splitlines()[-1].startswith("ended early by SIGTERM: ")


def test_an_exporter_ends_cleanly_and_its_port_is_free() -> None:
    port = free_port()
    with served(RecordedEngine(PAGE)) as engine:
        options = ("--export", f":{port}", "--for", "1s", "--every", "250ms")
        with typed("observe", f"http://127.0.0.1:{engine.port}/metrics", *options) as process:
            until(lambda: engine.scrapes, process)
            code, out, err = terminated(process)
    assert (code, out) == (0, "") and "ended" in err
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")


def test_an_exporter_whose_engine_is_away_ends_too() -> None:
    with typed("observe", f"http://127.0.0.1:{free_port()}/metrics", "--export", ":0") as process:
        assert process.stderr is not None
        until(lambda: "nothing listens" in process.stderr.readline(), process)
        code, _, err = terminated(process)
    assert code == 0 and "ended" in err


def test_a_history_that_is_waited_for_is_given_up() -> None:
    asked, over = Event(), Event()

    def never() -> prometheus_stub.Raw:
        asked.set()
        over.wait(LONGEST_S)
        return 200, "application/json", b"{}"

    with (
        prometheus_stub.serving(prometheus_stub.Stub([], wrong={"*": never})) as stub,
        typed("observe", "--prometheus", stub.url, "--match", '{job="vllm"}', "--range", "30m") as process,
    ):
        until(asked.is_set, process)
        code, out, err = terminated(process)
        over.set()
    assert (code, out, err) == (128 + signal.SIGTERM, "", "")


def test_a_load_stops_with_all_its_streams_and_says_what_was_sent(tmp_path: Path) -> None:
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices/tested.toml").write_text(DEVICE, encoding="utf-8")
    made = tmp_path / "made.toml"
    with streaming_engine.serving(streaming_engine.Engine(lambda b, c: 0.2)) as stub:
        named = ("--model", "llama-3.2-1b", "--hardware", "tested", "--engine", "llamacpp", "--catalog", str(tmp_path / "devices"))
        grid = ("--concurrency-grid", "2", "--context-grid", "64", "--requests", "4")
        with typed("calibrate", "--url", stub.url, "--allow-load", *named, *grid, "--out", str(made)) as process:
            until(lambda: stub.engine.bodies, process)
            code, out, err = terminated(process)
        sent = len(stub.engine.bodies)
        time.sleep(1.0)
        assert len(stub.engine.bodies) == sent <= 4
    assert (code, out) == (128 + signal.SIGTERM, "") and "interrupted" in err and not made.exists()


def test_a_simulation_over_processes_leaves_none_of_them(root: Path) -> None:
    words = ("--rate", "3", "--input", "256", "--output", "64", "--requests", "300000", "--levers", "all", "--jobs", "2")
    with typed("simulate", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", *words) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: len(children.read_text().split()) >= 2 if children.exists() else time.sleep(6.0) is None, process)
        code, out, _ = terminated(process)
    assert (code, out) == (128 + signal.SIGTERM, "")


PROGRAM = """
import signal, sys, breakeven
if sys.argv[2] == "own":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
breakeven.observe(sys.argv[1], for_s=600.0, every_s=0.1)
print("went on")
"""


@pytest.mark.parametrize(("whose", "code"), [("none", -signal.SIGTERM), ("own", 7)])
def test_in_a_program_of_the_user_s_own_the_signal_is_that_program_s(tmp_path: Path, whose: str, code: int) -> None:
    (tmp_path / "own.py").write_text(PROGRAM, encoding="utf-8")
    with (
        serving({"/metrics": Counting()}) as server,
        typed(str(tmp_path / "own.py"), f"{server.url}/metrics", whose, module=False) as process,
    ):
        until(lambda: server.asked.count("/metrics") >= 3, process)
        assert terminated(process)[:2] == (code, "")
