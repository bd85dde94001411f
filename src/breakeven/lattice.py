"""All combinations of the levers, evaluated together: gains do not add, and the best set is found by looking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven import catalog
from breakeven.advice import METRICS, Best, Combination, Metric, Verdict
from breakeven.draws import Draws
from breakeven.evaluator import Point, evaluate
from breakeven.judge import combined, gain_draws, interval, metric_of, noise_of, quantile
from breakeven.lever import Lever, Sigma
from breakeven.spec.deployment import Deployment
from breakeven.spec.workload import Slo
from breakeven.statement import check
from breakeven.stats import Array

States = Mapping[str, str | None]
WORTH = 0.01
"""A lever stays out of the best set when the set without it is as good within this."""
CAREFUL = 0.1
"""The set is judged by this quantile of its gain, so that a lever nobody is sure of has to earn its place."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A lever with the setting it would have, and how sure the model is of it."""

    lever: Lever
    setting: str
    sigma: Sigma
    verdict: Verdict
    known: bool = True
    """Whether all it needs is known: a hit rate that nobody has counted is not."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A combination with the careful gain it is ranked by."""

    combination: Combination
    deployment: Deployment
    on: frozenset[str]
    careful: float
    median: float
    max_rate: float | None


def scored(d: Deployment, choices: Sequence[Choice], objective: Metric, draws: Draws) -> list[Scored]:
    """Every subset of the levers, against the deployment as it is. Hits that nobody has counted are not counted on."""
    if d.workload.prefix_hit_rate is None:
        d = replace(d, workload=replace(d.workload, prefix_hit_rate=0.0))
    base = evaluate(d, draws)
    on_now = states(d, choices)
    found: list[Scored] = []
    known: dict[tuple[int, frozenset[str]], Scored] = {}
    for chosen, deployment in _sets(d, choices, on_now):
        changed = [c for c in choices if (c in chosen) != (on_now[c.lever.name] is not None) and c.sigma != Sigma()]
        alike = id(deployment), frozenset(c.lever.name for c in changed)
        if alike in known:
            found.append(_named(known[alike], chosen))
            continue
        noise = combined(*(noise_of(c.lever.name, c.sigma, draws) for c in changed))
        point = base if deployment is d else evaluate(deployment, draws, noise=noise)
        check(point, deployment)
        found.append(_score(base, point, deployment, chosen, objective, d.slo))
        known[alike] = found[-1]
    return found


def _sets(d: Deployment, choices: Sequence[Choice], on_now: States) -> list[tuple[tuple[Choice, ...], Deployment]]:
    """Every subset of the levers, and the deployment with those on; a lever that changes nothing leaves the deployment that it got."""
    found: list[tuple[tuple[Choice, ...], Deployment]] = [((), d)]
    for choice in choices:
        found = [
            ((*chosen, choice) if wanted else chosen, _set(before, choice, on_now, wanted=wanted))
            for chosen, before in found
            for wanted in (False, True)
        ]
    return found


def states(d: Deployment, choices: Sequence[Choice]) -> States:
    """The setting in force of each lever, None where it is off."""
    return {choice.lever.name: choice.lever.setting_on(d) for choice in choices}


def set_levers(d: Deployment, choices: Sequence[Choice], chosen: Sequence[Choice], on_now: States) -> Deployment:
    """The deployment with exactly the chosen levers on."""
    for choice in choices:
        d = _set(d, choice, on_now, wanted=choice in chosen)
    return d


def _set(d: Deployment, choice: Choice, on_now: States, *, wanted: bool) -> Deployment:
    """The deployment with one lever on, or off."""
    if wanted:
        return choice.lever.apply(d, choice.setting)
    return d if on_now[choice.lever.name] is None else choice.lever.remove(d)


def meets(point: Point, slo: Slo) -> bool | None:
    """Whether it runs, and its medians keep the mean objectives; None where there are none (or only tails)."""
    limits = {"ttft": slo.ttft_s, "tpot": slo.tpot_s, "e2e": slo.e2e_s}
    asked: Mapping[Metric, float] = {name: limit for name, limit in limits.items() if limit is not None}  # type: ignore[misc]
    if not asked:
        return None
    values = {name: metric_of(point, name) for name in asked}
    return point.fits and all(value is not None and float(np.median(value)) <= asked[name] for name, value in values.items())


def _score(base: Point, point: Point, d: Deployment, chosen: Sequence[Choice], objective: Metric, slo: Slo) -> Scored:
    draws: dict[Metric, Array] = {}
    for metric in METRICS:
        found = gain_draws(base, point, metric)
        if found is not None:
            draws[metric] = found
    combination = Combination(
        levers=_names(chosen),
        metrics={metric: interval(value) for metric, value in draws.items()},
        meets_slo=meets(point, slo),
        fits=point.fits,
    )
    # Against what does not fit every gain is without bound: then sets are ranked by what they serve.
    ranked = draws[objective] if base.fits else point.throughput
    careful, median = (quantile(ranked, q) if point.fits else 0.0 for q in (CAREFUL, 0.5))
    rate = None if point.max_request_rate is None or not point.fits else float(np.median(point.max_request_rate))
    return Scored(combination=combination, deployment=d, on=_on(chosen), careful=careful, median=median, max_rate=rate)


