"""What a lever is: pure edits of a deployment, where it exists, and how sure the model is of it. No speed formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from breakeven import support
from breakeven.advice import Axis
from breakeven.efficiencies import level, lever_sigma
from breakeven.evaluator import Point
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A setting of a lever; ``refused`` says why the engine or the device does not have it, and ``source`` where that was read."""

    setting: str
    refused: Message | None = None
    source: str = ""


def candidate(lever: str, setting: str, d: Deployment) -> Candidate:
    """A setting as the catalogue of support has it: offered, or refused with the reason and its source."""
    found = support.support(lever, setting, d)
    return Candidate(setting=setting) if found.supported else Candidate(setting=setting, refused=found.reason, source=found.source)


@dataclass(frozen=True, kw_only=True)
class Sigma:
    """Model-form sigma of ln gain: of the time of a round, and of the time of a prompt."""

    step: float = 0.0
    prefill: float = 0.0


DRAFTING: tuple[Axis, ...] = ("acceptance_length", "draft_tokens")
"""Axes of every lever once drafting is on, and of none otherwise."""


@dataclass(frozen=True, kw_only=True)
class Lever:
    """One optimisation. Every function is pure; ``apply`` to the setting in force gives the same deployment."""

    name: str
    ledger: str
    axes: tuple[Axis, ...]
    """The axes that mean something for it, the ones to show first first."""
    setting_on: Callable[[Deployment], str | None]
    """The setting in force, or None when it is off."""
    candidates: Callable[[Deployment], tuple[Candidate, ...]]
    apply: Callable[[Deployment, str], Deployment]
    remove: Callable[[Deployment], Deployment]
    sigma: Callable[[Deployment, Point, Point], Sigma]
    """Of the on arm (deployment, point) against the off arm's point."""
    because: Callable[[Deployment, Point, Point], tuple[Message, ...]]
    """One line first: the on deployment, off point, on point (medians)."""
    accuracy: Message
    of_prompts: bool = False
    """Whether it works on prompts alone: nothing can be said of it where the load has none."""
    holes: Callable[[Deployment, str], tuple[str, Mapping[str, object]]] | None = None
    """The entry of a setting in the engines' tables of flags, and what fills its holes, where that is not the setting itself."""

    def flags(self, d: Deployment, setting: str) -> Mapping[str, str]:
        """Engine to what is typed to turn a setting on: the deployment's, at its version, and others that have it here too."""
        entry, values = self.holes(d, setting) if self.holes is not None else (setting, {})
        typed = support.flags(self.name, "on", entry, versions(d), **values)
        return {name: flag for name, flag in typed.items() if name == d.engine.name or _elsewhere(self.name, setting, d, name)}

    def unflags(self, d: Deployment) -> Mapping[str, str]:
        """Engine to what is typed to turn the lever off."""
        return support.flags(self.name, "off", None, versions(d))


def versions(d: Deployment) -> Mapping[str, str]:
    """The deployment's engine and its version; others are taken at their own."""
    return {d.engine.name: d.engine.version}


def _elsewhere(lever: str, setting: str, d: Deployment, engine: str) -> bool:
    other = replace(d.engine, name=engine, version=support.sheet(engine).version)
    return support.support(lever, setting, replace(d, engine=other)).supported


def measured_prompt_share(d: Deployment) -> float | None:
    """Share of the time in steps that read prompts, where it was measured of the load that is asked about."""
    load = any(d.provenance.get(f"workload.{name}") == "measured" for name in ("request_rate", "concurrency"))
    return d.observed.prompt_share if d.observed is not None and d.observed.corrects and load else None


def called(lever: str, setting: str) -> Message:
    """A lever at a setting, as it is called within a sentence."""
    return Message(f"lever.called_{lever}", {"setting": setting})


FLOOR = 0.03
"""Least error of ln gain where a lever changes anything at all: what runs of one configuration differ by (0.8 to 3.4 %)."""


def in_part(sigma: float, share: float) -> float:
    """The error of a whole step of which a lever changes a share: √(floor² + (σ·share)²)."""
    return float((FLOOR**2 + (sigma * share) ** 2) ** 0.5)


def sigma_of(section: str, row: str, d: Deployment) -> float:
    """A row of the sigma table at the deployment's level of knowledge."""
    return lever_sigma(section, row, level(d.engine, d.hardware.device.family))
