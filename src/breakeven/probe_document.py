"""What ``calibrate --probe`` tells: what the machine reached, beside a sheet where one is named, and the entry that was made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

PROBE_SCHEMA: Final = "breakeven.probe/1"


class ProbeFigure(Struct, frozen=True, kw_only=True):
    """One rate, in bytes or FLOP a second."""

    quantity: Literal["read", "triad", "product", "link"]
    format: str
    """Of a product."""
    size: int
    """Bytes of the working set; rows of the matrices."""
    best: float
    median: float
    spread: float
    """(longest − shortest)/median of the repetitions' times."""
    repeats: int
    sheet: float | None = None
    """What the named device's entry says."""
    share: float | None = None
    """Best over sheet."""


class ProbeMachine(Struct, frozen=True, kw_only=True):
    """Where it was measured."""

    device: str
    processor: str
    cores: int
    clock_hz: float | None
    load: list[float] | None
    """Over one, five and fifteen minutes, before anything was measured."""
    memory_bytes: float
    libraries: dict[str, str]
    devices: int


class ProbeDocument(Struct, frozen=True, kw_only=True):
    """A probe, told."""

    schema: str = PROBE_SCHEMA
    language: str
    date: str
    seconds: float
    machine: ProbeMachine
    compared_with: str | None
    """Name of the device whose sheet stands beside."""
    figures: list[ProbeFigure]
    warnings: list[str]
    entry: str
    """The device's entry as TOML."""
    written: str | None
    """The file that was written."""
    folder: str | None
    """Its folder, for ``--catalog``."""
    name: str | None
    """Its name, for ``--hardware``."""


def counting(figures: Sequence[ProbeFigure]) -> list[ProbeFigure]:
    """The figures that count, in their order: of each product the fastest size. They are shown, taken into an entry, and warned of."""
    best = {one.format: one for one in sorted(figures, key=lambda one: one.best) if one.quantity == "product"}
    return [one for one in figures if one.quantity != "product" or one is best[one.format]]
