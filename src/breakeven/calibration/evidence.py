"""Measurements as logarithms, and what the model says of them at many candidates of its parameters in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from breakeven.efficiencies import is_eager
from breakeven.evaluator import evaluate
from breakeven.measured.run import Run
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

Values = Mapping[str, Array | float]
TPOT_DEVIATION, TTFT_DEVIATION = 0.2, 0.8
"""Residual scale of each kind of logarithm, below which a row pulls as in least squares, and beyond which less and less."""
FULL_ROWS = 150
"""Rows of one group that count in full: a group of more weighs as if it had these."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Logarithms that were measured, shape (n,); NaN where a row did not measure the quantity."""

    measured: Array
    deviation: Array
    weight: Array
    groups: tuple[str, ...]
    predict: Callable[[Values], Array]
    """Logarithms by the model, shape (n, candidates)."""


def weights(groups: Sequence[str], full: int = FULL_ROWS) -> Array:
    """1 for a row of a group of no more than ``full`` rows, and √(full/rows) beyond."""
    counts = {group: groups.count(group) for group in set(groups)}
    return np.array([min(1.0, (full / counts[group]) ** 0.5) for group in groups])


def _alike(d: Deployment) -> tuple[object, ...]:
    """What two deployments share that are evaluated in one call: all but the three numbers of their load."""
    e = d.engine
    split = (e.tensor_parallel_size, e.data_parallel_size, e.enable_expert_parallel)
    hits = (e.enable_prefix_caching, d.workload.prefix_hit_rate)
    return (d.model.name, d.hardware.device.name, d.hardware.count, e.name, is_eager(e), split, e.quantization, e.kv_cache_dtype, hits)


def stacked(runs: Sequence[Run]) -> list[tuple[Array, Deployment]]:
    """Runs by equal deployments: their places, and one deployment whose loads are columns of shape (runs, 1)."""
    places: dict[tuple[object, ...], list[int]] = {}
    for place, run in enumerate(runs):
        places.setdefault(_alike(run.deployment), []).append(place)
    found = []
    for of in places.values():
        loads = [runs[place].deployment.workload for place in of]
        first = runs[of[0]].deployment
        inputs, outputs, clients = (
            np.array([[float(np.asarray(getattr(load, name)))] for load in loads])
            for name in ("input_tokens", "output_tokens", "concurrency")
        )
        load = replace(first.workload, input_tokens=inputs, output_tokens=outputs, concurrency=clients)
        found.append((np.array(of), replace(first, workload=load)))
    return found


def times(parts: Sequence[tuple[Array, Deployment]], count: int, values: Values, *, alone: bool = False) -> tuple[Array, Array]:
    """ln TPOT and ln TTFT of stacked runs, shape (runs, candidates)."""
    candidates = max((np.size(value) for value in values.values()), default=1)
    tpot, ttft = np.empty((count, candidates)), np.empty((count, candidates))
    for places, d in parts:
        point = evaluate(replace(d, calibration=Calibration(values=values, alone=alone)))
        tpot[places] = np.log(point.tpot_s)
        ttft[places] = np.log(np.asarray(point.ttft_s))
    return tpot, ttft


def of_runs(runs: Sequence[Run], constants: Values | None = None, *, alone: bool = False) -> Evidence:
    """TPOT of every run, then TTFT of every run; ``constants`` are parameters that are not fitted; ``alone``: nothing shipped."""
    parts = stacked(runs)
    groups = [run.group for run in runs]

    def predict(values: Values) -> Array:
        return np.concatenate(times(parts, len(runs), {**(constants or {}), **values}, alone=alone))

    return Evidence(
        measured=np.log([run.tpot_s for run in runs] + [run.ttft_s or np.nan for run in runs]),
        deviation=np.repeat([TPOT_DEVIATION, TTFT_DEVIATION], len(runs)),
        weight=np.tile(weights(groups), 2),
        groups=tuple(groups * 2),
        predict=predict,
    )
