"""What the tests of running engines need, and the reason where it cannot be had."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from live import prometheus


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
