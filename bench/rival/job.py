"""What the drivers of rivals share: each is started by the interpreter of its rival's own environment, reads a job and writes figures, both JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Job = dict[str, Any]
"""Arrivals, lengths, step costs and the shape of the engine; what each key is, is said where jobs are made (work.py)."""


def drive(run: Callable[[Job, Path], dict[str, object]]) -> None:
    """Run ``driver.py FOLDER``: ``job.json`` in the folder is read, ``figures.json`` is written beside it."""
    folder = Path(sys.argv[1])
    figures = run(json.loads((folder / "job.json").read_text()), folder)
    (folder / "figures.json").write_text(json.dumps(figures))
