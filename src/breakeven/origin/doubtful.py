"""What speaks against a calibration, said where it is used: an unsteady measurement, a fit that misses its rows, numbers left open."""

from __future__ import annotations

from math import expm1, hypot, log

from breakeven.messages import Message
from breakeven.origin.expired import COMMAND
from breakeven.spec.calibration_file import MOSTLY, UNSTEADY, CalibrationFile

STEP = "step."
"""Numbers of a step, on which every verdict rests: those of a first token take loads of their own, which few calibrations have."""


def doubts_of(document: CalibrationFile) -> tuple[Message, ...]:
    """Each doubt with its figure; none of a quiet measurement, nor of what an older file does not tell."""
    return (*_of_the_load(document), *_of_the_fit(document))


def told_of_doubts(document: CalibrationFile, name: str) -> tuple[Message, ...]:
    """A line for each doubt: the file, the figure, and what to do."""
    command = document.made.command or COMMAND
    return tuple(
        Message(f"warning.calibration_{doubt.key.partition('.')[2]}", {**doubt.values, "name": name, "command": command})
        for doubt in doubts_of(document)
    )


def _of_the_load(document: CalibrationFile) -> list[Message]:
    """Of a running engine: rounds of one point that lay apart, and tokens that went to others."""
    found, sent = list[Message](), document.sent
    if sent is not None and sent.spread is not None and sent.spread > UNSTEADY:
        found.append(Message("doubt.unsteady_rounds", {"spread": sent.spread - 1.0}))
    if sent is not None and sent.others_tokens and sent.output_tokens:
        found.append(Message("doubt.used_by_others", {"share": sent.others_tokens / sent.output_tokens}))
    return found


def _of_the_fit(document: CalibrationFile) -> list[Message]:
    """Rows that lie far about the numbers that were fitted to them, and numbers that the rows say nothing of."""
    found, missed = list[Message](), _missed(document)
    of_a_step = [one for name, one in document.parameters.items() if name.startswith(STEP)]
    determined, numbers = sum(one.determined for one in of_a_step), len(of_a_step)
    if missed > log(UNSTEADY):
        found.append(Message("doubt.missed_rows", {"error": expm1(missed)}))
    if determined < MOSTLY * numbers:
        found.append(Message("doubt.left_open", {"determined": determined, "numbers": numbers}))
    return found


def _missed(document: CalibrationFile) -> float:
    """Deviation of ln(measured/model) of TPOT in the fit. Of several deployments without their offsets, which their own rows correct."""
    left = document.residual.get("deployment", {})
    within, between = (left.get(f"tpot_{part}", 0.0) for part in ("within", "between"))
    return within if document.made.groups > 1 else hypot(within, between)
