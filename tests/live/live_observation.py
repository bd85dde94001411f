"""The program as a user starts it, observing while something happens, and ended by Ctrl-C when that is over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from live_relay import Relay, relayed

EVERY_S = 0.5
MOST_S = 600
PAGES_AFTER = 2
"""One may have been asked for before the last answer came; the next was not."""
ENDS_WITHIN_S = 60


@dataclass
class Observation:
    """Filled when it is over."""

    evidence: dict[str, Any] = field(default_factory=dict)
    file: Path = Path()
    relay: Relay | None = None
    stderr: str = ""

    def counted(self, quantity: str) -> float:
        return float(self.evidence["counts"][quantity])

    def figure(self, name: str) -> float:
        return float(self.evidence["figures"][name]["value"])


def moment(text: str) -> float:
    """Unix seconds of a time in evidence."""
    return datetime.fromisoformat(text).timestamp()


def breakeven(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "breakeven", *arguments]


def said(*arguments: str) -> str:
    """What the program prints; it has to end well."""
    done = subprocess.run(breakeven(*arguments), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"breakeven {' '.join(arguments)} exits {done.returncode}: {done.stderr}")
    return done.stdout


@contextmanager
def observing(url: str, folder: Path, *options: str, every_s: float = EVERY_S) -> Iterator[Observation]:
    """Observed from before the block begins until after it has ended."""
    found = Observation(file=folder / "evidence.json")
    with relayed(url) as relay:
        found.relay = relay
        command = breakeven(
            "observe", relay.url, "--for", f"{MOST_S}s", "--every", f"{every_s}s", "--json", "--out", str(found.file), *options
        )
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            relay.wait(1)
            yield found
            relay.wait(relay.answered + PAGES_AFTER)
            process.send_signal(signal.SIGINT)
            out, found.stderr = process.communicate(timeout=ENDS_WITHIN_S)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"observe exits {process.returncode}: {found.stderr}")
    found.evidence = json.loads(out)
