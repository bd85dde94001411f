"""What the catalogue shows: entries, two of them compared, and files of the user's checked. Frozen data, a versioned schema."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

CATALOG_SCHEMA: Final = "breakeven.catalog/1"

Kind = Literal["hardware", "models", "engines", "levers", "axes", "objectives", "weight_formats", "kv_formats", "support"]
"""What the catalogue lists."""


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """One thing that has a name here, with the source of each value."""

    kind: Kind
    name: str
    title: str
    summary: dict[str, Any]
    values: dict[str, Any]
    sources: dict[str, str]
    units: dict[str, str] = {}
    """Value to its unit, where it has one: B, B/s, FLOP/s, W, USD/h."""
    confidence: dict[str, str] = {}
    """How well founded: ``overall``, and for a device each quantity."""
    origin: str | None = None
    """The user's file, where it is not one of ours."""


class ComparedValue(Struct, frozen=True, kw_only=True):
    """One value of two entries, and the second over the first where it is a figure."""

    name: str
    title: str
    unit: str
    values: list[Any]
    ratio: float | None


class CatalogComparison(Struct, frozen=True, kw_only=True):
    """Two entries of a kind side by side."""

    kind: Literal["hardware", "models"]
    names: list[str]
    rows: list[ComparedValue]


class Finding(Struct, frozen=True, kw_only=True):
    """What was found at a key of an entry's file."""

    key: str
    says: str


class CheckedFile(Struct, frozen=True, kw_only=True):
    """An entry's file, checked: faults are in the way of its use, hints are not."""

    path: str
    kind: str | None
    ok: bool
    faults: list[Finding]
    hints: list[Finding]


class CatalogDocument(Struct, frozen=True, kw_only=True):
    """What is known."""

    schema: Literal["breakeven.catalog/1"] = CATALOG_SCHEMA
    language: Literal["en", "zh"]
    entries: list[CatalogEntry]
    comparison: CatalogComparison | None = None
    checked: list[CheckedFile] = []
    warnings: list[str] = []
