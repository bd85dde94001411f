"""The measurements, where they lie, and what they are."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from breakeven.measured.files import Measured, read

VARIABLE = "BREAKEVEN_SHARED"
FILES = ("lever_points.csv", "silicon_e2e.csv")


def shared() -> Path:
    """The folder of the shared measurements; without it nothing can be scored, and that is said in a line."""
    found = Path(os.environ.get(VARIABLE, ""))
    if not os.environ.get(VARIABLE) or not (found / "data").is_dir():
        sys.exit(f"accuracy: the measurements are not here; set {VARIABLE} to the folder that holds data/{FILES[0]}")
    return found


def measured(folder: Path) -> Measured:
    """Both files, understood."""
    return read([folder / "data" / name for name in FILES])


def fingerprints(folder: Path) -> dict[str, str]:
    """The first letters of each file's SHA-256: of which data a figure is."""
    return {name: hashlib.sha256((folder / "data" / name).read_bytes()).hexdigest()[:16] for name in FILES}
