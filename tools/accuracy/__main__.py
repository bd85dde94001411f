"""``make accuracy``: score, write the figures, the plots and the page."""

from __future__ import annotations

import json
import time
from pathlib import Path

from accuracy import rows
from accuracy.document import document
from accuracy.instead import values
from accuracy.levels import levels
from accuracy.page import page
from accuracy.plots import plots

THEORY = Path(__file__).resolve().parents[2] / "docs" / "theory"


def main() -> None:
    """Everything, in one go."""
    began = time.monotonic()
    folder = rows.shared()
    measured = rows.measured(folder)
    found, instead = levels(measured), values(measured)
    told = document(folder, measured, found, instead)
    (THEORY / "accuracy.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (THEORY / "accuracy.md").write_text(page(told), encoding="utf-8")
    plots(THEORY / "accuracy", found[told["shown"]], instead["roofline"], measured)
    reached = sum(each["met"] for each in told["targets"])
    print(f"accuracy: {reached} of {len(told['targets'])} figures reached, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
