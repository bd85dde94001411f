"""The page of a running engine, as observation reads it."""

from __future__ import annotations

from breakeven.exposition.gathered import Reading
from breakeven.exposition.page import Page, added, not_numbers, read
from breakeven.exposition.places import Key, Place, adapter, families, key, places

__all__ = ["Key", "Page", "Place", "Reading", "adapter", "added", "families", "key", "not_numbers", "places", "read"]
