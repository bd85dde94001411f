"""Every reported case put to the product, and whether what comes out is what was reported: ``score(shared)``.

As a table: ``python tests/published/case_score.py SHARED``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from case_arms import Arm, NotEncodable, arms_of
from case_mapping import absent, class_of, is_binding, meets
from case_sides import arms_at
from case_words import Row, words_of
from published_models import ModelOf, model_finder

from breakeven import load, support
from breakeven.api import lever_named
from breakeven.draws import Draws
from breakeven.errors import InputError
from breakeven.evaluator import evaluate
from breakeven.judge import arms as both_arms
from breakeven.judge import default_objective, gain_draws, quantile, verdict_of
from breakeven.kernels import kv_names, on_device, weight_names
from breakeven.measure import measure_next
from breakeven.messages import text

THRESHOLD = 0.05
DRAWS = Draws(256)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What comes out of one arm."""

    label: str
    want: str
    came: str
    """A class, ``undecided``, ``not_supported`` or ``not_modelled``."""
    gain: float | None
    right: bool
    why: str = ""
    """The refusal, or what is to be measured."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A case and what comes out of it. ``right`` is None where the row is an exact test of its own."""

    id: str
    verdict_class: str
    confidence: str
    binding: bool
    ours: str
    right: bool | None
    reason: str
    outcomes: tuple[Outcome, ...] = ()


