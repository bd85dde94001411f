"""Results to documents: every message said in one language, every number made plain and finite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np
from msgspec import UNSET, UnsetType

from breakeven import advice as a
from breakeven import document as d
from breakeven import support
from breakeven.lever import versions
from breakeven.messages import Message, say, text
from breakeven.observed_document import Observed
from breakeven.phrasing import (
    DOES_NOT_FIT,
    asked,
    boundary_words,
    headline,
    lever_title,
    observed_sentence,
    operating_sentence,
    over_time_words,
    pays_where,
)
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model
from breakeven.spec.parallel import layout

Language = Literal["en", "zh"]
EXACT = Message("lever.accuracy_exact")
FIGURES = 12
"""Figures kept: bytes stay exact, and the last bits of a processor's arithmetic do not reach the reader."""
RULES_OF: Mapping[str, tuple[str, ...]] = {
    "amortised": ("batching",),
    "kv_below_10_percent": ("kv_quant",),
    "batch_below_4": ("batching",),
    "prefix_ceiling": ("prefix_cache",),
    "historical_speculation": ("speculation",),
}
"""Rule of thumb to the levers it speaks of; one that is not here speaks of all."""
VERDICT_SIDE = {"pays": 1, "does_not_pay": -1, "hurts": -1}
WORSE = 0.98
"""A gain below this moves the other way, whether or not that is sure."""


def figure(value: float | None) -> float | None:
    """A finite number, or None where it is unbounded or not known."""
    if value is None or not isfinite(value):
        return None
    return float(f"{value:.{FIGURES}g}")


def sure(value: float) -> float:
    """A number that has to be finite: if it is not, the model is at fault and the reader is not told a figure."""
    if not isfinite(value):
        raise ArithmeticError(f"a figure of the report is {value}")
    return float(f"{value:.{FIGURES}g}")


def plain(value: object, language: Language) -> Any:
    """Any value of ours as JSON knows it."""
    if isinstance(value, Message):
        return text(value, language)
    if isinstance(value, Calibration):
        return _calibration(value, language)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), language) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(value[key], language) for key in value}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), language)
    if isinstance(value, (list, tuple)):
        return [plain(item, language) for item in value]
    if isinstance(value, (float, np.floating)):
        return figure(float(value))
    return int(value) if isinstance(value, np.integer) else value


def _calibration(calibration: Calibration, language: Language) -> dict[str, Any]:
    """The numbers of a calibration, and its curves without the whole model each was measured on."""
    curves = [
        {"model": c.model.name, "context_tokens": c.context_tokens, "rows": list(c.rows), "step_s": list(c.step_s)}
        for c in calibration.curves
    ]
    return {"basis": plain(calibration.basis, language), "values": plain(calibration.values, language), "curves": curves}


def at(deployment: Deployment, path: str) -> object:
    """The value that a dotted path names, or None where the path names no field."""
    value: object = deployment
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def _input(deployment: Deployment, path: str, language: Language) -> Any:
    value = at(deployment, path)
    if isinstance(value, Calibration):
        return value.basis.name if value.basis is not None else None
    return plain(value.name if isinstance(value, (Device, Model)) else value, language)


def _said(messages: Iterable[Message], language: Language) -> list[str]:
    return [text(message, language) for message in messages]


def _interval(interval: a.Interval) -> d.Interval:
    return d.Interval(median=figure(interval.median), low=figure(interval.low), high=figure(interval.high))


def _gain(gain: a.Gain, language: Language) -> d.Gain:
    return d.Gain(
        gain=figure(gain.gain),
        low=figure(gain.low),
        high=figure(gain.high),
        verdict=gain.verdict,
        note=text(gain.note, language) if gain.note else None,
    )


def _gains(one: a.LeverAdvice | a.Alternative, language: Language) -> dict[str, d.Gain]:
    """Gains by metric; what does not fit has none."""
    metrics = {} if one.verdict == DOES_NOT_FIT else one.metrics
    return {name: _gain(metrics[name], language) for name in a.METRICS if name in metrics}


def _combination(combination: a.Combination) -> d.Combination:
    known = combination.metrics if combination.fits else {}
    return d.Combination(
        levers=list(combination.levers),
        meets_slo=combination.meets_slo,
        fits=combination.fits,
        metrics={name: _interval(known[name]) for name in a.METRICS if name in known},
    )


