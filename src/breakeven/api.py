"""The use cases, each a file of its own in ``use_cases/`` that is imported when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from breakeven import registry

if TYPE_CHECKING:
    from breakeven.use_cases.advise import advise
    from breakeven.use_cases.backtest import backtest
    from breakeven.use_cases.boundary import boundary
    from breakeven.use_cases.calibrate import calibrate
    from breakeven.use_cases.calibrate_engine import calibrate_engine
    from breakeven.use_cases.evaluate import evaluate
    from breakeven.use_cases.explain import explain
    from breakeven.use_cases.levers import lever_named, levers
    from breakeven.use_cases.load import load
    from breakeven.use_cases.named import engine, hardware, model
    from breakeven.use_cases.observe import observe, observe_history
    from breakeven.use_cases.probe import probe
    from breakeven.use_cases.profile import profile
    from breakeven.use_cases.question import OBJECTIVES
    from breakeven.use_cases.simulate import simulate

_ELSEWHERE = {
    "OBJECTIVES": "question",
    "engine": "named",
    "hardware": "named",
    "lever_named": "levers",
    "model": "named",
    "observe_history": "observe",
}
"""Names whose file is called otherwise."""

__all__ = [
    "OBJECTIVES",
    "advise",
    "backtest",
    "boundary",
    "calibrate",
    "calibrate_engine",
    "engine",
    "evaluate",
    "explain",
    "hardware",
    "lever_named",
    "levers",
    "load",
    "model",
    "observe",
    "observe_history",
    "probe",
    "profile",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'breakeven.api' has no attribute {name!r}")
    return getattr(registry.module("use_cases", _ELSEWHERE.get(name, name)), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
