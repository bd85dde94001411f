"""The use cases: each a file that is called like its function, and had from ``api`` without the imports of the others."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from breakeven import api, registry

OWN = {name for name in registry.names("use_cases") if hasattr(registry.module("use_cases", name), name)}
SHARED = {"running_engine"}
"""Called like its function too, and no use case of a user: what those about running engines share."""


def test_every_use_case_can_be_had_from_the_api() -> None:
    assert set(api.__all__) >= OWN - SHARED


@pytest.mark.parametrize("name", api.__all__)
def test_what_the_api_lists_is_there_and_known_to_the_types(root: Path, name: str) -> None:
    assert getattr(api, name) is not None
    tree = ast.parse((root / "src/breakeven/api.py").read_text(encoding="utf-8"))
    typed = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert name in typed


def test_the_api_lists_its_names_in_order() -> None:
    assert list(api.__all__) == sorted(set(api.__all__))


def test_what_is_no_use_case_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_case"):
        api.no_such_case  # noqa: B018 -- reading it is the test


def test_a_use_case_does_not_wait_for_the_imports_of_another() -> None:
    code = (
        "import json, sys; from breakeven import api; api.observe; print(json.dumps([m for m in sys.modules if m.startswith('breakeven')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    loaded = set(json.loads(done.stdout))
    assert "breakeven.use_cases.observe" in loaded
    assert loaded.isdisjoint({"breakeven.use_cases.advise", "breakeven.evaluator", "breakeven.calibration", "breakeven.simulation"})
