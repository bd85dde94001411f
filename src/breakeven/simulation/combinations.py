"""All combinations of the levers on the same arrivals and the same luck, over processes, each held against the deployment as it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from breakeven.errors import InputError
from breakeven.lever import Sigma
from breakeven.messages import Message
from breakeven.processes import each
from breakeven.simulation.result import Combination, Gained, Lattice, LeverGain, Paired, Summary
from breakeven.simulation.run import Ran, Scene, check, compared, run
from breakeven.spec.deployment import Deployment

Progress = Callable[[int, int], None]
"""Told how many runs are done, of how many."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One set of levers, by their names, and the deployment with exactly these on."""

    on: frozenset[str]
    deployment: Deployment


@dataclass(frozen=True, kw_only=True)
class Toggle:
    """A lever that is turned on and off, and how sure the model is of it."""

    lever: str
    setting: str
    on_now: bool
    sigma: Sigma


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be run."""

    arms: tuple[Arm, ...]
    toggles: tuple[Toggle, ...]
    left_out: Mapping[str, Message]


@dataclass(frozen=True, kw_only=True)
class Held:
    """A combination's run against the one as it stands, both ways round."""

    summary: Summary | None
    gains: Mapping[Gained, Paired]
    losses: Mapping[Gained, Paired]
    """The gains of the deployment as it stands over this one."""


@dataclass(frozen=True, kw_only=True)
class _Task:
    arms: tuple[Arm, ...]
    scene: Scene
    base: Ran


NOTHING = Held(summary=None, gains={}, losses={})


def combinations(d: Deployment, x: Scene, base: Ran, plan: Plan, jobs: int, progress: Progress | None) -> Lattice:
    """Run every combination but the one as it stands, which has been run; the answer does not depend on how many run at a time."""
    standing = frozenset(one.lever for one in plan.toggles if one.on_now)
    others = tuple(arm for arm in plan.arms if arm.on != standing)
    task = _Task(arms=others, scene=x, base=base)
    ran = each(_held, task, len(others), jobs, progress)
    same = compared(base, base, x.offered.load)
    held = dict(zip((arm.on for arm in others), ran, strict=True)) | {standing: Held(summary=base.summary, gains=same, losses=same)}
    return Lattice(
        combinations=tuple(_combination(arm, held[arm.on], plan.toggles, standing) for arm in plan.arms),
        levers=tuple(_gain(one, held, standing) for one in plan.toggles),
        left_out=plan.left_out,
    )


def _held(task: _Task, place: int) -> Held:
    """One combination, in whichever process."""
    arm = task.arms[place]
    try:
        check(arm.deployment)
    except InputError as error:
        if error.message.key != "error.simulate_does_not_fit":
            raise
        return NOTHING
    ran, load = run(arm.deployment, task.scene), task.scene.offered.load
    return Held(summary=ran.summary, gains=compared(task.base, ran, load), losses=compared(ran, task.base, load))


def _combination(arm: Arm, held: Held, toggles: Sequence[Toggle], standing: frozenset[str]) -> Combination:
    return Combination(
        levers=tuple(f"{one.lever}:{one.setting}" for one in toggles if one.lever in arm.on),
        as_it_stands=arm.on == standing,
        summary=held.summary,
        gains=held.gains,
    )


def _gain(one: Toggle, held: Mapping[frozenset[str], Held], standing: frozenset[str]) -> LeverGain:
    """The lever on against off: of the one that is on, the deployment as it stands against the one without it."""
    other = held[standing ^ {one.lever}]
    return LeverGain(
        lever=one.lever,
        setting=one.setting,
        on_now=one.on_now,
        gains=other.losses if one.on_now else other.gains,
        fits=other.summary is not None,
        sigma=one.sigma,
    )


def with_hits_of(d: Deployment, arm: Deployment) -> Deployment:
    """An arm with the hit rate that the deployment states: in a simulation hits come about, and none is assumed."""
    return replace(arm, workload=replace(arm.workload, prefix_hit_rate=d.workload.prefix_hit_rate))
