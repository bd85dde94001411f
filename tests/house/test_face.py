"""The face: a function for each use case and the types of its arguments, sorted, defined elsewhere, each with a sentence about itself."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import breakeven

FORWARDING = {"__getattr__", "__dir__"}


def face(root: Path) -> ast.Module:
    return ast.parse((root / "src/breakeven/__init__.py").read_text(encoding="utf-8"))


def test_all_is_sorted_and_without_repeats() -> None:
    assert list(breakeven.__all__) == sorted(set(breakeven.__all__))


def test_the_face_is_small() -> None:
    assert 12 <= len(breakeven.__all__) <= 40, f"{len(breakeven.__all__)} names: see docs/decisions.md"


@pytest.mark.parametrize("name", breakeven.__all__)
def test_each_name_can_be_had_and_lives_in_a_module_of_its_own(name: str) -> None:
    value = getattr(breakeven, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert value.__module__.startswith("breakeven."), f"{name} is defined in {value.__module__}"
        assert inspect.getdoc(value), f"{name} has no docstring"


def test_no_name_is_also_a_module_of_ours(root: Path) -> None:
    """Importing ``breakeven.x`` sets the attribute ``x`` of the package, and would hide the name."""
    modules = {path.stem for path in (root / "src/breakeven").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert set(breakeven.__all__) & modules == set()


def test_each_name_is_listed_by_dir() -> None:
    assert set(breakeven.__all__) <= set(dir(breakeven))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        breakeven.no_such_name  # noqa: B018 -- reading it is the test


def test_the_face_defines_nothing(root: Path) -> None:
    defined = [
        node.name
        for node in face(root).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name not in FORWARDING
    ]
    assert not defined, f"__init__.py defines {defined}: give them a module"
