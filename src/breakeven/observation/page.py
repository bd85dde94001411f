"""The page of a running engine, as observation reads it."""

from __future__ import annotations

from breakeven.exposition.page import Page, Reading, added, read
from breakeven.exposition.places import Key, Place, adapter, families, key, places

__all__ = ["Key", "Page", "Place", "Reading", "adapter", "added", "families", "key", "places", "read"]
