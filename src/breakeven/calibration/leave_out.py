"""Leaving one group out: each group is predicted by a fit that has not seen it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breakeven import processes
from breakeven.calibration.evidence import Values, of_runs, stacked, times
from breakeven.calibration.fit import Fit, fit
from breakeven.calibration.lever_parameters import QUANTITIES, entry
from breakeven.calibration.parameters import Parameter, neutral
from breakeven.kernels import SIXTEEN_BIT, weight_names
from breakeven.measured.run import Run
from breakeven.stats import Array

Job = tuple[Sequence[Run], Sequence[Run], Values, tuple[Parameter, ...], Values, bool]


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """ln measured − ln model of every run by a fit without its group, and the parameters of each of those fits."""

    tpot: Array
    ttft: Array
    values: Mapping[str, Values]


def parameters_of(runs: Sequence[Run]) -> tuple[Parameter, ...]:
    """What runs determine."""
    return neutral(run.deployment.engine.name for run in runs)


def fit_runs(
    runs: Sequence[Run],
    start: Values | None = None,
    parameters: tuple[Parameter, ...] | None = None,
    constants: Values | None = None,
    *,
    alone: bool = False,
) -> Fit:
    """The fit of runs that nothing speaks against; ``constants`` are parameters that are not fitted."""
    return fit([of_runs([run for run in runs if run.doubt is None], constants, alone=alone)], parameters or parameters_of(runs), start)


def neutral_kernels() -> dict[str, float]:
    """Every kernel of weights where fits begin: numbers that no measurement has been in."""
    return {
        f"weights.{kernel}.{quantity}": entry(f"weights.{kernel}.{quantity}")["centre"]
        for kernel in weight_names()
        if kernel not in SIXTEEN_BIT
        for quantity in (*QUANTITIES, "phi_experts")
    }


def misses(runs: Sequence[Run], values: Values, *, alone: bool = False) -> tuple[Array, Array]:
    """ln measured − ln model of TPOT and TTFT."""
    tpot, ttft = times(stacked(runs), len(runs), values, alone=alone)
    return np.log([run.tpot_s for run in runs]) - tpot[:, 0], np.log([run.ttft_s or np.nan for run in runs]) - ttft[:, 0]


def _without(jobs: Sequence[Job], place: int) -> tuple[Values, Array, Array]:
    others, held, start, parameters, constants, alone = jobs[place]
    found = {**constants, **fit_runs(others, start, parameters, constants, alone=alone).values}
    return (found, *misses(held, found, alone=alone))


def leave_groups_out(
    runs: Sequence[Run],
    whole: Fit,
    *,
    jobs: int = 2,
    group_of: Callable[[Run], str] | None = None,
    constants: Values | None = None,
    alone: bool = False,
) -> LeftOut:
    """Every group predicted without it. Groups in doubt are predicted too, and are in no fit."""
    named = [run.group if group_of is None else group_of(run) for run in runs]
    groups, known = sorted(set(named)), constants or {}
    held = {group: [i for i, name in enumerate(named) if name == group] for group in groups}
    work = [
        (
            [runs[i] for i in range(len(runs)) if named[i] != group],
            [runs[i] for i in held[group]],
            whole.values,
            whole.parameters,
            known,
            alone,
        )
        for group in groups
    ]
    found = processes.each(_without, work, len(work), jobs, None)
    tpot, ttft = np.empty(len(runs)), np.empty(len(runs))
    for group, (_, one, two) in zip(groups, found, strict=True):
        tpot[held[group]], ttft[held[group]] = one, two
    return LeftOut(tpot=tpot, ttft=ttft, values={group: values for group, (values, _, _) in zip(groups, found, strict=True)})
