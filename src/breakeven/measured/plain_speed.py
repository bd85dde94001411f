"""What a row's own plain speed tells where the row does not: the device it does not name, or over how many devices it ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import inf, log

import numpy as np

from breakeven import catalog
from breakeven.errors import BreakevenError
from breakeven.evaluator import evaluate
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Hardware
from breakeven.spec.workload import Workload

SPLITS = (1, 2, 4, 8)
ANY = "h100-sxm"
"""A device to begin with, where all are tried."""


def miss(d: Deployment, tokens_per_s: float) -> float:
    """|ln| of predicted over stated throughput; infinite where the deployment cannot be or does not fit."""
    try:
        point = evaluate(d)
    except BreakevenError:
        return inf
    return abs(log(float(np.median(point.throughput)) / tokens_per_s)) if point.fits else inf


@lru_cache(maxsize=32)
def nearest_device(model: str, engine: str, version: str, tokens_per_s: float, context: float) -> str:
    """The catalogue's device on which one stream in 16 bit is nearest a speed."""
    plain = Deployment(
        model=catalog.load("models", model),
        hardware=Hardware(device=catalog.load("hardware", ANY)),
        engine=Engine(name=engine, version=version, kv_cache_dtype="bf16", gpu_memory_utilization=1.0, runtime_reserve_bytes=0.0),
        workload=Workload(batch=1.0, context_tokens=context),
    )
    tried = {name: replace(plain, hardware=Hardware(device=catalog.load("hardware", name))) for name in catalog.names("hardware")}
    return min(tried, key=lambda name: miss(tried[name], tokens_per_s))


def nearest_split(d: Deployment, loaded: Callable[[Deployment], Deployment], tokens_per_s: float) -> Deployment:
    """The deployment at the tensor parallelism whose throughput under a load is nearest a speed."""
    return min((over(d, tp) for tp in SPLITS), key=lambda one: miss(loaded(one), tokens_per_s))


def over(d: Deployment, tp: int) -> Deployment:
    """The deployment over so many devices."""
    return replace(d, engine=replace(d.engine, tensor_parallel_size=tp), hardware=replace(d.hardware, count=tp))
