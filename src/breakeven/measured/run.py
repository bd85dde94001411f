"""An absolute measurement: a deployment in a closed loop, and the times per token and to the first token that were measured on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakeven.messages import Message
from breakeven.spec.deployment import Deployment


@dataclass(frozen=True, kw_only=True)
class Run:
    """One row of the columns of ``silicon_e2e.csv``, understood."""

    id: str
    where: str
    deployment: Deployment
    group: str
    """Model shape, device and engine: what shares an offset, and what is left out together."""
    batch_of_runs: str
    """The group with its version and date: runs made together."""
    tpot_s: float
    ttft_s: float | None
    total: bool = False
    """Whether the label can only count the devices of several workers."""
    doubt: Message | None = None
    """Why the row is kept out of fits (a twin contradicts it, its label counts the devices of two pools); it is answered all the same."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What was understood of each field, as said to the reader."""

    @property
    def mixture(self) -> bool:
        """Whether the model is a mixture of experts."""
        return self.deployment.model.experts is not None
