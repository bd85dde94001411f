"""A measured gain: a lever's two arms at a row's own conditions, and how the row measures speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from breakeven.draws import Draws
from breakeven.evaluator import Noise
from breakeven.messages import Message
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array


class Speed(Protocol):
    """What a row measures, as a function of a deployment, in which more is better; arrays in, arrays out."""

    def __call__(self, d: Deployment, draws: Draws, noise: Noise) -> Array:
        """The speed of one arm."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One row of the columns of the contract's measured cases, understood."""

    id: str
    where: str
    lever: str
    """The lever's own name: ``weight_quant``, ``kv_quant``, ``prefix_cache``, ``speculation``, ``batching``."""
    regime: str
    """What was measured, how, with which kind of kernel: rows of one regime err alike (``gguf decode``, ``native 8 bit``)."""
    group: str
    """Rows of one source and one model, device or kernel; left out together."""
    quality: str
    measured: float
    """Gain, above 1 better."""
    off: Deployment
    on: Deployment
    speed: Speed
    on_speed: Speed | None = None
    """How the other arm is measured where it differs (batching: another number of clients)."""
    doubt: Message | None = None
    """Why the row is kept out of fits (a contradictory ratio, a duplicate); it is answered all the same."""
    sigma_row: str = ""
    """Row of the lever's model-form sigma that applies; empty where the lever takes several together and tells it itself."""
    exposure: float | None = None
    """The share of what is measured that the row's error applies to; None where the lever's error is that of the whole."""
    notes: Mapping[str, Message] = field(default_factory=dict)
    """What was understood of each field, and what was assumed, as said to the reader."""

    def gain(self, draws: Draws, noise: Noise) -> Array:
        """Speed on over speed off; the lever's own error is on its arm."""
        return (self.on_speed or self.speed)(self.on, draws, noise) / self.speed(self.off, draws, Noise())
