"""Weights in fewer bits: of a served model, of one stream, or of a matrix product alone."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import log

import numpy as np

from breakeven import catalog
from breakeven.errors import BreakevenError
from breakeven.evaluator import evaluate
from breakeven.kernels import SIXTEEN_BIT, on_device
from breakeven.measured import speeds, words
from breakeven.measured.conditions import EIGHT_BIT_CACHES, Arms, base, native_format, set_engine
from breakeven.measured.measures import MOST, Loaded, Measure, measure
from breakeven.measured.reading import Reading, refused
from breakeven.measured.row import NotUnderstood
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device, Hardware
from breakeven.spec.model import Model, Parameters
from breakeven.spec.workload import Workload

KERNEL_ONLY = "kernel only"
NOT_STATED = "words.not_stated"
ANY = "h100-sxm"
"""A device to begin with, where all are tried."""
WEIGHT_ONLY = ("weight_only", "weight_only_unknown")
WEIGHTS_OF_A_PRODUCT = 10**9
"""Any number large enough to be read from memory: the gain does not depend on it."""


def arms(r: Reading, also: Loaded) -> Arms:
    """16 bit, or what the row begins with, against the format it ends with; ``also`` turns further levers on."""
    if r.text("engine").lower().startswith(KERNEL_ONLY):
        return _product(r)
    how = measure(r)
    named = _names_a_device(r)
    d = base(r) if named else _unnamed(r, how)
    begins, ends = _sides(r, d)
    off = set_engine(d, quantization=begins, kv_cache_dtype="fp8" if begins in EIGHT_BIT_CACHES else "bf16")
    if begins in EIGHT_BIT_CACHES and not r.stated("kv_dtype"):
        r.assumed("cache", cache="fp8")
    on = also(set_engine(off, quantization=ends))
    off, on = how.off(off), how.on(on)
    regime = _regime(on, ends, how, named=named)
    return Arms(off=off, on=on, speed=how.speed, regime=regime, sigma_row="capacity_bound" if how.name == MOST else "")


def _sides(r: Reading, d: Deployment) -> tuple[str | None, str]:
    """Families of the two sides, None for 16 bit."""
    first, last = words.setting(r.text("lever_setting"))
    native = native_format(r.model())
    families = [words.weight_format(side, d.engine.name, r.model()) for side in (first, last) if side]
    r.understood("setting", "lever_setting", tuple(families))
    begins, ends = families if len(families) == 2 else ("bf16", families[0])
    if native is not None and ends in EIGHT_BIT_CACHES[1:]:
        ends = native
    return (None if begins in SIXTEEN_BIT else begins), ends


def turn_on(r: Reading, d: Deployment) -> Deployment:
    """The deployment with the row's weights in fewer bits."""
    return set_engine(d, quantization=_sides(r, d)[1])


def _regime(on: Deployment, family: str, how: Measure, *, named: bool) -> str:
    if how.name == MOST:
        return how.name
    sigma = on_device(family, on.hardware.device).sigma
    if sigma.startswith("gguf"):
        return f"gguf {how.name}" if named else "gguf, device not named"
    if sigma in WEIGHT_ONLY:
        one = on.workload.batch == 1.0 or on.workload.concurrency == 1.0
        return "weight only, batch 1" if one else "weight only, batch above 1"
    return {"fp8": "native 8 bit"}.get(sigma, sigma)


def _names_a_device(r: Reading) -> bool:
    try:
        r.device()
    except NotUnderstood as unknown:
        if unknown.message.key != NOT_STATED:
            raise
        return False
    return True


def _unnamed(r: Reading, how: Measure) -> Deployment:
    """A device that is not named, taken as the one whose plain speed is nearest the row's own."""
    stated = words.number(r.text("value_off"))
    if stated is None or how.name != "decode":
        raise refused("device_not_named")
    name = _nearest(r.model().name, *r.engine(), stated, _context(how, r))
    r.assumed("device", device=name, speed=stated)
    return base(r, device=catalog.load("hardware", name))


def _context(how: Measure, r: Reading) -> float:
    tokens = how.off(base(r, device=catalog.load("hardware", ANY))).workload.context_tokens
    if not isinstance(tokens, float):
        raise refused("device_not_named")
    return tokens


@lru_cache(maxsize=32)
def _nearest(model: str, engine: str, version: str, tokens_per_s: float, context: float) -> str:
    """The catalogue's device whose plain speed in one stream is nearest."""

    plain = Deployment(
        model=catalog.load("models", model),
        hardware=Hardware(device=catalog.load("hardware", ANY)),
        engine=Engine(name=engine, version=version, kv_cache_dtype="bf16", gpu_memory_utilization=1.0, runtime_reserve_bytes=0.0),
        workload=Workload(batch=1.0, context_tokens=context),
    )

    def miss(name: str) -> float:
        one = replace(plain, hardware=Hardware(device=catalog.load("hardware", name)))
        try:
            point = evaluate(one)
        except BreakevenError:
            return np.inf
        return abs(log(float(point.throughput) / tokens_per_s)) if point.fits else np.inf

    return min(catalog.names("hardware"), key=miss)


def _product(r: Reading) -> Arms:
    """One matrix product, or those of a layer: the same two roofs, without a model around them."""
    device = r.device()
    rows = r.load().on
    if rows is None:
        raise refused("load_without_number")
    family = _kernel(r, device)
    one = Model(
        name=r.text("model"),
        family="matrix",
        layers=1,
        hidden=1,
        vocabulary=1,
        attention=(),
        parameters=Parameters(embedding=0, head=0, attention=0, mlp=WEIGHTS_OF_A_PRODUCT, experts=0, other=0),
        dtype="float16",
    )
    off = Deployment(
        model=one,
        hardware=Hardware(device=device),
        engine=Engine(kv_cache_dtype="bf16", enable_prefix_caching=False),
        workload=Workload(batch=rows, context_tokens=1.0),
    )
    on = set_engine(off, quantization=family)
    return Arms(off=off, on=on, speed=speeds.MATRICES, regime="kernel")


def _kernel(r: Reading, device: Device) -> str:
    """The family of the kernel that the setting names."""
    try:
        return words.weight_format(words.setting(r.text("lever_setting"))[1])
    except NotUnderstood:
        return words.weight_format(r.text("weight_dtype"))
