"""The glossary: one row a term, in both languages, in order."""

from __future__ import annotations

from pathlib import Path


def rows(root: Path) -> list[list[str]]:
    lines = (root / "docs/glossary.md").read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return table[1:]


def test_every_term_has_both_languages_and_a_meaning(root: Path) -> None:
    assert [row for row in rows(root) if len(row) != 3 or not all(row)] == []


def test_terms_are_sorted_and_named_once(root: Path) -> None:
    terms = [row[0].lower() for row in rows(root)]
    assert terms == sorted(set(terms))
