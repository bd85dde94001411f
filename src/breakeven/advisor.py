"""One lever advised: its settings judged, the best one chosen, its boundaries and what to measure next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven import catalog, comparisons, support
from breakeven.advice import Alternative, LeverAdvice, Metric, Verdict
from breakeven.boundaries import boundaries
from breakeven.draws import Draws
from breakeven.evaluator import Point, evaluate
from breakeven.judge import LOW, Arms, arms, gains, lever_verdict, quantile
from breakeven.lattice import Choice
from breakeven.ledger import memory
from breakeven.lever import Candidate, Lever
from breakeven.measure import measure_next
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment

BOUNDARY_DRAWS = 64
RANK: Mapping[Verdict, int] = {"pays": 0, "undecided": 1, "does_not_pay": 2, "hurts": 3, "does_not_fit": 4, "not_supported": 5}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a lever is judged by: the metric that counts, the least gain worth having, and the draws."""

    metric: Metric
    threshold: float
    draws: Draws
    priced: bool = False

    @property
    def thin(self) -> Draws:
        """Fewer of the same draws, for what is looked at along whole axes."""
        return Draws(min(self.draws.size, BOUNDARY_DRAWS), self.draws.seed)


def best_arms(lever: Lever, d: Deployment, q: Question, here: Point | None = None) -> tuple[Arms, tuple[Alternative, ...]] | None:
    """The setting in force, else the supported setting with the best verdict and gain; the others as alternatives.

    ``here`` is the deployment's own point over the draws of the question, where it is at hand.
    """
    on_now = lever.setting_on(d)
    off = lever.remove(d) if on_now is not None else d
    candidates = lever.candidates(d)
    if refusal_of(candidates, on_now) is not None:
        return None
    usable = [c.setting for c in candidates if c.refused is None]
    if on_now is not None and on_now not in usable:
        usable.append(on_now)
    if not usable:
        return None
    base = here if here is not None and off is d else evaluate(off, q.draws)
    middle = evaluate(off, exact=False)
    judged = [_judge_setting(lever, off, setting, (base, middle), q, in_force=setting == on_now) for setting in usable]
    judged.sort(key=lambda pair: (pair[0].setting != on_now, RANK[pair[1].verdict], -_careful(pair[0], pair[1], q.metric)))
    (chosen, _), *others = judged
    refused = (c for c in candidates if c.setting not in usable)
    return chosen, (*(alternative for _, alternative in others), *(alternative for c in refused for alternative in _refused_setting(c)))


def refusal_of(candidates: Sequence[Candidate], on_now: str | None) -> Message | None:
    """Why the setting in force is not to be had here, if it is not; a setting's kind is its first word."""
    if on_now is None:
        return None
    kind = on_now.split()[0]
    return next((c.refused for c in candidates if c.setting.split()[0] == kind), None)


def _refused_setting(c: Candidate) -> tuple[Alternative, ...]:
    if c.refused is None:
        return ()
    return (Alternative(setting=c.setting, metrics={}, verdict="not_supported", because=(c.refused,), source=c.source),)


def _careful(a: Arms, alternative: Alternative, metric: Metric) -> float:
    """The low end of its gain, by which settings of one verdict are ranked: a sure gain before a larger unsure one.

    Against an arm that does not fit every gain is without bound; then it is what the setting serves.
    """
    if not a.fits_off:
        return quantile(a.point_on.throughput, LOW)
    found = alternative.metrics.get(metric)
    if found is None:
        return 0.0
    return found.low if found.low is not None else np.inf


def _judge_setting(
    lever: Lever, off: Deployment, setting: str, base: tuple[Point, Point], q: Question, *, in_force: bool
) -> tuple[Arms, Alternative]:
    both = arms(lever, off, setting, q.draws, point_off=base[0], middle_off=base[1], in_force=in_force)
    metrics = gains(both, q.threshold, priced=q.priced)
    return both, Alternative(
        setting=setting, metrics=metrics, verdict=lever_verdict(both, metrics, q.metric), because=_reasons(lever, both)
    )


