"""A calibration is a value: fitted parameters by name and measured curves, which stand over what is shipped and over the roofline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from breakeven.messages import Message
from breakeven.spec.correction import Rows
from breakeven.spec.engine import Engine
from breakeven.spec.model import Model
from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class StepCurve:
    """Measured seconds of a plain decode step over its width, at one context; one row a sequence."""

    model: Model
    """What was measured, as it was stored; of a draft model: the draft."""
    engine: Engine
    """The settings it was measured with, without speculation."""
    context_tokens: float
    rows: tuple[float, ...]
    """Widths, rising."""
    step_s: tuple[float, ...]
    """Not falling: a wider step is never cheaper."""


@dataclass(frozen=True, kw_only=True)
class Basis:
    """What a calibration was made of, as it is said to the reader."""

    name: str
    """The file; empty where there is none and the one row was observed."""
    rows: int
    own_rows: int
    """Those of this very deployment: its model, device and engine."""
    doubts: tuple[Message, ...] = ()
    """What speaks against what was measured; nothing of a quiet measurement."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What a fit found. Parameters are named as in ``catalog/calibrations``: ``step.layer_s``, ``weights.fp8.phi.hopper``."""

    values: Mapping[str, Array | float]
    """Arrays give arrays out, as everywhere: a fit evaluates all its candidates in one call."""
    alone: bool = False
    """Whether it stands for all that is shipped, and not over it: fits that are to be shipped begin where nothing was fitted."""
    curves: tuple[StepCurve, ...] = ()
    own: Rows | None = None
    """Rows that were measured on this very deployment, and what the numbers above missed of them."""
    basis: Basis | None = None
    """None where nobody has to be told, as inside a fit."""
