"""A calibration is a value: fitted parameters by name, which stand over those that are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from breakeven.stats import Array


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What a fit found. Parameters are named as in ``catalog/calibrations``: ``step.layer_s``, ``weights.fp8.phi.hopper``."""

    values: Mapping[str, Array | float]
    """Arrays give arrays out, as everywhere: a fit evaluates all its candidates in one call."""
