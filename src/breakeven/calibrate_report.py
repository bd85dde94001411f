"""A calibration becomes a document: sentences in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite, log
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType

from breakeven.calibrate_document import (
    CalibrateCurve,
    CalibrateDocument,
    CalibrateFile,
    CalibrateGroup,
    CalibrateLoad,
    CalibrateNext,
    CalibrateNote,
    CalibrateParameter,
    CalibratePoint,
    CalibrateReason,
    CalibrateRow,
    CalibrateTied,
    CalibrateVerification,
)
from breakeven.calibration.calibrate import Calibrated
from breakeven.calibration.fitted import Residual
from breakeven.calibration.identify import Tied, left_of_prior
from breakeven.calibration.points import MeasuredPoint
from breakeven.compose import Language, figure, sure
from breakeven.measured.curves import Drawn
from breakeven.measured.row import Skipped
from breakeven.messages import Message, say, text

WORST = 5
PLACES = 5
TERMS: Mapping[str, tuple[str, int]] = {
    "step.bandwidth_dense": ("W/(BW·η)", -1),
    "step.bandwidth_experts": ("W_x·cov/(BW·η_x)", -1),
    "step.bandwidth_kv": ("b·K(c)/(BW·η_kv)", -1),
    "step.mfu_decode": ("2·N·n/(F·η_f)", -1),
    "step.mfu_decode_experts": ("2·N_x·n/(F·η_fx)", -1),
    "step.layer_s": ("L·t_layer", 1),
    "step.mla_layer_s": ("L·t_mla", 1),
    "step.moe_layer_s": ("L_moe·t_x", 1),
    "step.sequence_s": ("b·t_seq", 1),
    "step.host_s": ("t_host", 1),
    "step.allreduce_s": ("2·L·log2(TP)·t_ar", 1),
    "step.link_efficiency": ("n·bytes/(link·η_link)", -1),
    "step.logit_bytes": ("b·V·s_b/BW", 1),
    "prefill.mfu_dense": ("2·N·I/(F·η_pf)", -1),
    "prefill.mfu_experts": ("2·N_x·I/(F·η_pfx)", -1),
    "prefill.mfu_attention": ("FLOP_att/(F·η_fa)", -1),
    "prefill.interference": ("ξ·T_mix", 1),
    "ttft.start_s": ("t₀", 1),
    "ttft.steps": ("t_w·t_step", 1),
    "ttft.layer_s": ("L·t_lp", 1),
    "ttft.burst": ("β·(C − 1)·T_pf/2", 1),
    "ttft.queue": ("μ·(C − 1)(1 − f)·T_pf", 1),
}
"""A parameter's term of the time, and whether the time rises with it."""


def compose(found: Calibrated, language: Language = "en", written: str | None = None) -> CalibrateDocument:
    """The document of a calibration."""
    made = found.document.made
    return CalibrateDocument(
        language=language,
        command=made.command,
        date=made.date,
        files=[CalibrateFile(name=file.name, rows=file.rows, sha256=file.sha256) for file in found.document.files],
        rows=made.rows,
        groups=made.groups,
        pairs=found.pairs,
        parameters=list(_parameters(found)),
        deviations={level: {name: sure(value) for name, value in of.items()} for level, of in found.document.residual.items()},
        residuals=_groups(found.fit.residuals),
        worst=[_row(one) for one in sorted(found.fit.residuals, key=lambda one: -abs(_error(one)))[:WORST]],
        curves=[_curve(drawn) for drawn in found.curves],
        undetermined=[one.name for one in found.undetermined],
        tied=[
            CalibrateTied(first=p.first, second=p.second, correlation=sure(p.correlation), sentence=combination(p, language))
            for p in found.tied
        ],
        measure_next=[
            CalibrateNext(
                run=one.run,
                sentence=say(f"calibrate.run_{one.run}", language),
                parameters=list(one.parameters),
                commands=list(one.commands),
            )
            for one in found.to_measure
        ],
        left_out=_reasons(found.left_out, language),
        notes=_notes(found.notes, language),
        written=written,
        load=_load(found, language),
    )


def _load(found: Calibrated, language: Language) -> CalibrateLoad | UnsetType:
    sent, driven = found.document.sent, found.driven
    if sent is None or driven is None:
        return UNSET
    return CalibrateLoad(
        server=sent.server,
        engine=f"{sent.engine} {sent.version}".strip(),
        points_sent=sent.points,
        requests=sent.requests,
        input_tokens=sent.input_tokens,
        output_tokens=sent.output_tokens,
        seconds=sure(sent.seconds),
        machine_load_before=sent.load_before,
        machine_load_after=sent.load_after,
        points=[_point(point) for point in driven.points],
        verification=[
            CalibrateVerification(
                context_tokens=one.context_tokens,
                batch=one.batch,
                ratios={f"{k}": None if ratio is None else sure(ratio) for k, ratio in one.ratios},
            )
            for one in driven.verification
        ],
        notes=[text(note, language) for note in driven.notes],
    )


