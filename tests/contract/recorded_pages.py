"""Recorded pages put one after the other, as an observation would have read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from breakeven.observation import page as pages
from breakeven.observation.record import Record
from breakeven.observation.scrape import Read
from breakeven.observation.timeline import Timeline

TEXT = "text/plain; version=0.0.4"


def observed(shared: Path, names: Sequence[str], *, every_s: float = 20.0, source: str = "http://127.0.0.1:8000") -> Timeline:
    """A timeline of recorded pages, one each so many seconds."""
    record = Record(every_s=every_s)
    for place, name in enumerate(names):
        body = (shared / "snapshots" / name).read_bytes()
        record.add(Read(source=source, at_s=1_796_000_000.0 + place * every_s, page=pages.read(body, TEXT)))
    return record.timeline()
