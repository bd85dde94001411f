"""The use cases, one function each: load, evaluate, advise, explain, boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from breakeven import advice as results
from breakeven import registry
from breakeven.advice import Advice, Axis, LeverAdvice, Metric, Verdict
from breakeven.boundaries import boundaries
from breakeven.boundaries import boundary as boundary_of
from breakeven.checklist import checklist
from breakeven.draws import MEDIAN, Draws
from breakeven.efficiencies import is_eager, level
from breakeven.errors import InputError, UnknownNameError
from breakeven.evaluator import Point
from breakeven.evaluator import evaluate as evaluate_point
from breakeven.explanation import explain as explain_lever
from breakeven.judge import Arms, arms, default_objective, gains, interval, lever_verdict
from breakeven.lattice import Choice, best
from breakeven.ledger.bandwidth import amortised_bytes_per_token
from breakeven.lever import Lever, Sigma
from breakeven.measure import measure_next
from breakeven.messages import Message
from breakeven.rules import rules
from breakeven.spec.deployment import Deployment
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Model
from breakeven.statement import check, ledgers, limited_by, read_bytes

THRESHOLD = 0.10
DRAWS = 512
BOUNDARY_DRAWS = 64
LATTICE_DRAWS = 128
ORDER = ("weight_quant", "speculation", "prefix_cache", "kv_quant", "batching")
OBJECTIVES: Mapping[str, Metric] = {
    "latency": "e2e", "e2e": "e2e", "tpot": "tpot", "ttft": "ttft", "throughput": "throughput", "capacity": "capacity", "cost": "cost",
}  # fmt: skip
"""What a user may ask for, and the metric it is."""
RANK: Mapping[Verdict, int] = {"pays": 0, "undecided": 1, "does_not_pay": 2, "hurts": 3, "does_not_fit": 4, "not_supported": 5}


@cache
def levers() -> Mapping[str, Lever]:
    """The levers by name, in the order they are told: the files of ``levers/``."""
    found = registry.names("levers")
    ordered = [name for name in ORDER if name in found] + [name for name in found if name not in ORDER]
    return {name: registry.module("levers", name).LEVER for name in ordered}


def load(**sources: object) -> tuple[Deployment, tuple[Message, ...]]:
    """A deployment from a file, flags and a launch command, with what there is to say about them."""
    from breakeven.origin.resolve import resolve

    resolved = resolve(**sources)  # type: ignore[arg-type]
    return resolved.deployment, resolved.warnings


def model(name: str) -> Model:
    """A model by catalogue name, Hugging Face id, or path of a ``config.json`` or its folder."""
    from breakeven import catalog

    path = Path(name)
    if path.exists():
        from breakeven.origin.huggingface import load_config

        return load_config(path)
    return catalog.load("models", name)


def hardware(name: str, count: int = 1) -> Hardware:
    """Devices by catalogue name."""
    from breakeven import catalog

    return Hardware(device=catalog.load("hardware", name), count=count)


def evaluate(deployment: Deployment, *, draws: int = 0, seed: int = 0) -> Point:
    """One operating point in the median world, or ``draws`` of them; arrays in a field give arrays out."""
    return evaluate_point(deployment, Draws(draws, seed))


def lever_named(name: str) -> Lever:
    """A lever by its name."""
    known = levers()
    if name not in known:
        raise UnknownNameError("lever", name, known)
    return known[name]


def _metric(objective: str) -> Metric:
    if objective not in OBJECTIVES:
        raise UnknownNameError("objective", objective, OBJECTIVES)
    return OBJECTIVES[objective]


def boundary(lever: str, deployment: Deployment, axis: Axis, *, threshold: float = THRESHOLD, draws: int = BOUNDARY_DRAWS, seed: int = 0) -> results.Boundary:
    """Break-evens of a lever along an axis, and where it pays."""
    if axis not in results.AXES:
        raise UnknownNameError("axis", axis, results.AXES)
    world = Draws(draws, seed)
    point = evaluate_point(deployment, world)
    objective, _ = default_objective(deployment, point)
    judged = _best_arms(lever_named(lever), deployment, objective, threshold, world, priced=False)
    if judged is None:
        raise InputError("lever_not_supported", lever=lever)
    found = boundary_of(judged[0], axis, objective, threshold, world)
    if found is None:
        raise InputError("axis_without_meaning", axis=axis, lever=lever)
    return found


def explain(deployment: Deployment, lever: str, *, setting: str | None = None) -> results.Explanation:
    """The arithmetic of a lever, line by line, in the median world; of its best supported setting unless one is named."""
    chosen = lever_named(lever)
    if setting is None:
        objective, _ = default_objective(deployment, evaluate_point(deployment))
        found = _best_arms(chosen, deployment, objective, THRESHOLD, Draws(LATTICE_DRAWS), priced=False)
        if found is None:
            raise InputError("lever_not_supported", lever=lever)
        setting = found[0].setting
    return explain_lever(chosen, deployment, setting)


def _best_arms(
    lever: Lever, d: Deployment, objective: Metric, threshold: float, draws: Draws, *, priced: bool
) -> tuple[Arms, tuple[results.Alternative, ...]] | None:
    """The setting in force, else the supported setting with the best verdict and gain; the others as alternatives."""
    on_now = lever.setting_on(d)
    off = lever.remove(d) if on_now is not None else d
    base = evaluate_point(off, draws)
    judged: list[tuple[Arms, results.Alternative]] = []
    refused: list[results.Alternative] = []
    candidates = lever.candidates(d)
    if on_now is not None and on_now not in {c.setting for c in candidates}:
        judged.append(_judge_setting(lever, off, on_now, base, objective, threshold, draws, priced=priced))
    for candidate in candidates:
        if candidate.refused is not None and candidate.setting != on_now:
            refused.append(results.Alternative(setting=candidate.setting, metrics={}, verdict="not_supported", because=(candidate.refused,)))
            continue
        judged.append(_judge_setting(lever, off, candidate.setting, base, objective, threshold, draws, priced=priced))
    if not judged:
        return None
    judged.sort(key=lambda pair: (pair[0].setting != on_now, RANK[pair[1].verdict], -_median(pair[1], objective)))
    (chosen, _), *others = judged
    return chosen, (*(alternative for _, alternative in others), *refused)


def _median(alternative: results.Alternative, objective: Metric) -> float:
    gain = alternative.metrics.get(objective)
    if gain is None:
        return 0.0
    return gain.gain if gain.gain is not None else np.inf


def _judge_setting(
    lever: Lever, off: Deployment, setting: str, base: Point, objective: Metric, threshold: float, draws: Draws, *, priced: bool
) -> tuple[Arms, results.Alternative]:
    both = arms(lever, off, setting, draws, point_off=base)
    metrics = gains(both, threshold, priced=priced)
    verdict = lever_verdict(both, metrics, objective)
    reasons = lever.because(both.on, both.point_off, both.point_on)
    return both, results.Alternative(setting=setting, metrics=metrics, verdict=verdict, because=reasons)


def advise(
    deployment: Deployment, *, objective: str | None = None, threshold: float = THRESHOLD, draws: int = DRAWS, seed: int = 0,
    warnings: tuple[Message, ...] = (),
) -> Advice:  # fmt: skip
    """Where the deployment stands, which levers pay, by how much and up to where, and what to measure next."""
    _check_arguments(deployment, objective, threshold, draws)
    world = Draws(draws, seed)
    point = evaluate_point(deployment, world)
    check(point, deployment)
    middle = evaluate_point(deployment)
    check(middle, deployment)
    default, reason = default_objective(deployment, middle)
    metric = _metric(objective) if objective else default
    reason = Message("judge.objective_asked", {}) if objective else reason
    books = ledgers(middle, deployment)
    found: dict[str, LeverAdvice] = {}
    choices: list[Choice] = []
    for name, lever in levers().items():
        advised, choice = _advise_lever(lever, deployment, metric, threshold, world)
        found[name] = advised
        if choice is not None:
            choices.append(choice)
    middles = {name: value.metrics[metric].gain or 1.0 for name, value in found.items() if metric in value.metrics}
    return Advice(
        deployment=deployment, objective=objective or {"e2e": "latency"}.get(metric, metric), objective_reason=reason, threshold=threshold,
        operating_point=operating_point(point, middle, deployment), ledgers=books, levers=found,
        best=best(deployment, choices, metric, Draws(min(draws, LATTICE_DRAWS), seed)),
        checklist=checklist(deployment, books.bandwidth.kv_share), rules=rules(middle, middles),
        warnings=(*warnings, *_warnings(deployment, middle)), how_sure=_how_sure(deployment), draws=draws, seed=seed,
    )  # fmt: skip


def _check_arguments(d: Deployment, objective: str | None, threshold: float, draws: int) -> None:
    if not 0.0 <= threshold < 10.0:
        raise InputError("threshold_out_of_range", value=threshold)
    if not 16 <= draws <= 100_000:
        raise InputError("draws_out_of_range", value=draws)
    if objective is not None and _metric(objective) == "cost" and d.price is None:
        raise InputError("cost_without_price")


def _advise_lever(lever: Lever, d: Deployment, metric: Metric, threshold: float, draws: Draws) -> tuple[LeverAdvice, Choice | None]:
    priced = d.price is not None
    on_now = lever.setting_on(d)
    judged = _best_arms(lever, d, metric, threshold, draws, priced=priced)
    if judged is None:
        return _refused(lever, d), None
    both, alternatives = judged
    metrics = gains(both, threshold, priced=priced)
    verdict = lever_verdict(both, metrics, metric)
    thin = Draws(min(draws.size, BOUNDARY_DRAWS), draws.seed)
    advised = LeverAdvice(
        lever=lever.name, state="off" if on_now is None else "on", setting=both.setting, verdict=verdict, metrics=metrics,
        boundaries=boundaries(both, metric, threshold, thin), ledger=lever.ledger,
        because=_reasons(lever, both), alternatives=alternatives,
        set=lever.flags(d, both.setting), unset=lever.unflags(d), accuracy=lever.accuracy,
        measure_next=measure_next(both, metric, threshold, draws) if verdict == "undecided" else None,
        **extras(lever, both),
    )  # fmt: skip
    return advised, Choice(lever=lever, setting=both.setting, sigma=both.sigma)


def _reasons(lever: Lever, a: Arms) -> tuple[Message, ...]:
    reasons = lever.because(a.on, a.point_off, a.point_on)
    if a.fits_on and not a.fits_off:
        return (Message("judge.fits_only_with", {"weights": a.point_off.room.weight_bytes, "usable": _usable(a.off)}), *reasons)
    if not a.fits_on:
        return (Message("judge.does_not_fit", {"weights": a.point_on.room.weight_bytes, "usable": _usable(a.on)}), *reasons)
    return reasons


def _usable(d: Deployment) -> float:
    return d.hardware.device.memory_bytes * d.engine.gpu_memory_utilization


def _refused(lever: Lever, d: Deployment) -> LeverAdvice:
    candidates = lever.candidates(d)
    reasons = tuple(c.refused for c in candidates if c.refused is not None) or (Message("lever.nothing_here", {"engine": d.engine.name}),)
    return LeverAdvice(
        lever=lever.name, state="off", setting=candidates[0].setting if candidates else "", verdict="not_supported", metrics={}, boundaries=(),
        ledger=lever.ledger, because=reasons,
        alternatives=tuple(
            results.Alternative(setting=c.setting, metrics={}, verdict="not_supported", because=(c.refused,)) for c in candidates if c.refused is not None
        ),
        set={}, unset={}, accuracy=lever.accuracy, measure_next=None,
    )  # fmt: skip


def extras(lever: Lever, a: Arms) -> dict[str, object]:
    """What only one lever has: the schedule of k, the static comparison, the next devices."""
    from breakeven import comparisons

    return comparisons.extras(lever.name, a)


def operating_point(p: Point, middle: Point, d: Deployment) -> results.OperatingPoint:
    """Where the deployment stands, in the median world, with the intervals of the draws."""
    weights, _ = read_bytes(middle)
    batch = float(np.median(middle.batch))
    rate = float(np.median(middle.request_rate)) if middle.request_rate is not None else 0.0
    output = float(np.median(middle.demand.output_tokens)) if middle.demand.output_tokens is not None else 0.0
    saturated = bool(np.median(middle.saturated))
    ttft = float(np.median(middle.ttft_s)) if middle.ttft_s is not None and not saturated else None
    tokens = rate * output if output else float(np.median(middle.throughput))
    return results.OperatingPoint(
        effective_batch=batch, effective_batch_interval=interval(p.batch), limited_by=limited_by(middle), saturated=saturated,
        request_rate_per_s=rate,
        max_request_rate_per_s=float(np.median(middle.max_request_rate)) if middle.max_request_rate is not None else 0.0,
        output_tokens_per_s=tokens, step_s=float(np.median(middle.step_s)), tpot_s=float(np.median(middle.tpot_s)), tpot_interval=interval(p.tpot_s),
        amortised_s_per_token=float(amortised_bytes_per_token(float(np.median(weights)), batch)) / d.hardware.device.bandwidth_bytes_per_s,
        ttft_s=ttft, ttft_interval=_ttft_interval(p), e2e_s=float(np.median(middle.e2e_s)) if ttft is not None and middle.e2e_s is not None else None,
        prefill_share=float(np.median(middle.prefill_share)), mean_context_tokens=float(np.median(middle.demand.context_tokens)),
        tokens_per_round=float(np.median(middle.tau)), replicas=d.replicas,
    )  # fmt: skip


def _ttft_interval(p: Point) -> results.Interval:
    """In an open loop at least × 1.8 each way, until a simulation answers it."""
    if p.ttft_s is None:
        return results.Interval(median=None, low=None, high=None)
    found = interval(p.ttft_s)
    if p.demand.mode != "open" or found.median is None:
        return found
    low = found.median / 1.8 if found.low is None else min(found.low, found.median / 1.8)
    high = None if found.high is None else max(found.high, found.median * 1.8)
    return results.Interval(median=found.median, low=low, high=high)


def _warnings(d: Deployment, p: Point) -> tuple[Message, ...]:
    found = []
    if p.demand.mode == "open" and p.ttft_s is not None:
        found.append(Message("judge.warn_open_ttft", {}))
    if is_eager(d.engine):
        found.append(Message("judge.warn_eager", {}))
    if d.slo.tails:
        found.append(Message("judge.warn_tails", {"keys": ", ".join(d.slo.tails)}))
    if d.workload.prefix_hit_rate is None:
        found.append(Message("judge.warn_hits_unknown", {}))
    longest = d.model.max_context
    if longest is not None and p.demand.input_tokens is not None and p.demand.output_tokens is not None:
        most = float(np.max(np.asarray(p.demand.input_tokens) + np.asarray(p.demand.output_tokens)))
        if most > longest:
            found.append(Message("judge.warn_context", {"asked": most, "longest": longest}))
    return tuple(found)


def _how_sure(d: Deployment) -> Message:
    known = level(d.engine, d.hardware.device.family)
    return Message(f"judge.sure_{known}", {"engine": d.engine.name, "family": d.hardware.device.family, "confidence": d.hardware.device.confidence})


def at(deployment: Deployment, **workload: object) -> Deployment:
    """The deployment under another workload: ``at(d, request_rate=8.0)``."""
    return replace(deployment, workload=replace(deployment.workload, **workload))  # type: ignore[arg-type]


__all__ = ["MEDIAN", "Sigma", "advise", "at", "boundary", "evaluate", "explain", "hardware", "lever_named", "levers", "load", "model", "operating_point"]
