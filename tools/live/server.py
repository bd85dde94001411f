"""A running engine: started on a free port, waited for, its log kept, and always stopped with all that it started."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

STOP_WITHIN_S = 20.0
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
LAST_LINES = 30


@dataclass(frozen=True, kw_only=True)
class Server:
    """An engine that answers."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """At once, as when a machine takes the process away."""
        end(self.process, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], *, log: Path, port: int, ready: str = "/health", within_s: float = 60.0, env: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """The engine while the block runs; its whole process group is gone afterwards, whatever happened."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            process_group=0,  # and the caller's session: Linux shares the processors among sessions first, whatever their priorities
            preexec_fn=_ends_with_its_parent,  # noqa: PLW1509  # one call of a library that is loaded before
            env={**os.environ, **(env or {})},
        )
    try:
        server = Server(url=f"http://127.0.0.1:{port}", process=process, log=log)
        wait_for(server, ready, within_s)
        yield server
    finally:
        end(process, signal.SIGTERM)


def _ends_with_its_parent() -> None:
    """Where the system can (Linux), a process that was killed with no time to clean up leaves no engine behind."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def wait_for(server: Server, ready: str, within_s: float) -> None:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if server.process.poll() is not None:
            raise RuntimeError(f"the engine ended by itself with {server.process.returncode}:\n{tail(server.log)}")
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(server.url + ready, timeout=5.0) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise TimeoutError(f"no answer at {ready} within {within_s:g} s:\n{tail(server.log)}")


def end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """The group of the process, asked first and made to afterwards."""
    for sign in (how, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_WITHIN_S)
            break
    with suppress(ProcessLookupError):  # what the process left behind of its group
        os.killpg(process.pid, signal.SIGKILL)


def tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])
