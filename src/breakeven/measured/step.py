"""A measured decode step: so many sequences at a context, on a deployment, took so long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.spec.deployment import Deployment


@dataclass(frozen=True, kw_only=True)
class Step:
    """One row of steps over their width, understood."""

    id: str
    where: str
    deployment: Deployment
    """With its batch and context pinned."""
    width: float
    """Sequences that decode together, one row each."""
    context_tokens: float
    step_s: float
    spread: float | None = None
    """Longest over shortest of the repetitions, where they are told."""
    one_pass: bool = False
    """Whether its sequences were computed together whatever slots they stood in."""
    source: str = ""
    curve_context: float | None = None
    """The context of the curve that it belongs to, where that is not its own."""
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """What shares an offset: model, device and engine."""
        d = self.deployment
        return f"{d.model.name} | {d.hardware.device.name} | {d.engine.name}"
