"""The times of a deployment as its own rows correct them: factors on the step and on the first token, drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from breakeven.adaptation import correction, mean_correction, shipped_scales
from breakeven.demand import Demand
from breakeven.draws import Draws
from breakeven.efficiencies import Efficiencies
from breakeven.spec.correction import Place, Rows
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import same_version
from breakeven.stats import Array

UNSTATED = 1.0
"""Tokens of a prompt or an output that the workload does not state."""


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Of measured over model: common to all times of the deployment, and what the first token departs by beyond that."""

    step: Array | float
    first_token: Array | float


def factors(d: Deployment, e: Efficiencies, load: Demand, draws: Draws, clients: Array | float | None) -> Factors:
    """By the deployment's own rows where a calibration has them; else spread as deployments nobody has measured are.

    ``clients`` are the requests in flight where rows correct the times, and None where there are none.
    """
    own = d.calibration.own if d.calibration is not None else None
    spread = shipped_scales("tpot"), shipped_scales("ttft")
    if own is None or clients is None or spread[0] is None or spread[1] is None:
        return _unmeasured(e, draws)
    at, shape = _placed(d, load, own)(clients)
    step, step_deviation = (x.reshape(shape) for x in correction(spread[0], own, "tpot", at))
    first, first_deviation = (x.reshape(shape) for x in correction(spread[1], own, "ttft", at))
    beyond = np.sqrt(np.maximum(first_deviation**2 - step_deviation**2, 0.0))
    return Factors(
        step=np.exp(step + step_deviation * draws.normal("offset:tpot")),
        first_token=np.exp(first - step + beyond * draws.normal("offset:ttft")),
    )


def step_factor(d: Deployment, load: Demand) -> Callable[[Array | float], Array | float]:
    """The factor on the step alone as requests in flight have it, in the median world: what does not hang on them is looked up once."""
    own, spread = d.calibration.own if d.calibration is not None else None, shipped_scales("tpot")
    if own is None or spread is None:
        return lambda clients: 1.0
    place, mean = _placed(d, load, own), mean_correction(spread, own, "tpot")

    def factor(clients: Array | float) -> Array | float:
        at, shape = place(clients)
        return np.exp(mean(at).reshape(shape))

    return factor


def _unmeasured(e: Efficiencies, draws: Draws) -> Factors:
    between, within = (_beyond(getattr(e, f"ttft_{kind}"), getattr(e, f"tpot_{kind}")) for kind in ("between", "within"))
    return Factors(
        step=np.exp(e.tpot_between * draws.normal("offset:tpot") + e.tpot_within * draws.normal("within:tpot")),
        first_token=np.exp(between * draws.normal("offset:ttft") + within * draws.normal("within:ttft")),
    )


def _beyond(whole: Array | float, part: Array | float) -> Array | float:
    """The deviation that, beside one of ``part``, makes up one of ``whole``."""
    return np.sqrt(np.maximum(whole**2 - part**2, 0.0))


def _placed(d: Deployment, load: Demand, own: Rows) -> Callable[[Array | float], tuple[Place, tuple[int, ...]]]:
    """Where the deployment stands among its rows at requests in flight, and the shape of its loads.

    Its format is that of the rows whatever a lever makes of it: a correction is common to both arms and cancels between them."""
    prompt, output = (UNSTATED if x is None else x for x in (load.input_tokens, load.output_tokens))
    devices = d.hardware.count / max(d.replicas, 1)
    fixed, version = [np.log(np.maximum(x, 1e-3)) for x in (prompt, output, devices)], _version(d, own)

    def place(clients: Array | float) -> tuple[Place, tuple[int, ...]]:
        columns = np.broadcast_arrays(np.log(np.maximum(clients, 1e-3)), *fixed)
        count = columns[0].size
        logs = np.stack([np.ravel(column) for column in columns], axis=1)
        return Place(logs=logs, versions=(version,) * count, formats=own.place.formats[:1] * count), columns[0].shape

    return place


def _version(d: Deployment, own: Rows) -> str:
    """The version of the rows that may be the deployment's own; else the deployment's, which none of them is."""
    return next((version for version in own.place.versions if same_version(version, d.engine.version)), d.engine.version)
