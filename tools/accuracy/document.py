"""All figures of the page, gathered once: accuracy.json is this, and the page is written from nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accuracy import figures, rows
from accuracy.cases import cases
from accuracy.instead import PART, ROOFLINE, RULES
from accuracy.kinds import KINDS, LEVERS, Source, chosen, sources
from accuracy.mechanisms import mechanism, why
from accuracy.parts import parts
from accuracy.targets import targets
from breakeven.calibration.answer import Answer
from breakeven.calibration.backtest import Backtest
from breakeven.measured.files import Measured
from breakeven.messages import Message

LOAD = ("silicon_tpot_ms", "concurrency", "isl", "osl")
SCHEMA = "breakeven.accuracy/1"
BEST = ("left_out", "shipped")
"""The level that rows are shown at: left out where it could be made."""


def document(folder: Path, measured: Measured, levels: Mapping[str, Backtest], instead: Mapping[str, figures.Values]) -> dict[str, Any]:
    """Every figure."""
    held = sources(measured)
    best = next(name for name in BEST if name in levels)
    shown = levels[best]
    bad = {each.where: each.reason for each in measured.bad} | {where: row.doubt for where, row in held.items() if row.doubt is not None}
    told = {
        "schema": SCHEMA,
        "shown": best,
        "data": rows.fingerprints(folder),
        "draws": shown.draws,
        "seed": shown.seed,
        "rows": {"pairs": len(measured.pairs), "runs": len(measured.runs), "skipped": len(measured.skipped), "bad": len(bad)},
        "levels": {name: figures.level(found, held) for name, found in levels.items()},
        "overall": {name: told for name, found in levels.items() if (told := overall(found))},
        "regimes": figures.by_regime(shown, held),
        "devices": figures.by_device(shown, held),
        "apart": figures.apart(shown, held),
        "worst": figures.worst(shown, held, mechanism),
        "rivals": rivals_of(levels["shipped"], shown, held, instead),
        "parts": parts_of(levels["shipped"], held, instead),
        "cases": cases(folder),
        "skipped": reasons(each.reason for each in measured.skipped),
        "bad": reasons(bad.values()),
        "serving_unanswered": unanswered(measured, shown),
    }
    told["targets"] = [asdict(each) | {"why": "" if each.met else why(each.name)} for each in targets(told)]
    return figures.rounded(told)  # type: ignore[return-value]


def unanswered(measured: Measured, found: Backtest) -> int:
    """Aggregated rows that state their load and a time, and have no answer."""
    answered = {each.where for each in found.answered}
    stated = (
        where for where, row in measured.rows.items() if row.fields.get("mode", "agg") in ("agg", "") and all(map(row.fields.get, LOAD))
    )
    return sum(where not in answered for where in stated)


def overall(found: Backtest) -> dict[str, Any]:
    """All levers in one; nothing of a level that has runs only."""
    pairs: list[tuple[str, float, float]] = []
    for kind in KINDS:
        if kind.name in LEVERS:
            pairs += [(each.group, kind.estimate(each).measured, kind.estimate(each).predicted) for each in chosen(found.rows, kind)]
    return figures.sizes(pairs, signed=True) if pairs else {}


def reasons(told: Iterable[Message]) -> dict[str, int]:
    """How many rows for each reason, most first."""
    return dict(Counter(each.key for each in told).most_common())


def rivals_of(found: Backtest, shown: Backtest, held: Mapping[str, Source], instead: Mapping[str, figures.Values]) -> dict[str, Any]:
    """The model left out and as shipped, the bare roofline and the rules of thumb, over the same rows."""
    models = {"shown": predicted(shown), "model": predicted(found), ROOFLINE: instead[ROOFLINE]}
    rules = {name.removeprefix(f"{RULES}:"): values for name, values in instead.items() if name.startswith(f"{RULES}:")}
    return {name: figures.compared(found, held, values) for name, values in (models | rules).items()}


def parts_of(found: Backtest, held: Mapping[str, Source], instead: Mapping[str, figures.Values]) -> dict[str, Any]:
    """The model as shipped with one part switched off, over the same rows."""
    return {part.name: figures.compared(found, held, instead[f"{PART}:{part.name}"]) for part in parts()}


def predicted(found: Backtest) -> figures.Values:
    """What a backtest says of each row."""
    return {each.where: estimates(each) for each in found.rows}


def estimates(answer: Answer) -> dict[str, float]:
    """What is predicted, by kind."""
    return {kind.name: value.predicted for kind in KINDS if kind.lever == answer.lever and (value := kind.of(answer)) is not None}
