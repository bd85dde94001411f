"""The example of an observation is what ``observe`` keeps today: who reads it learns nothing that the program no longer says."""

from __future__ import annotations

import json
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from breakeven import streams


def leaves(value: Any, place: str = "") -> dict[str, Any]:
    """Every value of a document by its place."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if parts is None:
        return {place: value}
    return {where: leaf for name, part in parts for where, leaf in leaves(part, f"{place}/{name}").items()}


def test_the_example_is_what_its_tool_writes_now(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote: dict[str, str] = {}
    monkeypatch.setattr(streams, "write_file", lambda path, words: wrote.update({str(path): words}))
    run_path(str(root / "tools/make_sample_evidence.py"))["main"]()
    [(name, words)] = wrote.items()
    there, now = (leaves(json.loads(each)) for each in ((root / name).read_text(encoding="utf-8"), words))
    assert there.keys() == now.keys()
    differs = [
        place for place in now if now[place] != (pytest.approx(there[place], rel=1e-9) if isinstance(there[place], float) else there[place])
    ]
    assert differs == []