def advise_lever(lever: Lever, d: Deployment, q: Question, here: Point | None = None) -> tuple[LeverAdvice, Choice | None]:
    """The advice on one lever, and what it would be in a combination; ``here`` as :func:`best_arms` has it."""
    judged = best_arms(lever, d, q, here)
    if judged is None:
        return _refused(lever, d), None
    both, alternatives = judged
    metrics = gains(both, q.threshold, priced=q.priced)
    verdict = lever_verdict(both, metrics, q.metric)
    known = both.on.workload.prefix_hit_rate is both.off.workload.prefix_hit_rate
    extras = comparisons.extras(lever.name, both, q.thin)
    advised = LeverAdvice(
        lever=lever.name,
        state="off" if lever.setting_on(d) is None else "on",
        setting=both.setting,
        verdict=verdict,
        metrics=metrics,
        boundaries=() if both.unanswered else boundaries(both, lever.axes, q.metric, q.threshold, q.thin),
        ledger=lever.ledger,
        because=_reasons(lever, both),
        notes=(*extras.notes, *_caveat(lever, d, both.setting)),
        alternatives=alternatives,
        set=lever.flags(d, both.setting),
        unset=lever.unflags(d),
        accuracy=lever.accuracy,
        measure_next=measure_next(both, q.metric, q.threshold, q.draws) if verdict == "undecided" else None,
        schedule=extras.schedule,
        extra=extras.figures,
    )
    return advised, Choice(lever=lever, setting=both.setting, sigma=both.sigma, verdict=verdict, known=known)


def _source_of(candidates: Sequence[Candidate], reason: Message) -> str:
    """Where a refusal was read."""
    return next((c.source for c in candidates if c.refused == reason), "")


def _caveat(lever: Lever, d: Deployment, setting: str) -> tuple[Message, ...]:
    """What the catalogue of support says of a setting that is there all the same."""
    found = support.support(lever.name, setting, d)
    return (found.reason,) if found.supported and found.reason is not None else ()


def _reasons(lever: Lever, a: Arms) -> tuple[Message, ...]:
    reasons = lever.because(a.on, a.point_off, a.point_on)
    if a.fits_on and not a.fits_off:
        return (_does_not_fit("fits_only_with", a.off, a.point_off), *reasons)
    if not a.fits_on:
        return (_does_not_fit("does_not_fit", a.on, a.point_on), *reasons)
    return reasons


def _does_not_fit(key: str, d: Deployment, p: Point) -> Message:
    """The arithmetic of what does not fit: a batch of which the pool holds some, or the weights."""
    fits = float(np.median(p.room.fits_sequences))
    if p.demand.batch is not None and fits >= 1.0:
        return Message(f"judge.batch_{key}", {"batch": float(np.median(p.demand.batch)), "fits": fits})
    if p.room.pool_bytes > 0.0:
        return Message(f"judge.sequence_{key}", {"sequence": float(np.median(p.room.sequence_bytes)), "pool": p.room.pool_bytes})
    return Message(f"judge.{key}", {"weights": p.room.weight_bytes + p.room.draft_bytes, "usable": _usable(d)})


def _usable(d: Deployment) -> float:
    return memory.usable_bytes(d.hardware.device.capacity_bytes, d.engine)


def _refused(lever: Lever, d: Deployment) -> LeverAdvice:
    candidates, on_now = lever.candidates(d), lever.setting_on(d)
    here = refusal_of(candidates, on_now)
    nothing = Message("lever.nothing_here", {"engine": catalog.engine_title(d.engine.name)})
    reasons = (here,) if here is not None else tuple(c.refused for c in candidates if c.refused is not None) or (nothing,)
    return LeverAdvice(
        lever=lever.name,
        state="off" if on_now is None else "on",
        setting=on_now or (candidates[0].setting if candidates else ""),
        verdict="not_supported",
        metrics={},
        boundaries=(),
        ledger=lever.ledger,
        because=reasons,
        source=_source_of(candidates, reasons[0]),
        alternatives=tuple(one for c in candidates for one in _refused_setting(c)),
        set={},
        unset={},
        accuracy=lever.accuracy,
        measure_next=None,
    )
