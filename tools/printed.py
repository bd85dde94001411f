"""What a command prints at 100 columns without colour: the one way by which kept outputs are written and checked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from breakeven.messages import LANGUAGES, say

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = "import sys; from breakeven.cli import main; sys.argv[0] = 'breakeven'; main()"
TERMINAL = {"COLUMNS": "100", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}

FIRST_RUN = [say("warning.compiling", language) for language in LANGUAGES]
"""Said where loops are compiled for the first time, which is no part of what a command answers."""


def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run ``breakeven`` from the root of the repository; ``stdout`` holds both streams, no line ending in spaces."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=ROOT,
        env={**os.environ, **TERMINAL},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    done.stdout = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines() if line not in FIRST_RUN)
    return done
