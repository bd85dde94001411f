"""A row of a lever's measured gain becomes a pair of deployments, or one line that says why not."""

from __future__ import annotations

from breakeven import registry
from breakeven.errors import BreakevenError
from breakeven.measured.conditions import Arms, check_fits, text
from breakeven.measured.pair import Pair
from breakeven.measured.row import NotUnderstood, Row
from breakeven.measured.strings import refused

LEVERS = {
    "weight_quant": "weight_quant",
    "kv_quant": "kv_quant",
    "prefix_caching": "prefix_cache",
    "prefix_cache": "prefix_cache",
    "speculative_decoding": "speculation",
    "speculation": "speculation",
    "batching": "batching",
}


def pair_of(row: Row) -> Pair:
    """The row's two arms and how it measures their speed; NotUnderstood says what is missing or not modelled."""
    lever = LEVERS.get(text(row, "lever"))
    if lever is None:
        raise refused("lever_unknown", written=text(row, "lever"))
    measured = _gain(row)
    try:
        arms: Arms = registry.module("measured.arms", lever).arms(row)
        check_fits(arms.off)
        check_fits(arms.on)
    except BreakevenError as error:
        raise NotUnderstood(error.message) from error
    return Pair(
        id=row.id,
        where=row.where,
        lever=lever,
        regime=arms.regime,
        group=text(row, "group") or row.id,
        quality=text(row, "quality"),
        measured=measured,
        off=arms.off,
        on=arms.on,
        speed=arms.speed,
        sigma_row=arms.sigma_row,
        notes=arms.notes,
    )


def _gain(row: Row) -> float:
    """The gain as stated, above 1 better."""
    stated = text(row, "gain_gt1_is_better")
    if not stated:
        raise refused("gain_missing")
    return float(stated)
