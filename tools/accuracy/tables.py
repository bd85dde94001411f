"""Tables of Markdown, and how figures are written in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from breakeven.messages import catalogue

NONE = "–"
FIGURE = re.compile(r"[+−]?[\d–∞]")
"""How a figure begins."""
Figures = Mapping[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns that hold figures stand to the right."""
    body = [list(row) for row in rows]
    columns = zip(*body, strict=True) if body else ([] for _ in head)
    rule = "|" + "|".join("--:" if column and all(FIGURE.match(each) for each in column) else "---" for column in columns) + "|"
    return "\n".join(["| " + " | ".join(head) + " |", rule, *("| " + " | ".join(row) + " |" for row in body)])


def whole(value: float | None) -> str:
    """A count."""
    return NONE if value is None else f"{value:,.0f}"


def error(value: float | None) -> str:
    """An error of a logarithm."""
    return NONE if value is None else f"{value:.3f}"


def signed(value: float | None) -> str:
    """A bias of a logarithm."""
    return NONE if value is None else f"{value:+.3f}".replace("-", "−")


def share(value: float | None) -> str:
    """A share of 1."""
    return NONE if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """A percentage of times; far beyond a hundred no decimals."""
    if value is None:
        return NONE
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def plain(value: float | None) -> str:
    """A gain, or a time, to three figures."""
    return NONE if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def covered(figures: Figures) -> str:
    """A coverage with its binomial interval."""
    found = figures["coverage"]
    return f"{found['share']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def score_cells(found: Figures) -> list[str]:
    """The cells of one score."""
    return [
        whole(found["rows"]),
        whole(found["groups"]),
        share(found.get("sign_agreement")),
        error(found["group_median_error"]),
        error(found["median_error"]),
        error(found["p90_error"]),
        signed(found["bias"]),
    ]


def cell(found: Figures) -> str:
    """Size, and where there is one the sign; what has no bound is without end."""
    sign = found.get("sign_agreement")
    size = "∞" if found["group_median_error"] is None else error(found["group_median_error"])
    return size if sign is None else f"{size}, {share(sign)}"


def reason(key: str) -> str:
    """A message of the catalogue without the values of one row."""
    return re.sub(r"'?\{[^}]*\}'?", "…", catalogue("en")[key])
