"""A reader sees what a reader saw. After a change that is meant to move figures: ``python tools/refresh_printed.py``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from printed import run

HERE = Path(__file__).parent
FILES = HERE / "files"
RUNS: dict[str, list[str]] = tomllib.loads((HERE / "runs.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(RUNS))
def test_the_output_is_the_one_that_was_kept(name: str) -> None:
    done = run(RUNS[name])
    assert done.returncode == 0, done.stdout
    assert done.stdout == (FILES / f"{name}.txt").read_text(encoding="utf-8")


def test_every_kept_file_has_its_run() -> None:
    assert {path.stem for path in FILES.glob("*.txt")} == set(RUNS)