def _point(point: MeasuredPoint) -> CalibratePoint:
    return CalibratePoint(
        concurrency=point.visit.concurrency,
        context_tokens=sure(point.context_tokens),
        step_s=sure(point.step_s),
        low_s=sure(float(np.median([one.low_s for one in point.rounds]))),
        high_s=sure(float(np.median([one.high_s for one in point.rounds]))),
        rounds=len(point.rounds),
        spread=sure(point.spread),
        gaps=sum(one.gaps for one in point.rounds),
    )


def _curve(drawn: Drawn) -> CalibrateCurve:
    curve = drawn.curve
    return CalibrateCurve(
        model=curve.model,
        device=curve.device,
        engine=f"{curve.engine} {curve.version}".strip(),
        context_tokens=curve.context_tokens,
        rows=list(curve.rows),
        step_s=[sure(second) for second in curve.step_s],
        levelled=list(drawn.levelled),
    )


def _parameters(found: Calibrated) -> Iterable[CalibrateParameter]:
    for name, parameter in found.document.parameters.items():
        yield CalibrateParameter(
            name=name,
            value=sure(parameter.value),
            low=sure(parameter.low),
            high=sure(parameter.high),
            prior=sure(parameter.prior),
            rows=parameter.rows,
            determined=parameter.determined,
            left_of_prior=figure(left_of_prior(found.fit.estimates[name])),
        )


def _error(one: Residual) -> float:
    return log(one.measured / one.predicted)


def _row(one: Residual) -> CalibrateRow:
    return CalibrateRow(
        id=one.id,
        where=one.where,
        quantity=_quantity(one),
        measured=sure(one.measured),
        predicted=sure(one.predicted),
        log_error=sure(_error(one)),
    )


def _quantity(one: Residual) -> Any:
    return one.quantity


def _groups(residuals: Iterable[Residual]) -> list[CalibrateGroup]:
    """Groups by how far off they are, the worst first."""
    together: dict[tuple[str, str], list[Residual]] = {}
    for one in residuals:
        together.setdefault((one.group, one.quantity), []).append(one)
    found = [_group(group, rows) for (group, _), rows in together.items()]
    return sorted(found, key=lambda one: (-one.median_absolute, one.group, one.quantity))


def _group(group: str, rows: list[Residual]) -> CalibrateGroup:
    errors = np.array([_error(row) for row in rows])
    return CalibrateGroup(
        group=group,
        quantity=_quantity(rows[0]),
        rows=len(rows),
        median_absolute=sure(float(np.median(np.abs(errors)))),
        bias=sure(float(np.median(errors))),
        worst=sure(float(errors[np.argmax(np.abs(errors))])),
    )


def combination(pair: Tied, language: Language) -> str:
    """What of two tied numbers is known: the sum of their terms of the time where one makes up for the other, else how they compare."""
    (first, rises), (second, too) = (TERMS.get(name, (name, 1)) for name in (pair.first, pair.second))
    known = pair.correlation if isfinite(pair.correlation) else 0.0
    key = "calibrate.tied_sum" if known * rises * too < 0 else "calibrate.tied_against"
    return say(key, language, first=first, second=second, correlation=abs(known))


def _reasons(left_out: Iterable[Skipped], language: Language) -> list[CalibrateReason]:
    """Rows by reason, the commonest first."""
    ordered = _together(((row.where, row.reason) for row in left_out), language)
    return [CalibrateReason(sentence=sentence, rows=len(places), places=places[:PLACES]) for sentence, places in ordered]


def _notes(notes: Iterable[tuple[str, Message]], language: Language) -> list[CalibrateNote]:
    """Rows by what is said of them."""
    ordered = _together(notes, language)
    return [CalibrateNote(sentence=sentence, rows=len(places), places=places[:PLACES]) for sentence, places in ordered]


def _together(said: Iterable[tuple[str, Message]], language: Language) -> list[tuple[str, list[str]]]:
    """Sentences with the places that they are said of, the commonest first."""
    together: dict[str, list[str]] = {}
    for where, message in said:
        together.setdefault(text(message, language), []).append(where)
    return sorted(together.items(), key=lambda one: (-len(one[1]), one[0]))
