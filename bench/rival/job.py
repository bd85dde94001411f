"""What drivers share: each is started by the interpreter of its tool's own environment, reads a job and writes figures, both JSON.

Seconds are the processor's, of the process and its children: every driver runs on one core and one thread, so on a quiet machine they
are wall time, and on a busy one they leave out what others take.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Job = dict[str, Any]
"""Arrivals, lengths, block hashes, step costs and the shape of the engine: see ``jobs`` in rivals.py."""


def clock() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def drive(run: Callable[[Job, Path], dict[str, object]]) -> None:
    """Run ``driver.py FOLDER``: ``job.json`` in the folder is read, ``figures.json`` is written beside it."""
    folder = Path(sys.argv[1])
    figures = run(json.loads((folder / "job.json").read_text()), folder)
    (folder / "figures.json").write_text(json.dumps(figures))
