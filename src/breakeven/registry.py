"""The file system is the registry: a file in a folder is a kind, its name the public name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent


@cache
def names(folder: str) -> tuple[str, ...]:
    """Public names of a folder's kinds, sorted; files that start with an underscore are private."""
    return tuple(sorted(entry.stem for entry in (HERE / folder).glob("*.py") if not entry.stem.startswith("_")))


def module(folder: str, name: str) -> ModuleType:
    """The file of one kind, imported when first asked for."""
    return import_module(f"breakeven.{folder}.{name}")
