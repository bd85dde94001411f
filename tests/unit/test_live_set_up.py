"""What the tests of running engines need, and the reason where it cannot be had."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from live import prometheus, server


def test_a_system_without_the_package_manager_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus.shutil, "which", lambda name: None)
    assert prometheus.set_up(tmp_path) == {"reason": "no Prometheus: apt-get is not there"}


def test_a_package_that_is_not_found_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: list[str], **told: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 100, "", "E: no such package\n")

    monkeypatch.setattr(prometheus.shutil, "which", lambda name: None if name in ("prometheus", "promtool") else f"/usr/bin/{name}")
    monkeypatch.setattr(prometheus.subprocess, "run", fails)
    assert prometheus.set_up(tmp_path) == {"reason": "no Prometheus: E: no such package"}


def test_what_is_unpacked_already_is_taken(tmp_path: Path) -> None:
    there = tmp_path / "prometheus/usr/bin"
    there.mkdir(parents=True)
    (there / "prometheus").touch()
    assert prometheus.set_up(tmp_path)["prometheus"] == str(there / "prometheus")


ENGINE = """
import sys, time
from pathlib import Path
from live.server import running
port = int(sys.argv[1])
with running([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], log=Path(sys.argv[2]), port=port, ready="/") as one:
    print(one.process.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a system call of Linux")
def test_no_engine_outlives_a_program_that_was_killed(tmp_path: Path, root: Path) -> None:
    command = [sys.executable, "-c", ENGINE, str(server.free_port()), str(tmp_path / "log")]
    environment = {**os.environ, "PYTHONPATH": str(root / "tools")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as program:
        assert program.stdout is not None
        engine = int(program.stdout.readline())
        program.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20.0
    while Path(f"/proc/{engine}/cmdline").exists() and Path(f"/proc/{engine}/cmdline").read_bytes() and time.monotonic() < until:
        time.sleep(0.05)
    assert time.monotonic() < until


def test_an_engine_has_a_group_of_its_own_in_the_session_of_its_test(tmp_path: Path) -> None:
    """Linux shares the processors among sessions first: beside a busy engine in another session, a program of low priority stood still."""
    port = server.free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    with server.running(command, log=tmp_path / "log", port=port, ready="/") as one:
        assert os.getpgid(one.process.pid) == one.process.pid
        assert os.getsid(one.process.pid) == os.getsid(0)
