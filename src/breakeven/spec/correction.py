"""What rows of one deployment say beyond the shared fit: how corrections spread, and the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from breakeven.stats import Array

Time = Literal["tpot", "ttft"]
TIMES: tuple[Time, ...] = ("tpot", "ttft")


@dataclass(frozen=True, kw_only=True)
class Scales:
    """Standard deviations of ln time, and lengths of the four logarithms over which a correction carries."""

    offset: float
    format: float
    version: float
    trend: float
    local: float
    noise: float
    lengths: tuple[float, float, float, float]
    widening: Mapping[int, float]
    """Factor on the standard deviation by rows known, from residuals of deployments left out: what the normal shape misses."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a time is taken: ln load, prompt, output, devices (shape (n, 4)), and the engine's version and weight format of each."""

    logs: Array
    versions: tuple[str, ...]
    formats: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows that were measured on a deployment: where, and ln measured − ln model of both times; NaN where one was not measured."""

    place: Place
    residuals: Mapping[Time, Array]
