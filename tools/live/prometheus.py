"""A Prometheus server for the tests of metrics history: the system's, else Debian's package unpacked under ``build/live``, without root."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

WAIT_S = 300.0


def set_up(build: Path) -> dict[str, str]:
    """Where the server and its tool are, or the reason why they are not."""
    home = build / "prometheus"
    unpacked = home / "usr/bin"
    if not (unpacked / "prometheus").exists():
        if (there := shutil.which("prometheus")) and (tool := shutil.which("promtool")):
            return {"prometheus": there, "promtool": tool}
        home.mkdir(parents=True, exist_ok=True)
        if (reason := fetched(home)) is not None:
            return {"reason": f"no Prometheus: {reason}"}
    return {"prometheus": str(unpacked / "prometheus"), "promtool": str(unpacked / "promtool")}


def fetched(home: Path) -> str | None:
    """Download and unpack the package; why that did not work."""
    for command in (["apt-get", "download", "--quiet", "prometheus"], ["dpkg", "-x", "prometheus.deb", "."]):
        if shutil.which(command[0]) is None:
            return f"{command[0]} is not there"
        try:
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            return f"{command[0]} took more than {WAIT_S:.0f} s"
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or [f"{command[0]} exits {done.returncode}"])[-1]
        for package in home.glob("prometheus_*.deb"):
            package.rename(home / "prometheus.deb")
    return None
