"""A row of a lever's measured gain becomes a pair of deployments, or one line that says why not."""

from __future__ import annotations

from math import isfinite
from types import ModuleType

from breakeven import registry
from breakeven.errors import BreakevenError
from breakeven.evaluator import Point, evaluate
from breakeven.measured import words
from breakeven.measured.conditions import Arms, check_runs
from breakeven.measured.pair import Pair
from breakeven.measured.reading import RowReading, refused
from breakeven.measured.row import NotUnderstood, Row
from breakeven.spec.deployment import Deployment

BOTH = "+"


def pair_of(row: Row) -> Pair:
    """The row's two arms and how it measures their speed; NotUnderstood says what is missing or not modelled."""
    r = RowReading(row=row)
    levers = [words.lever(each) for each in r.text("lever").split(BOTH)]
    measured = gain_of(r)
    try:
        arms = _arms(r, levers)
        off, on = evaluate(arms.off), evaluate(arms.on)
        check_runs(arms, off, on)
        sigma_row = arms.sigma_row or _sigma_row(levers[0], arms.on, off, on)
        exposure = _exposure(levers[0], sigma_row, off) if arms.exposure is None else arms.exposure
    except BreakevenError as error:
        raise NotUnderstood(error.message) from error
    regime = arms.regime if len(levers) == 1 else "levers together"
    return Pair(
        id=row.id,
        where=row.where,
        lever=levers[0],
        regime=regime,
        group=r.text("group") or row.id,
        quality=r.text("quality"),
        measured=measured,
        off=arms.off,
        on=arms.on,
        speed=arms.speed,
        sigma_row=sigma_row,
        exposure=exposure,
        notes=r.notes,
    )


def _arms(r: RowReading, levers: list[str]) -> Arms:
    first, *others = (registry.module("measured.arms", lever) for lever in levers)

    def also(d: Deployment) -> Deployment:
        for module in others:
            d = _turned_on(module, r, d)
        return d

    arms: Arms = first.arms(r, also)
    return arms


def _turned_on(module: ModuleType, r: RowReading, d: Deployment) -> Deployment:
    if not hasattr(module, "turn_on"):
        raise refused("not_together")
    found: Deployment = module.turn_on(r, d)
    return found


def _sigma_row(lever: str, d: Deployment, off: Point, on: Point) -> str:
    """The row of its table that a lever takes; empty where it takes several together."""
    module = registry.module("levers", lever)
    return str(module.sigma_row(d, off, on)) if hasattr(module, "sigma_row") else ""


def _exposure(lever: str, row: str, off: Point) -> float | None:
    """The share of the step that a row's error applies to, of levers that change a part of it; None of the others."""
    module = registry.module("levers", lever)
    return float(module.exposure(row, off)) if row in getattr(module, "IN_PART", ()) else None


def gain_of(r: RowReading) -> float:
    """The gain as stated, above 1 better; else from the two values, and whether less is better."""
    if r.stated("metric") and r.metric().kind == "hit_rate":
        raise refused("hits_are_no_gain")
    stated = words.number(r.text("gain_gt1_is_better"))
    if stated is None:
        off, on = (words.number(r.text(name)) for name in ("value_off", "value_on"))
        if off is None or on is None or not r.stated("metric"):
            raise refused("gain_missing")
        stated = (off / on if on else 0.0) if r.metric().inverts else (on / off if off else 0.0)
    if not isfinite(stated) or stated <= 0.0:
        raise refused("gain_impossible", gain=stated)
    return stated
