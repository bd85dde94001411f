"""A process that shares work hears no Ctrl-C from its first moment: one that comes before its own code does is not its to answer."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from breakeven import interruption

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals are not masked here")
WORK = """
import os

def whose(task, place):
    return os.getpid(), place
"""
PROGRAM = """
import os, signal, sys

if __name__ != "__main__":
    # A child that is spawned loads this anew, before anything of ours runs in it.
    os.kill(os.getpid(), signal.SIGINT)

from breakeven import cli
from breakeven import processes
from work import whose

if sys.argv[1] == "fork":
    # The first that a child does.
    os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))
else:
    sys.platform = "other"

if __name__ == "__main__":
    found = processes.each(whose, "task", 4, 2, None)
    assert [place for _, place in found] == [0, 1, 2, 3] and os.getpid() not in {own for own, _ in found}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    print("done")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_interrupt_at_the_first_moment_of_a_child_is_not_heard_there(tmp_path: Path, method: str) -> None:
    (tmp_path / "work.py").write_text(WORK, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), method], capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["main thread", "another thread"])
def test_a_signal_meanwhile_is_heard_afterwards(number: signal.Signals, elsewhere: bool) -> None:
    """Python's main thread answers what any other takes: amid a fork it would be lost, or leave a process behind."""
    after: list[str] = []
    before = signal.signal(number, signal.default_int_handler)
    try:
        _press(number, after, elsewhere)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert after == ["went on"] and number not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def _press(number: signal.Signals, after: list[str], elsewhere: bool) -> None:
    listening, over = threading.Event(), threading.Event()

    def listens() -> None:
        listening.set()
        over.wait(10.0)

    thread = threading.Thread(target=listens)
    thread.start()
    listening.wait(10.0)
    try:
        with pytest.raises(KeyboardInterrupt), interruption.unheard():
            signal.pthread_kill((thread.ident if elsewhere else None) or threading.get_ident(), number)
            time.sleep(0.05)
            after.append("went on")
    finally:
        over.set()
        thread.join()
