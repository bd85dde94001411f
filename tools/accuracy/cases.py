"""Verdicts held to reported cases: the counts of the acceptance suite, which maps and judges (``tests/published/case_score.py``)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from case_score import Scored, score, share


def cases(folder: Path) -> dict[str, Any]:
    """Rows that bind, by class of verdict, and the others."""
    rows = score(folder)
    binding = [row for row in rows if row.binding]
    classes = sorted({row.verdict_class for row in binding if row.right is not None})
    return {
        **counted(binding),
        "classes": {name: counted(row for row in binding if row.verdict_class == name) for name in classes},
        "others": counted(row for row in rows if not row.binding),
        "exact": sum(row.right is None for row in rows),
        "wrong": [row.id for row in binding if row.right is False],
    }


def counted(rows: Iterable[Scored]) -> dict[str, Any]:
    """How many are right, of how many, and the share."""
    right, of = share(rows)
    return {"right": right, "of": of, "share": right / of if of else None}
