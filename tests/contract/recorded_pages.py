"""Recorded pages put one after the other, as an observation would have read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from breakeven.observation import page as pages
from breakeven.observation.page import Page
from breakeven.observation.record import RISING, Record
from breakeven.observation.scrape import Read
from breakeven.observation.timeline import Timeline

TEXT = "text/plain; version=0.0.4"
START_S = 1_796_000_000.0


def observed(shared: Path, names: Sequence[str], *, every_s: float = 20.0, source: str = "http://127.0.0.1:8000") -> Timeline:
    """A timeline of recorded pages, one each so many seconds."""
    record = Record(every_s=every_s)
    for place, name in enumerate(names):
        body = (shared / "snapshots" / name).read_bytes()
        record.add(Read(source=source, at_s=START_S + place * every_s, page=pages.read(body, TEXT)))
    return record.timeline()


def from_nothing(page: Page, *, seconds: float = 60.0, readings: int = 13) -> Timeline:
    """A page whose counters rose evenly from 0 to what it shows, its gauges standing as they do."""
    record = Record(every_s=seconds / (readings - 1))
    for place in range(readings):
        share = place / (readings - 1)
        risen = tuple(replace(one, value=one.value * share) if one.quantity in RISING else one for one in page.readings)
        record.add(Read(source="http://127.0.0.1:8000", at_s=START_S + share * seconds, page=replace(page, readings=risen, started_s=None)))
    return record.timeline()