def _point(advice: a.Advice, language: Language) -> d.OperatingPoint:
    point = advice.operating_point
    intervals = {"effective_batch": point.effective_batch_interval, "tpot_s": point.tpot_interval, "ttft_s": point.ttft_interval}
    return d.OperatingPoint(
        effective_batch=figure(point.effective_batch),
        limited_by=point.limited_by,
        saturated=point.saturated,
        request_rate_per_s=figure(point.request_rate_per_s),
        max_request_rate_per_s=figure(point.max_request_rate_per_s),
        output_tokens_per_s=figure(point.output_tokens_per_s),
        step_s=figure(point.step_s),
        tpot_s=figure(point.tpot_s),
        amortised_s_per_token=figure(point.amortised_s_per_token),
        ttft_s=figure(point.ttft_s),
        e2e_s=figure(point.e2e_s),
        prefill_share=figure(point.prefill_share),
        mean_context_tokens=figure(point.mean_context_tokens),
        tokens_per_round=figure(point.tokens_per_round),
        replicas=point.replicas,
        prefill_pool=d.PrefillPool(**plain(point.prefill_pool, language)) if point.prefill_pool is not None else None,
        intervals={name: _interval(interval) for name, interval in intervals.items()},
        sentence=operating_sentence(advice, language),
        batch_over_time=_over_time(point.batch_over_time, language),
    )


def _over_time(found: a.BatchOverTime | None, language: Language) -> d.BatchOverTime | UnsetType:
    return UNSET if found is None else d.BatchOverTime(**plain(found, language), sentence=over_time_words(found, language))


def _ledgers(advice: a.Advice) -> d.Ledgers:
    books = plain(advice.ledgers, "en")
    return d.Ledgers(
        memory=d.Memory(**books["memory"]),
        bandwidth=d.Bandwidth(**books["bandwidth"]),
        compute=d.Compute(**books["compute"]),
        interconnect=d.Interconnect(**books["interconnect"]),
        step_parts_s=books["step_parts_s"],
        devices_per_replica=layout(advice.deployment.model, advice.deployment.engine).devices,
    )


def _boundary(boundary: a.Boundary, threshold: float, language: Language) -> d.Boundary:
    return d.Boundary(
        axis=boundary.axis,
        metric=boundary.metric,
        here=sure(boundary.here),
        sentence=boundary_words(boundary, threshold, language),
        looked_at=(sure(boundary.looked_at[0]), sure(boundary.looked_at[1])),
        break_even=[d.BreakEven(value=sure(b.value), low=figure(b.low), high=figure(b.high)) for b in boundary.break_even],
        pays_on=[(figure(low), figure(high)) for low, high in boundary.pays_on],
    )


def _measure(measure: a.MeasureNext | None, language: Language) -> d.MeasureNext | None:
    if measure is None:
        return None
    low, high = measure.interval_after
    return d.MeasureNext(
        quantity=measure.quantity,
        sentence=text(measure.sentence, language),
        command=measure.command,
        settles=list(measure.settles),
        interval_after=(sure(low), sure(high)),
    )


def against(verdict: str, metrics: Mapping[a.Metric, a.Gain]) -> list[str]:
    """Metrics that go the other way: at the median where the lever pays, surely where it does not."""
    side = VERDICT_SIDE.get(verdict)
    known = {name: metrics[name] for name in a.METRICS if name in metrics}
    if side == 1:
        return [name for name, gain in known.items() if gain.verdict == "hurts" or (gain.gain is not None and gain.gain < WORSE)]
    return [name for name, gain in known.items() if side == -1 and gain.verdict == "pays"]


def _lever(advice: a.LeverAdvice, whole: a.Advice, language: Language) -> d.Lever:
    return d.Lever(
        lever=advice.lever,
        title=lever_title(advice.lever, advice.setting, language),
        state=advice.state,
        setting=advice.setting,
        verdict=advice.verdict,
        metrics=_gains(advice, language),
        against=against(advice.verdict, advice.metrics),
        boundaries=[_boundary(boundary, whole.threshold, language) for boundary in advice.boundaries if advice.verdict != DOES_NOT_FIT],
        pays_where=pays_where(advice, language),
        ledger=advice.ledger,
        because=_said(advice.because, language),
        source=advice.source,
        notes=_said(advice.notes, language),
        set=dict(advice.set),
        unset=dict(advice.unset),
        set_notes=_notes(support.flag_notes(advice.lever, "on", advice.setting, versions(whole.deployment)), advice.set, language),
        unset_notes=_notes(support.flag_notes(advice.lever, "off", None, versions(whole.deployment)), advice.unset, language),
        lossy=advice.accuracy != EXACT,
        accuracy=text(advice.accuracy, language),
        alternatives=[
            d.Alternative(
                setting=other.setting,
                verdict=other.verdict,
                metrics=_gains(other, language),
                because=_said(other.because, language),
                source=other.source,
            )
            for other in advice.alternatives
        ],
        rules_of_thumb=[rule.id for rule in _rules(whole) if advice.lever in RULES_OF.get(rule.id, (advice.lever,))],
        measure_next=_measure(advice.measure_next, language),
        schedule=advice.schedule,
        extra=plain(advice.extra, language),
    )


def _notes(notes: Mapping[str, Message], engines: Iterable[str], language: Language) -> dict[str, str]:
    return {engine: text(notes[engine], language) for engine in engines if engine in notes}


