"""A reader sees what a reader saw. After a change that is meant to move figures: ``python tests/golden/runs.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("golden_runs", Path(__file__).with_name("runs.py"))
assert SPEC is not None and SPEC.loader is not None
runs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(runs)


@pytest.mark.parametrize("name", sorted(runs.RUNS))
def test_the_output_is_the_one_that_was_kept(name: str) -> None:
    kept = (runs.FILES / f"{name}.txt").read_text(encoding="utf-8")
    assert runs.output_of(runs.RUNS[name]) == kept


def test_every_kept_file_has_its_run() -> None:
    assert {path.stem for path in runs.FILES.glob("*.txt")} == set(runs.RUNS)
