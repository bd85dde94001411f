"""Which levers a simulation turns on and off, at which setting, and the deployment of every combination of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from breakeven.advisor import Question, best_arms, refusal_of
from breakeven.catalog import engine_title
from breakeven.lattice import Choice, set_levers, states
from breakeven.lever import Lever, called
from breakeven.messages import Message
from breakeven.simulation.combinations import Arm, Plan, Toggle, with_hits_of
from breakeven.spec.deployment import Deployment


@dataclass(frozen=True, kw_only=True)
class _Found:
    choice: Choice | None
    reason: Message | None = None


def plan(d: Deployment, levers: Iterable[Lever], question: Question, *, prefixes_known: bool) -> Plan:
    """Each lever at the setting in force, else at the one that ``advise`` would choose; those that cannot be turned have their reason."""
    found = {lever.name: _found(d, lever, question, prefixes_known) for lever in levers}
    choices = [one.choice for one in found.values() if one.choice is not None]
    on_now = states(d, choices)
    return Plan(
        arms=tuple(_arms(d, choices, on_now)),
        toggles=tuple(
            Toggle(lever=c.lever.name, setting=c.setting, on_now=on_now[c.lever.name] is not None, sigma=c.sigma) for c in choices
        ),
        left_out={name: one.reason for name, one in found.items() if one.reason is not None},
    )


def _found(d: Deployment, lever: Lever, question: Question, prefixes_known: bool) -> _Found:
    if lever.name == "prefix_cache" and not prefixes_known:
        return _Found(choice=None, reason=Message("simulate.prefixes_unknown", {}))
    judged = best_arms(lever, d, question)
    if judged is None:
        return _Found(choice=None, reason=_refusal(d, lever))
    both = judged[0]
    on_now = lever.setting_on(d)
    if (on_now is not None and lever.remove(d) is d) or (on_now is None and lever.apply(d, both.setting) is d):
        return _Found(choice=None, reason=Message("simulate.nothing_to_turn", {"setting": called(lever.name, both.setting)}))
    return _Found(choice=Choice(lever=lever, setting=both.setting, sigma=both.sigma, verdict="undecided"))


def _refusal(d: Deployment, lever: Lever) -> Message:
    """Why the engine or the device does not have it."""
    candidates = lever.candidates(d)
    here = refusal_of(candidates, lever.setting_on(d))
    reasons = [one.refused for one in candidates if one.refused is not None]
    return here or next(iter(reasons), Message("lever.nothing_here", {"engine": engine_title(d.engine.name)}))


def _arms(d: Deployment, choices: list[Choice], on_now: Mapping[str, str | None]) -> Iterable[Arm]:
    for mask in product((False, True), repeat=len(choices)):
        chosen = [choice for choice, wanted in zip(choices, mask, strict=True) if wanted]
        on = frozenset(choice.lever.name for choice in chosen)
        yield Arm(on=on, deployment=with_hits_of(d, set_levers(d, choices, chosen, on_now)))
