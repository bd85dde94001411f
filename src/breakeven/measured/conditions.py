"""What a row says of model, device and engine, as a deployment with no lever on; and whether an arm fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from breakeven import catalog
from breakeven.evaluator import Point, evaluate
from breakeven.kernels import SIXTEEN_BIT
from breakeven.measured import words
from breakeven.measured.pair import Speed
from breakeven.measured.reading import RowReading, refused
from breakeven.measured.speeds import REQUEST_RATE
from breakeven.messages import Message
from breakeven.spec.check import check_deployment
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device, Hardware
from breakeven.spec.model import Model
from breakeven.spec.workload import Workload

NO_CAP = 4096
"""Benchmarks raise the cap on sequences; none of them says where it stood."""
EIGHT_BIT_CACHES = ("fp8", "nvfp4", "mxfp4", "mxfp4_weight_only")
"""Checkpoints of 8- and 4-bit floats, which are served with an 8-bit cache (fits of public serving runs)."""
ONE_BY_ONE = ("transformers",)
"""Engines that launch kernels one by one."""
MEMORY: Mapping[str, Mapping[str, float]] = {
    "llamacpp": {"gpu_memory_utilization": 1.0, "runtime_reserve_bytes": 0.5e9},
}
SHARE = {"gpu_memory_utilization": 0.93, "runtime_reserve_bytes": 3e9}
"""Of the devices' memory in fits of public serving runs; benchmarks do not state theirs."""


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Two deployments that differ by the lever alone, and what was measured on both."""

    off: Deployment
    on: Deployment
    speed: Speed
    regime: str
    sigma_row: str = ""
    exposure: float | None = None
    """The part of what is measured that the lever's error applies to, where that is not the step's; None leaves it to the lever."""
    notes: Mapping[str, Message] = field(default_factory=dict)


def base(
    r: RowReading, *, device: Device | None = None, split: words.Split | None = None, engine: tuple[str, str] | None = None
) -> Deployment:
    """The row's model, device and engine; weights and cache in 16 bit, no lever on."""
    device, model = device or r.device(), r.model()
    name, version = engine or r.engine()
    lies = split or r.split()
    settings: dict[str, Any] = {
        "tensor_parallel_size": lies.tp,
        "pipeline_parallel_size": lies.pp,
        "data_parallel_size": lies.dp,
        "enable_expert_parallel": lies.ep > 1,
        "max_num_seqs": NO_CAP,
        "kv_cache_dtype": "bf16",
        "enable_prefix_caching": False,
        "enforce_eager": name in ONE_BY_ONE,
        **MEMORY.get(name, SHARE),
    }
    found = replace(_defaults(name, version, device.name), **settings)
    plain = replace(model, stored={}, stored_bytes={}, kv_scheme=None)
    return Deployment(model=plain, hardware=Hardware(device=device, count=lies.devices), engine=found, workload=Workload())


@lru_cache(maxsize=256)
def _defaults(name: str, version: str, device: str) -> Engine:
    """An engine as it is when it is not told, by its entry where it has one."""
    known = name in catalog.names("engines")
    return catalog.engine(name, version, catalog.load("hardware", device)) if known else Engine(name=name, version=version)


def served_as(r: RowReading, d: Deployment) -> Deployment:
    """The deployment with the row's own weights and cache, where the lever is another."""
    family = weights(r, d)
    cache = "fp8" if family in EIGHT_BIT_CACHES else "bf16"
    if r.stated("kv_dtype"):
        cache = words.kv_format(r.text("kv_dtype"))
        r.understood("kv_format", "kv_dtype", cache)
    elif family is not None:
        r.assumed("cache", cache=cache)
    return set_engine(d, quantization=family, kv_cache_dtype=cache)


def weights(r: RowReading, d: Deployment) -> str | None:
    """The family of the row's weights; None in 16 bit. A model that is published in 4-bit floats alone is served in them."""
    native = native_format(r.model())
    if native is not None:
        r.assumed("native", format=native)
        return native
    if not r.stated("weight_dtype"):
        return None
    family = words.weight_format(r.text("weight_dtype"), d.engine.name, d.model)
    r.understood("weight_format", "weight_dtype", family)
    return None if family in SIXTEEN_BIT else family


def native_format(model: Model) -> str | None:
    """The 4-bit float a model is published in, where it is not published in 16 bit."""
    return next((kind for kind in model.stored.values() if kind == "mxfp4"), None)


def set_engine(d: Deployment, **changes: object) -> Deployment:
    """The deployment with settings of its engine changed."""
    return replace(d, engine=replace(d.engine, **changes))  # type: ignore[arg-type]


def under(d: Deployment, **workload: object) -> Deployment:
    """The deployment under a load; what is said of drafts and of prefixes stays."""
    w = d.workload
    kept: dict[str, Any] = {"acceptance": w.acceptance, "task": w.task, "prefix_hit_rate": w.prefix_hit_rate}
    found = replace(d, workload=Workload(**kept, **workload))  # type: ignore[arg-type]
    check_deployment(found)
    return found


def room_for(d: Deployment) -> float:
    """Sequences that fit in the median world."""
    return float(np.median(evaluate(d, exact=False).room.fits_sequences))


def check_runs(arms: Arms, *points: Point) -> None:
    """Refuse arms that the memory ledger has no room for, and times of a server at its capacity.

    Its queue grows for as long as the run lasts, which no row states.
    """
    d = arms.off
    if any(float(np.median(point.room.fits_sequences)) < 1.0 for point in points):
        raise refused("does_not_fit", device=d.hardware.device.name, count=d.hardware.count, model=d.model.name)
    if d.workload.request_rate is not None and arms.speed is not REQUEST_RATE and any(np.any(point.saturated) for point in points):
        raise refused("queue_without_bound")
