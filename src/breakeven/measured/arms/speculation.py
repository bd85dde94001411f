"""Drafting: no drafts against the row's method, with its acceptance where it is stated and the prior's where it is not."""

from __future__ import annotations

from dataclasses import replace

from breakeven.evaluator import evaluate
from breakeven.measured import words
from breakeven.measured.conditions import Arms, base, served_as
from breakeven.measured.measures import Loaded, measure
from breakeven.measured.plain_speed import nearest_split
from breakeven.measured.reading import RowReading, refused
from breakeven.measured.row import NotUnderstood
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Speculative
from breakeven.spec.workload import Acceptance

NO_ACCEPTANCE = "words.no_acceptance"
ONE = words.Split(tp=1, devices=1)


def arms(r: RowReading, also: Loaded) -> Arms:
    """Plain decoding against drafting."""
    setting = r.text("lever_setting")
    if r.metric().kind == "methods_compared":
        raise refused("methods_compared")
    spec = words.speculative(setting)
    r.understood("speculative", "lever_setting", spec)
    accepted, how = _accepted(r, setting), measure(r)
    d = _off(r, how.off)
    off, on = how.off(d), how.on(also(_drafting(r, d, spec, accepted)))
    regime = "acceptance given" if accepted is not None else "acceptance not given"
    kind = "open loop" if off.workload.request_rate is not None else "eager" if evaluate(off).efficiencies.eager else "graphs"
    return Arms(off=off, on=on, speed=how.speed, regime=f"{regime}, {kind}")


def turn_on(r: RowReading, d: Deployment) -> Deployment:
    """The deployment drafting as the row says."""
    setting = r.text("lever_setting")
    return _drafting(r, d, words.speculative(setting), _accepted(r, setting))


def _accepted(r: RowReading, setting: str) -> Acceptance | None:
    """Acceptance as stated; None leaves it to the prior of method and task."""
    try:
        found = words.acceptance(setting)
    except NotUnderstood as unknown:
        if unknown.message.key != NO_ACCEPTANCE:
            raise
        return None
    stated, measured = found.length, words.number(r.text("gain_gt1_is_better"))
    if isinstance(stated, float) and measured is not None and measured > stated:
        raise refused("gain_above_length", gain=measured, length=stated)
    return found


def _drafting(r: RowReading, d: Deployment, spec: Speculative, accepted: Acceptance | None) -> Deployment:
    drafts = {spec.model: words.model(spec.model)} if spec.method == "draft_model" and spec.model else {}
    task = words.task(r.text("context_or_input_len"))
    if accepted is None:
        r.assumed("acceptance", method=spec.method)
    workload = replace(d.workload, acceptance=accepted, task=task)
    return replace(d, engine=replace(d.engine, speculative=spec), workload=workload, drafts=drafts)


def _off(r: RowReading, loaded: Loaded) -> Deployment:
    """The plain deployment; where the row does not say on how many devices it ran, those whose plain speed is nearest its own."""
    try:
        return served_as(r, base(r))
    except NotUnderstood as unknown:
        plain = words.number(r.text("value_off")) if not _split_stated(r) else None
        if plain is None or r.metric().kind != "output_throughput":
            raise unknown
    d = served_as(r, base(r, split=ONE))
    found = nearest_split(d, loaded, plain)
    r.assumed("split", count=found.hardware.count, speed=plain)
    return found


def _split_stated(r: RowReading) -> bool:
    return r.stated("parallelism")
