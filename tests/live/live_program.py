"""The program as a user starts it, beside the test: its output goes to files, so that it waits for no reader and leaves nothing open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOOK_S = 0.05
QUICK = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
"""Where it may keep its compiled modules it starts in a third of the time."""
PATIENCE_S = 240.0
"""A machine may be many times slower than ours. One that ends by itself is not waited for."""


class Ended(RuntimeError):
    """It ended before it was told to."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """``breakeven`` while it runs."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def until(self, holds: Callable[[], bool], what: Callable[[], str], within_s: float = PATIENCE_S) -> None:
        """Wait for what it is to bring about; it is said at once if it has ended, and with which words."""
        end = time.monotonic() + within_s
        while not holds():
            if (code := self.process.poll()) is not None and not holds():
                raise Ended(f"{self.name} ended by itself with {code}; {what()}\n{self.said()}")
            if time.monotonic() > end:
                raise TimeoutError(f"{what()} within {within_s:g} s, and {self.name} goes on\n{self.said()}")
            time.sleep(LOOK_S)

    def ended(self, how: signal.Signals = signal.SIGINT, within_s: float = PATIENCE_S) -> str:
        """What it printed, once it was told to end; it has to end well."""
        self.process.send_signal(how)
        code = self.process.wait(within_s)
        if code != 0:
            raise RuntimeError(f"{self.name} exits {code} after {how.name}\n{self.said()}")
        return self.out.read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        return f"breakeven {self.process.args[3]}"  # type: ignore[index]

    def said(self) -> str:
        return self.err.read_text(encoding="utf-8", errors="replace")


def breakeven(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "breakeven", *arguments]


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Program]:
    """The program while the block runs; gone afterwards, whatever happened."""
    out, err = folder / "stdout", folder / "stderr"
    with (
        out.open("wb") as to,
        err.open("wb") as beside,
        subprocess.Popen(breakeven(*arguments), stdout=to, stderr=beside, env=QUICK) as process,
    ):
        try:
            yield Program(process=process, out=out, err=err)
        finally:
            process.kill()


def said(*arguments: str) -> str:
    """What the program prints; it has to end well."""
    done = subprocess.run(breakeven(*arguments), capture_output=True, text=True, env=QUICK, timeout=2 * PATIENCE_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"breakeven {' '.join(arguments)} exits {done.returncode}: {done.stderr}")
    return done.stdout
