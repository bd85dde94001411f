"""What an observation is told as: the evidence itself, and sentences about it in the reader's language."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from breakeven.spec.evidence import Evidence


class ObservePart(Struct, frozen=True, kw_only=True):
    """One part of the page: lines under a title, and a table where it has one."""

    title: str
    lines: list[str]
    full: list[str] = []
    """The same with what else tells each figure, told on request; empty where nothing does."""
    heads: list[str] = []
    rows: list[list[str]] = []
    bars: list[tuple[float, str]] = []
    """Shares from 0 to 1 as bars, and what is said beside each."""


class ObserveDocument(Struct, frozen=True, kw_only=True):
    """The answer of ``observe``. As JSON it is the evidence alone, whatever the language."""

    language: Literal["en", "zh"]
    evidence: Evidence
    headline: str
    basis: list[str]
    """What the figures are over: readings, replicas, ranks."""
    parts: list[ObservePart]
    checks: list[str]
    warnings: list[str]
    missing: list[str]
    next_steps: list[tuple[str, str]]
    """What to measure next, and the command."""
