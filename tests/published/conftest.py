"""Models and devices of published rows: from the catalogue, else parsed from the shared configurations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from breakeven import catalog
from breakeven.errors import BreakevenError, UnknownNameError
from breakeven.origin.huggingface import parse_config
from breakeven.spec.model import Model

ModelOf = Callable[[str], Model | None]


def model_finder(shared: Path) -> ModelOf:
    """A function from a model's name or repository to its shape; None where it is of a kind that is not modelled."""
    known: dict[str, dict[str, object]] = {}
    with (shared / "reference" / "models.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            known.update({str(name).lower(): row for name in (row["name"], *row["hf_ids"])})
    found: dict[str, Model | None] = {}

    def model_of(name: str) -> Model | None:
        if name not in found:
            found[name] = _load(name, known)
        return found[name]

    return model_of


def _load(name: str, known: dict[str, dict[str, object]]) -> Model | None:
    try:
        return catalog.load("models", name)
    except UnknownNameError:
        row = known.get(name.lower())
    try:
        return parse_config(row["hf_config"], name=name, where="shared models") if row else None  # type: ignore[arg-type]
    except BreakevenError:
        return None


@pytest.fixture(scope="session")
def model_of(shared: Path) -> ModelOf:
    return model_finder(shared)
