"""The readings of a page by what they tell."""

from __future__ import annotations

from breakeven.exposition.gathered import Reading
from breakeven.exposition.page import Page


def by_quantity(page: Page) -> dict[str, tuple[Reading, ...]]:
    return {
        quantity: tuple(one for one in page.readings if one.quantity == quantity) for quantity in {one.quantity for one in page.readings}
    }
