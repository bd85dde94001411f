"""The page of a running engine, as observation reads it."""

from __future__ import annotations

from breakeven.exposition.gathered import Reading
from breakeven.exposition.page import Page, added, not_numbers, read, unsure
from breakeven.exposition.places import Key, Part, Place, adapter, families, key, places

__all__ = ["Key", "Page", "Part", "Place", "Reading", "adapter", "added", "families", "key", "not_numbers", "places", "read", "unsure"]
