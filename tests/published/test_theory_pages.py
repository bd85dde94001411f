"""The theory pages and the code name each other: nothing is cited that is not there, and no formula is left out."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

NAMED = re.compile(r"`([a-z_.]+):([A-Za-z_]+)`")
FORMULAS = (
    "acceptance",
    "steady",
    "rules",
    "ledger.bandwidth",
    "ledger.compute",
    "ledger.draft",
    "ledger.experts",
    "ledger.interconnect",
    "ledger.memory",
    "ledger.prefill",
    "ledger.room",
    "ledger.step",
    "ledger.wire",
    "pools",
    "rate_groups",
    "occupancy",
    "schedule",
    "origin.arrival_rates",
    "traffic.arrivals",
    "traffic.lengths",
    "known_acceptance",
    "replay.gain",
    "replay.run",
    "round_costs",
    "reuse.divergence",
    "reuse.hit_rates",
    "reuse.identity",
    "reuse.sampling",
    "observation.increases",
    "observation.histograms",
    "observation.gauges",
    "observation.rounds",
    "observation.batches",
    "observation.lengths",
    "observation.drafting",
    "observation.utilisation",
    "observation.little",
    "traffic.ceiling",
    "traffic.left_over",
)
"""Modules of which every public function stands on a page."""


def names_on(root: Path) -> list[tuple[str, str]]:
    pages = sorted((root / "docs" / "theory").glob("*.md"))
    listed = re.findall(
        r"^\| \[[^]]+\]\(([a-z-]+\.md)\)", (root / "docs" / "theory" / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {page.name for page in pages} == {*listed, "README.md"}, "the list of pages in README.md is not that of the folder"
    return [(module, name) for page in pages for module, name in NAMED.findall(page.read_text(encoding="utf-8"))]


def test_what_the_pages_cite_is_in_the_code(root: Path) -> None:
    missing = [f"{module}:{name}" for module, name in names_on(root) if not hasattr(import_module(f"breakeven.{module}"), name)]
    assert missing == []


@pytest.mark.parametrize("module", FORMULAS)
def test_every_formula_is_on_a_page(root: Path, module: str) -> None:
    loaded = import_module(f"breakeven.{module}")
    public = {
        name
        for name, value in vars(loaded).items()
        if inspect.isfunction(value) and value.__module__ == loaded.__name__ and not name.startswith("_")
    }
    assert public - {name for page_module, name in names_on(root) if page_module == module} == set()


@pytest.mark.parametrize(
    "heading",
    [
        "memory",
        "bandwidth",
        "compute",
        "interconnect",
        "parallelism",
        "step",
        "operating-point",
        "speculation",
        "levers",
        "replay",
        "traffic",
        "reuse",
        "observation",
    ],
)
def test_a_page_gives_source_and_place(root: Path, heading: str) -> None:
    text = (root / "docs" / "theory" / f"{heading}.md").read_text(encoding="utf-8")
    assert "```text" in text and "Code: `" in text and re.search(r"\b(19|20)\d\d\b|\bfit\b|\bsheet\b", text)