def _named(same: Scored, chosen: Sequence[Choice]) -> Scored:
    """A set that makes the same deployment as another."""
    return replace(same, combination=replace(same.combination, levers=_names(chosen)), on=_on(chosen))


def _names(chosen: Sequence[Choice]) -> tuple[str, ...]:
    return tuple(f"{c.lever.name}:{c.setting}" for c in chosen)


def _on(chosen: Sequence[Choice]) -> frozenset[str]:
    return frozenset(c.lever.name for c in chosen)


def best(d: Deployment, choices: Sequence[Choice], objective: Metric, threshold: float, draws: Draws) -> Best:
    """The set with the best careful objective that fits and keeps the SLO; without one that does, the best that fits.

    A lever is changed for a reason: it pays and comes on, it hurts and goes, or it is worth the threshold within the set. Undecided
    levers stay as they are, unless no other set keeps the SLO; then they are named. Where nothing else fits, any set that does may.
    ``all`` holds every combination all the same.
    """
    on_now = states(d, choices)
    sets = {s.on: s for s in scored(d, choices, objective, draws)}
    allowed = [s for s in sets.values() if all(_reason(on_now, c, s, sets, threshold) for c in choices)]
    hoped = [s for s in sets.values() if s.combination.meets_slo and _may_be_hoped_for(on_now, s, choices)]
    keeping = [s for s in allowed if s.combination.meets_slo]
    pool = allowed if keeping or not hoped else hoped
    if not any(s.combination.fits for s in pool):
        pool = [s for s in sets.values() if s.combination.fits and _may_be_hoped_for(on_now, s, choices)] or pool
    ranked = sorted(pool, key=_rank, reverse=True)
    near = [s for s in ranked if _rank(s)[:2] == _rank(ranked[0])[:2] and s.careful >= ranked[0].careful * (1 - WORTH)]
    winner = min(near, key=lambda s: (_changes(on_now, s, choices), -s.careful))
    others = sorted((s for s in sets.values() if s is not winner), key=_rank, reverse=True)
    unsure = (c for c in choices if c.verdict == "undecided")
    return Best(
        combination=winner.combination,
        set=_flags(d, on_now, winner, choices),
        all=(winner.combination, *(s.combination for s in others)),
        max_request_rate_per_s=winner.max_rate,
        undecided=tuple(c.lever.name for c in unsure if _changed(on_now, c, winner)),
    )


def _rank(s: Scored) -> tuple[bool, bool, float]:
    return s.combination.fits, s.combination.meets_slo is not False, s.careful


def _changed(on_now: States, choice: Choice, s: Scored) -> bool:
    return (choice.lever.name in s.on) != (on_now[choice.lever.name] is not None)


def _changes(on_now: States, s: Scored, choices: Sequence[Choice]) -> int:
    """How many levers a set would change: the deployment as it is changes none."""
    return sum(_changed(on_now, c, s) for c in choices)


def _may_be_hoped_for(on_now: States, s: Scored, choices: Sequence[Choice]) -> bool:
    """Whether a set keeps nothing that hurts, and changes nothing of which too little is known."""
    return not any((c.verdict == "hurts" and c.lever.name in s.on) or (not c.known and _changed(on_now, c, s)) for c in choices)


def _reason(on_now: States, choice: Choice, s: Scored, sets: Mapping[frozenset[str], Scored], threshold: float) -> bool:
    """Whether a set does with a lever what its verdict, or its worth within the set, gives reason for."""
    name = choice.lever.name
    if not _changed(on_now, choice, s):
        return not (choice.verdict == "hurts" and name in s.on)
    if choice.verdict == "undecided" or not choice.known:
        return False
    if name not in s.on:
        return choice.verdict == "hurts"
    return choice.verdict == "pays" or s.median >= (1.0 + threshold) * sets[s.on - {name}].median


def _flags(d: Deployment, on_now: States, s: Scored, choices: Sequence[Choice]) -> dict[str, str]:
    """The whole change of flags, by engine: what to add for levers that come on, what turns off those that go."""
    flags: dict[str, list[str]] = {}
    for choice in choices:
        current, wanted = on_now[choice.lever.name], choice.lever.name in s.on
        if wanted and current != choice.setting:
            change: Mapping[str, str] = choice.lever.flags(d, choice.setting)
        elif not wanted and current is not None:
            change = choice.lever.unflags(d)
        else:
            continue
        for engine, flag in change.items():
            flags.setdefault(engine, []).append(flag)
    own = catalog.joined_flags(d.engine.name, flags.get(d.engine.name, []))
    return {d.engine.name: own} if own else {}
