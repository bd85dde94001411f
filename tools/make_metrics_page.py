"""Write ``docs/reference/metrics.md`` from the engine adapters; with ``--check`` say whether it is as they are."""

from __future__ import annotations

import sys
from pathlib import Path

from breakeven.exposition.table import page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "metrics.md"


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    if "--check" in arguments:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
