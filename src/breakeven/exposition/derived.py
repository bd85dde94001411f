"""Quantities that a page tells by two of its numbers: blocks to shares and tokens, a lifetime average to a sum that can be differenced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven.exposition.gathered import Reading
from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A quantity made of two others of the same rank at the same moment."""

    quantity: str
    first: str
    """The one whose metric is said."""
    second: str
    made: Callable[[Array, Array], Array]
    """Numbers or arrays over time."""


def _share(used: Array, total: Array) -> Array:
    return np.where(total > 0, used / np.where(total > 0, total, 1.0), 0.0)


RULES = (
    Rule(quantity="busy_sequence_steps", first="busy_per_step", second="steps", made=np.multiply),
    Rule(quantity="kv_usage", first="kv_used_blocks", second="kv_total_blocks", made=_share),
    Rule(quantity="kv_total_tokens", first="kv_total_blocks", second="kv_block_tokens", made=np.multiply),
    Rule(quantity="kv_used_tokens", first="kv_used_blocks", second="kv_block_tokens", made=np.multiply),
    Rule(quantity="kv_usage", first="kv_used_tokens", second="kv_total_tokens", made=_share),
    Rule(quantity="prompt_tokens", first="prompt_tokens_computed", second="prompt_tokens_cached", made=np.add),
    Rule(quantity="drafts", first="emitted_tokens", second="accepted_tokens", made=np.subtract),
    Rule(quantity="running", first="running_prefill", second="running_decode", made=np.add),
)
"""In order: a rule may take what one before it made. None replaces what the page tells itself."""


def derived(readings: Sequence[Reading]) -> list[Reading]:
    """What follows from a page's readings, rank by rank."""
    found = {(one.quantity, one.rank): one for one in readings if not one.split and not one.part}
    told = {one.quantity for one in readings}
    made: list[Reading] = []
    for rule in RULES:
        if rule.quantity in told:
            continue
        for (quantity, rank), first in list(found.items()):
            second = found.get((rule.second, rank))
            if quantity == rule.first and second is not None:
                value = float(rule.made(np.array(first.value), np.array(second.value)))
                one = replace(first, quantity=rule.quantity, value=value, lacking=first.lacking | second.lacking)
                found[rule.quantity, rank] = one
                made.append(one)
        told |= {one.quantity for one in made}
    return made
