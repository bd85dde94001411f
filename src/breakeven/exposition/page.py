"""A page of metrics to readings: whose it is, what it tells, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breakeven.adapter import Alias, NotExposed
from breakeven.exposition.places import Part
from breakeven.messages import Message


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One number of a page: of one quantity of one rank, added up over all other labels."""

    quantity: str
    """Key of :data:`breakeven.adapter.QUANTITIES`."""
    rank: str = ""
    split: str = ""
    """Value of the splitting label: a position, a reason."""
    part: Part = ""
    le: float | None = None
    """Upper bound of a bucket, in the quantity's unit."""
    alias: Alias
    value: float
    """Scaled to SI."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """All labels of an info metric; else empty."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What one page told."""

    engine: str
    """Name in the catalogue of engines; empty where the page does not tell (a router, a device, NIM)."""
    role: Literal["engine", "router", "device"]
    adapter: str
    """File name in ``adapters/``."""
    readings: tuple[Reading, ...]
    models: tuple[str, ...] = ()
    """Names of the models whose counters the page has, sorted."""
    notes: tuple[Message, ...] = ()
    dropped: int = 0
    """Samples that no adapter reads."""
    not_numbers: int = 0
    """Samples of interest that were NaN or infinite: no samples."""
    duplicates: int = 0
    """Samples that stood on the page before, with the same labels: the first is taken, as Prometheus does."""
    damaged: int = 0
    """Lines of interest that could not be read."""
    started_s: float | None = None
    """Unix seconds when the process started, where the page says so."""
    since: Literal["start", "last_reading"] = "start"
    """Since when its counters and histograms count: a page that is emptied by reading has to be added up (``added``)."""
    not_exposed: tuple[NotExposed, ...] = ()
    """What this engine does not tell, and what to do instead."""


def read(body: bytes, content_type: str = "", engine: str | None = None, *, model: str | None = None, target: str = "") -> Page:
    """The readings of a page as it came; ``engine`` and ``model`` choose where it has several, ``target`` names it in errors."""
    raise NotImplementedError


def added(before: Page, page: Page) -> Page:
    """A page whose counters count since the last reading, added to what was counted before."""
    raise NotImplementedError
