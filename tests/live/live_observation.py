"""The program observing while something happens, and ended by Ctrl-C when that is over."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from live_program import Program, started
from live_relay import Relay, relayed

EVERY_S = 0.5
MOST_S = 1800


@dataclass
class Observation:
    """Filled when it is over."""

    evidence: dict[str, Any] = field(default_factory=dict)
    file: Path = Path()
    relay: Relay | None = None
    stderr: str = ""
    program: Program | None = None

    def read_anew(self) -> None:
        """Wait until a page has been read that was asked for after this."""
        relay, program, now = self.relay, self.program, time.monotonic()
        assert relay is not None and program is not None
        program.until(lambda: any(at > now for at in relay.taken), lambda: f"no page was read since; last asked for: {relay.asked[-3:]}")

    def counted(self, quantity: str) -> float:
        return float(self.evidence["counts"][quantity])

    def figure(self, name: str) -> float:
        return float(self.evidence["figures"][name]["value"])


def moment(text: str) -> float:
    """Unix seconds of a time in evidence."""
    return datetime.fromisoformat(text).timestamp()


@contextmanager
def observing(url: str, folder: Path, *options: str, every_s: float = EVERY_S) -> Iterator[Observation]:
    """Observed from before the block begins until after it has ended."""
    found = Observation(file=folder / "evidence.json")
    schedule = ("--for", f"{MOST_S}s", "--every", f"{every_s}s")
    with relayed(url) as relay, started(folder, "observe", relay.url, *schedule, "--json", "--out", str(found.file), *options) as program:
        found.relay, found.program = relay, program
        found.read_anew()
        yield found
        found.read_anew()
        out = program.ended()
        found.stderr = program.said()
    found.evidence = json.loads(out)
