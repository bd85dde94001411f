"""Breakeven tells when each optimisation of LLM inference pays, by how much, and up to where.

The names below are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from breakeven.advice import Advice
    from breakeven.api import (
        advise,
        backtest,
        boundary,
        calibrate,
        calibrate_engine,
        engine,
        evaluate,
        explain,
        hardware,
        load,
        model,
        observe,
        observe_history,
        probe,
        profile,
        simulate,
    )
    from breakeven.driving.running_engine import StatedEngine
    from breakeven.errors import BreakevenError, InputError, NotModelledError
    from breakeven.observation.history import HistoryQuery
    from breakeven.spec.deployment import Deployment
    from breakeven.spec.disaggregation import Disaggregation, PrefillPool
    from breakeven.spec.engine import Engine, Speculative
    from breakeven.spec.evidence import Evidence
    from breakeven.spec.hardware import Device, Hardware
    from breakeven.spec.model import Model
    from breakeven.spec.workload import Acceptance, Price, Slo, Workload
    from breakeven.stats import Range, Spread

_HOMES = {
    "Acceptance": "spec.workload",
    "Advice": "advice",
    "BreakevenError": "errors",
    "Deployment": "spec.deployment",
    "Device": "spec.hardware",
    "Disaggregation": "spec.disaggregation",
    "Engine": "spec.engine",
    "Evidence": "spec.evidence",
    "Hardware": "spec.hardware",
    "HistoryQuery": "observation.history",
    "InputError": "errors",
    "Model": "spec.model",
    "NotModelledError": "errors",
    "PrefillPool": "spec.disaggregation",
    "Price": "spec.workload",
    "Range": "stats",
    "Slo": "spec.workload",
    "Speculative": "spec.engine",
    "Spread": "stats",
    "StatedEngine": "driving.running_engine",
    "Workload": "spec.workload",
    "advise": "api",
    "backtest": "api",
    "boundary": "api",
    "calibrate": "api",
    "calibrate_engine": "api",
    "engine": "api",
    "evaluate": "api",
    "explain": "api",
    "hardware": "api",
    "load": "api",
    "model": "api",
    "observe": "api",
    "observe_history": "api",
    "probe": "api",
    "profile": "api",
    "simulate": "api",
}

__all__ = [
    "Acceptance",
    "Advice",
    "BreakevenError",
    "Deployment",
    "Device",
    "Disaggregation",
    "Engine",
    "Evidence",
    "Hardware",
    "HistoryQuery",
    "InputError",
    "Model",
    "NotModelledError",
    "PrefillPool",
    "Price",
    "Range",
    "Slo",
    "Speculative",
    "Spread",
    "StatedEngine",
    "Workload",
    "advise",
    "backtest",
    "boundary",
    "calibrate",
    "calibrate_engine",
    "engine",
    "evaluate",
    "explain",
    "hardware",
    "load",
    "model",
    "observe",
    "observe_history",
    "probe",
    "profile",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'breakeven' has no attribute {name!r}")
    return getattr(import_module(f"breakeven.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
