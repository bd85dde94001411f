"""What is seen while an engine is read: lines of progress, a view in a terminal, and a terminal that is left as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from composed_pages import Counting, vllm
from hostile_server import in_turn, serving, status, whole

from breakeven import cli, live_view

HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
LONGEST_S = 60.0


@contextmanager
def watched(*arguments: str, term: str = "xterm-256color") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The program with its stderr on a terminal, of which we hold the other end."""
    pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": term, "COLUMNS": "100", "LINES": "40", "BREAKEVEN_LANG": "en"}
    command = [sys.executable, "-m", "breakeven.cli", "observe", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def until(end: int, words: bytes, seen: bytes = b"") -> bytes:
    """What is written on the terminal until some words are."""
    began = time.monotonic()
    while words not in seen and time.monotonic() - began < LONGEST_S:
        seen += os.read(end, 65536)
    assert words in seen, seen
    return seen


def rest(end: int) -> bytes:
    seen = b""
    try:
        while piece := os.read(end, 65536):
            seen += piece
    except OSError:  # Linux tells so that the other end has closed
        pass
    return seen


def test_a_view_in_a_terminal_is_renewed_and_ctrl_c_leaves_the_terminal_as_it_was_with_the_result_on_stdout() -> None:
    with serving({"/metrics": Counting(step=100)}) as server, watched(server.url, "--watch", "--every", "100ms") as (process, terminal):
        seen = until(terminal, b"The last 1 min")
        seen += until(terminal, b"The last 1 min")
        process.send_signal(signal.SIGINT)
        seen += rest(terminal)
        out = process.stdout.read().decode() if process.stdout is not None else ""
        assert process.wait(LONGEST_S) == 0
    assert HIDE in seen and seen.count(SHOW) >= seen.count(HIDE) and seen.rindex(SHOW) > seen.rindex(HIDE)
    assert b"vLLM at" in seen and b"Traceback" not in seen
    assert out.startswith("vLLM at") and "\x1b[?" not in out and "ended early by Ctrl-C" in out


def test_a_terminal_that_can_do_nothing_is_given_plain_lines() -> None:
    with (
        serving({"/metrics": Counting(step=100)}) as server,
        watched(server.url, "--watch", "--every", "100ms", term="dumb") as (process, terminal),
    ):
        seen = until(terminal, b"tok/s out")
        process.send_signal(signal.SIGINT)
        seen += rest(terminal)
        assert process.stdout is not None and process.stdout.read().startswith(b"vLLM at")
        assert process.wait(LONGEST_S) == 0
    assert b"\x1b" not in seen


def test_without_a_view_progress_is_told_in_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_LANG", "en")
    monkeypatch.setattr(live_view, "TOLD_EVERY_S", 0.25)
    answers = [whole(vllm(100)), status(500), status(500), whole(vllm(120)), whole(vllm(130))]
    with serving({"/metrics": in_turn(*answers)}) as server:
        assert cli.run(["observe", server.url, "--for", "2s", "--every", "100ms"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"breakeven: reading {server.url} for 2 s, once in 100 ms (Ctrl-C ends it and keeps what was read)"
    assert lines[1] == f"{server.url}/metrics: fails (status 500); the server's own log says why"
    again = lines.index(f"{server.url}: answers again")
    assert again in (2, 3) and any(line.endswith("readings so far") for line in lines)
    assert sum("fails" in line for line in lines) == 1, "a silence is told once"
