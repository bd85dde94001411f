"""Write the published JSON schemas anew, into docs/reference."""

from __future__ import annotations

import json
from pathlib import Path

from breakeven import document

REFERENCE = Path(__file__).resolve().parents[1] / "docs/reference"


def main() -> None:
    """One file per schema, named after it."""
    REFERENCE.mkdir(parents=True, exist_ok=True)
    schema = document.json_schema()
    path = REFERENCE / f"{schema['title'].replace('/', '.')}.schema.json"
    path.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(path.name)


if __name__ == "__main__":
    main()