def read_cases(shared: Path) -> list[Row]:
    with (shared / "cases" / "cases.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def score(shared: Path) -> list[Scored]:
    """All rows of the file, in its order."""
    model_of = model_finder(shared)
    return [scored(row, model_of) for row in read_cases(shared)]


def scored(row: Row, model_of: ModelOf) -> Scored:
    known = {
        "id": str(row["id"]), "verdict_class": str(row["verdict_class"]), "confidence": str(row["confidence"]), "binding": is_binding(row),
    }  # fmt: skip
    if row["verdict_class"] == "fixture":
        return Scored(**known, ours="exact test", right=None, reason="")  # type: ignore[arg-type]
    try:
        arms = arms_of(row, model_of)
        if row["verdict_class"] == "boundary":
            arms = arms_at(row, arms)
        outcomes = tuple(outcome(arm, row) for arm in arms)
    except NotEncodable as reason:
        return Scored(**known, ours="not encodable", right=False, reason=str(reason))  # type: ignore[arg-type]
    if row["verdict_class"] != "not_enough_information":
        right = bool(outcomes) and all(o.right for o in outcomes)
        return Scored(**known, ours=said(outcomes), right=right, reason=reason_of(outcomes, row), outcomes=outcomes)  # type: ignore[arg-type]
    asked = asked_for(row)
    right = bool(asked) or any(o.came == "undecided" and o.why for o in outcomes)
    ours, reason = ("asks for what is missing", asked) if asked else (said(outcomes), next((o.why for o in outcomes if o.why), ""))
    return Scored(**known, ours=ours, right=right, reason=reason, outcomes=outcomes)  # type: ignore[arg-type]


def asked_for(row: Row) -> str:
    """The line by which the product asks for the device or the model that a row does not name; empty where both are named."""
    words = words_of(row)
    given: dict[str, object] = {"concurrency": 1, "input_tokens": 512, "output_tokens": 256}
    given |= {"model": words.models[0]} if words.model_named else {}
    given |= {"hardware": words.devices[0]} if words.device_named else {}
    try:
        load(flags=given)
    except InputError as missing:
        return str(missing)
    return ""


NOT_MODELLED = "not_modelled"
"""A format that the product does not know: said plainly, and no answer to whether it pays."""


def refusal_of(arm: Arm) -> tuple[str, str] | None:
    """Why a setting is not to be had, by the rules of the support matrix; or that its format is not modelled at all.

    A weight format without its matrix unit is none: the checkpoint runs by the family that computes in 16 bits, and that is put.
    """
    families = {"kv_quant": kv_names(), "weight_quant": weight_names()}.get(arm.lever)
    if arm.refused is not None:
        return NOT_MODELLED, text(arm.refused)
    if families is not None and arm.setting not in families:
        return NOT_MODELLED, f"no kernel family {arm.setting}"
    if arm.lever == "weight_quant" and on_device(arm.setting, arm.off.hardware.device).name != arm.setting:
        return None
    found = support.support(arm.lever, arm.setting, arm.off)
    return None if found.supported or found.reason is None else ("not_supported", text(found.reason))


def outcome(arm: Arm, row: Row) -> Outcome:
    """An arm judged as the product judges it, at a threshold of 5 %."""
    refusal = refusal_of(arm)
    if refusal is not None:
        right = arm.want in ("hurts", "no_gain") and refusal[0] != NOT_MODELLED
        return Outcome(label=arm.label, want=arm.want, came=refusal[0], gain=None, right=right, why=refusal[1])
    judged = both_arms(lever_named(arm.lever), arm.off, arm.setting, DRAWS)
    metric = arm.metric or default_objective(arm.off, evaluate(arm.off))[0]
    draws = gain_draws(judged.point_off, judged.point_on, metric)
    assert draws is not None
    gain, verdict = quantile(np.asarray(draws), 0.5), verdict_of(np.asarray(draws), THRESHOLD)
    came, why = class_of(gain), ""
    right = arm.want != "not_enough_information" and meets(arm.want, gain)
    if verdict == "undecided":
        nearest = measure_next(judged, metric, THRESHOLD, DRAWS)
        why = "" if nearest is None else f"measure {nearest.quantity}: {nearest.command}"
        if arm.want == "not_enough_information" or (not right and absent(row)):
            came, right = "undecided", bool(why)
    return Outcome(label=arm.label, want=arm.want, came=came, gain=gain, right=right, why=why)


def said(outcomes: Iterable[Outcome]) -> str:
    counted = Counter(o.came for o in outcomes)
    return ", ".join(name if len(counted) == 1 else f"{count} × {name}" for name, count in counted.items())


def reason_of(outcomes: tuple[Outcome, ...], row: Row) -> str:
    """One line: gains where they decide, what is refused, what a row lacks where it is undecided."""
    gains = [o.gain for o in outcomes if o.gain is not None]
    parts = [f"gain {min(gains):.2f} to {max(gains):.2f}" if len(gains) > 1 else f"gain {gains[0]:.2f}"] if gains else []
    parts += sorted({o.why for o in outcomes if o.gain is None})[:1]
    if any(o.came == "undecided" for o in outcomes):
        parts.append(f"not stated: {', '.join(absent(row)) or 'nothing that it calls for'}")
    return "; ".join(parts)


def share(rows: Iterable[Scored]) -> tuple[int, int]:
    """How many are right, of how many."""
    counted = [row.right for row in rows if row.right is not None]
    return sum(counted), len(counted)


def table(rows: Iterable[Scored]) -> str:
    """A line for each row, and the share at the end."""
    listed = list(rows)
    lines = [f"{_mark(row)} {row.id} | {row.verdict_class} ({row.confidence}) | {row.ours} | {row.reason}" for row in listed]
    right, count = share(listed)
    return "\n".join([*lines, f"right {right} of {count}: {right / max(count, 1):.0%}"])


def _mark(row: Scored) -> str:
    return {True: "right", False: "WRONG", None: "exact"}[row.right]


def page(scores: Iterable[Scored]) -> str:
    """Rows that bind, the others and the exact tests, each with its share."""
    listed = list(scores)
    parts = {
        "Binding: high or medium confidence, a device and a model named": [row for row in listed if row.binding],
        "Others": [row for row in listed if not row.binding and row.right is not None],
    }
    exact = ", ".join(row.id for row in listed if row.right is None)
    return "\n\n".join([*(f"{title}\n{table(rows)}" for title, rows in parts.items()), f"Exact tests: {exact}"]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(score(Path(sys.argv[1]))))
