"""What is fitted: each parameter's centre before the measurements, how firmly it is held there, and its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from breakeven.efficiencies import table
from breakeven.stats import Array

STEP = ("step", "parallel", "prefill")
"""Sections that every engine shares."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One fitted number. It moves on a logarithmic scale: normal about ``ln centre`` with ``deviation``, within its bounds."""

    name: str
    centre: float
    deviation: float
    low: float
    high: float


def neutral(engines: Iterable[str]) -> tuple[Parameter, ...]:
    """Parameters of whole serving runs: the step's shared by all engines, the first token's with factors of each engine."""
    sheet = table("neutral")
    found = [parameter(f"{section}.{name}", entry) for section in (*STEP, "ttft") for name, entry in sheet[section].items()]
    factor = sheet["scale"]["ttft"]
    found += [parameter(f"scale.{engine}.ttft.{name}", factor) for engine in sorted(set(engines)) for name in sheet["ttft"]]
    return tuple(found)


def parameter(name: str, entry: Mapping[str, float]) -> Parameter:
    """A parameter from its entry in ``neutral.toml``."""
    return Parameter(name=name, centre=entry["centre"], deviation=entry["sd"], low=entry["low"], high=entry["high"])


def values_of(parameters: tuple[Parameter, ...], logs: Array) -> dict[str, Array | float]:
    """Parameter values at logarithms, shape (parameters,) or (parameters, candidates)."""
    return {p.name: np.exp(row) for p, row in zip(parameters, logs, strict=True)}