def _best(advice: a.Advice, language: Language) -> d.Best:
    best = advice.best
    one = _combination(best.combination)
    changes = list(_changes(advice, dict(name.split(":", 1) for name in one.levers), language)) if one.fits else []
    return d.Best(
        levers=one.levers,
        titles=[title for title, _ in changes],
        metrics=one.metrics,
        meets_slo=one.meets_slo,
        fits=one.fits,
        set={engine: flags.strip() for engine, flags in best.set.items() if one.fits},
        notes=list(dict.fromkeys(note for _, note in changes if note)),
        undecided=list(best.undecided),
        all=[_combination(combination) for combination in best.all],
    )


def _changes(advice: a.Advice, chosen: Mapping[str, str], language: Language) -> Iterator[tuple[str, str]]:
    """What the best set changes, each with what is to be done beside its flag; what stays as it is is left out."""
    engine, known = advice.deployment.engine.name, versions(advice.deployment)
    for name, lever in advice.levers.items():
        setting = chosen.get(name)
        if setting is not None and (lever.state, lever.setting) != ("on", setting):
            title, notes = lever_title(name, setting, language), support.flag_notes(name, "on", setting, known)
        elif setting is None and lever.state == "on":
            title = say("report.without", language, lever=lever_title(name, lever.setting, language))
            notes = support.flag_notes(name, "off", None, known)
        else:
            continue
        yield title, text(notes[engine], language) if engine in notes else ""


def _check(item: a.CheckItem, language: Language) -> d.CheckItem:
    return d.CheckItem(
        id=item.id,
        title=say(f"checklist.{item.id}", language),
        status=item.status,
        evidence=text(item.evidence, language),
        how=text(item.how, language),
    )


def _rules(advice: a.Advice) -> tuple[a.RuleOfThumb, ...]:
    """The rules of thumb; they have no figures where nothing runs."""
    return advice.rules if advice.ledgers.memory.fits else ()


def _rule(rule: a.RuleOfThumb, language: Language) -> d.RuleOfThumb:
    return d.RuleOfThumb(
        id=rule.id, value=figure(rule.value), agrees=rule.agrees, says=text(rule.says, language), breaks=text(rule.breaks, language)
    )


def compose(advice: a.Advice, language: Language = "en") -> d.Document:
    """The document of an advice, in one language."""
    deployment = advice.deployment
    return d.Document(
        language=language,
        title=d.Title(deployment=headline(deployment, language), workload=asked(deployment, language)),
        deployment=_deployment(deployment, language),
        provenance=dict(deployment.provenance),
        inputs=[
            d.Input(path=path, value=_input(deployment, path, language), provenance=source)
            for path, source in sorted(deployment.provenance.items())
        ],
        operating_point=_point(advice, language),
        ledgers=_ledgers(advice),
        objective=advice.objective,
        objective_metric={"latency": "e2e"}.get(advice.objective, advice.objective),
        objective_reason=text(advice.objective_reason, language),
        threshold=advice.threshold,
        levers=[_lever(lever, advice, language) for lever in advice.levers.values()],
        best=_best(advice, language),
        checklist=[_check(item, language) for item in advice.checklist],
        rules_of_thumb=[_rule(rule, language) for rule in _rules(advice)],
        how_sure=text(advice.how_sure, language),
        warnings=list(dict.fromkeys(_said(advice.warnings, language))),
        draws=advice.draws,
        seed=advice.seed,
        observed=_observed(advice, language),
    )


def _observed(advice: a.Advice, language: Language) -> Observed | UnsetType:
    found = advice.deployment.observed
    if found is None:
        return UNSET
    told = plain(found, language)
    del told["model_with_prompts"]  # said in the sentence
    return Observed(**told, sentence=observed_sentence(advice, found, language))


def _deployment(deployment: Deployment, language: Language) -> dict[str, Any]:
    """The deployment as JSON; what a trace tells of arrivals and reuse stands in it where it is known."""
    told: dict[str, Any] = plain(deployment, language) | {"replicas": deployment.replicas}
    for name in ("arrivals", "reuse"):
        if getattr(deployment.workload, name) is None:
            del told["workload"][name]
    del told["observed"]
    return told


def _line(line: a.Line, language: Language) -> d.Line:
    return d.Line(
        symbol=line.symbol,
        formula=line.formula,
        substituted=line.substituted,
        value=figure(line.value),
        unit=line.unit,
        name=text(line.name, language),
        source=line.source,
    )


def compose_explanation(explanation: a.Explanation, language: Language = "en") -> d.ExplanationDocument:
    """The document of an explanation, in one language."""

    def lines(part: tuple[a.Line, ...]) -> list[d.Line]:
        return [_line(line, language) for line in part]

    return d.ExplanationDocument(
        language=language,
        lever=explanation.lever,
        setting=explanation.setting,
        title=lever_title(explanation.lever, explanation.setting, language),
        off=lines(explanation.off),
        on=lines(explanation.on),
        result=lines(explanation.result),
    )
