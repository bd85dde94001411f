"""All figures of the page, gathered once: accuracy.json is this, and the page is written from nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from accuracy import figures, rivals, roofline, rows
from accuracy.kinds import KINDS, LEVERS, Source, chosen, sources
from accuracy.mechanisms import mechanism, why
from accuracy.parts import Part, parts
from accuracy.targets import targets
from breakeven.calibration.backtest import Backtest
from breakeven.draws import MEDIAN
from breakeven.evaluator import Noise, Point, evaluate
from breakeven.measured.files import Measured
from breakeven.measured.pair import Pair
from breakeven.spec.deployment import Deployment

SCHEMA = "breakeven.accuracy/1"
BEST = ("left_out", "shipped")
"""The level that rows are shown at: left out where it could be made."""


def document(folder: Path, measured: Measured, levels: Mapping[str, Backtest]) -> dict[str, Any]:
    """Every figure."""
    held = sources(measured)
    best = next(name for name in BEST if name in levels)
    shown = levels[best]
    told = {
        "schema": SCHEMA,
        "shown": best,
        "data": rows.fingerprints(folder),
        "draws": shown.draws,
        "seed": shown.seed,
        "rows": {"pairs": len(measured.pairs), "runs": len(measured.runs), "skipped": len(measured.skipped), "bad": len(measured.bad)},
        "levels": {name: figures.level(found, held) for name, found in levels.items()},
        "overall": {name: overall(found) for name, found in levels.items()},
        "regimes": figures.by_regime(shown, held),
        "devices": figures.by_device(shown, held),
        "apart": figures.apart(shown, held),
        "worst": figures.worst(shown, held, mechanism),
        "rivals": rivals_of(levels["shipped"], held, by(held, rivals.by_roofline, roofline.point)),
        "parts": parts_of(levels["shipped"], held),
        "skipped": reasons(measured.skipped),
        "bad": reasons(measured.bad),
        "serving_unanswered": sum(1 for each in shown.skipped if each.where in held and each.lever not in LEVERS),
    }
    told["targets"] = [asdict(each) | {"why": "" if each.met else why(each.name)} for each in targets(told)]
    return figures.rounded(told)  # type: ignore[return-value]


def overall(found: Backtest) -> dict[str, Any]:
    """All levers in one."""
    pairs: list[tuple[str, float, float]] = []
    for kind in KINDS:
        if kind.name in LEVERS:
            pairs += [(each.group, kind.estimate(each).measured, kind.estimate(each).predicted) for each in chosen(found.rows, kind)]
    return figures.sizes(pairs, signed=True)


def reasons(skipped: object) -> dict[str, int]:
    """How many rows for each reason, most first."""
    counted = Counter(each.reason.key for each in skipped)  # type: ignore[attr-defined]
    return dict(counted.most_common())


def rivals_of(found: Backtest, held: Mapping[str, Source], by_roofline: figures.Values) -> dict[str, Any]:
    """The model as shipped, the bare roofline and the rules of thumb over the same rows."""
    by_rules = {where: rivals.rules(row) for where, row in held.items() if isinstance(row, Pair)}
    told = {"model": figures.compared(found, held, predicted(found)), "roofline": figures.compared(found, held, by_roofline)}
    for name in dict.fromkeys(name for rules in rivals.RULES.values() for name in rules):
        said = {where: {held[where].lever: rules[name]} for where, rules in by_rules.items() if name in rules}  # type: ignore[union-attr]
        told[name] = figures.compared(found, held, said)
    return told


def predicted(found: Backtest) -> figures.Values:
    """What a backtest says of each row."""
    return {
        each.where: {kind.name: kind.estimate(each).predicted for kind in KINDS if kind.lever == each.lever and kind.of(each)}
        for each in found.rows
    }


def by(held: Mapping[str, Source], gain: Callable[[Pair], float], point: Callable[[Deployment], Point]) -> figures.Values:
    """What something else says of each row."""
    return {where: {row.lever: gain(row)} if isinstance(row, Pair) else times(point(row.deployment)) for where, row in held.items()}


def times(point: Point) -> dict[str, float]:
    """The times that are scored of a point."""
    found = {"tpot": point.tpot_s, "ttft": point.ttft_s}
    return {name: float(np.asarray(value)) for name, value in found.items() if value is not None}


def parts_of(found: Backtest, held: Mapping[str, Source]) -> dict[str, Any]:
    """The model as shipped with one part switched off, over the same rows."""
    return {
        part.name: figures.compared(found, held, by(held, partial(gain_without, part), partial(point_without, part))) for part in parts()
    }


def gain_without(part: Part, pair: Pair) -> float:
    """A row's gain by the model without a part."""
    changed = replace(pair, off=part.without(pair.off), on=part.without(pair.on))
    return rivals.number(changed.gain(MEDIAN, Noise()))


def point_without(part: Part, d: Deployment) -> Point:
    """A run by the model without a part."""
    return evaluate(part.without(d))
