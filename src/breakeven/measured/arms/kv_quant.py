"""The cache in fewer bits: what it saves in traffic, and what it makes room for."""

from __future__ import annotations

from breakeven.evaluator import evaluate
from breakeven.kernels import kv_kernel
from breakeven.measured import speeds, words
from breakeven.measured.conditions import Arms, base, served_as, set_engine, under
from breakeven.measured.measures import MOST, Loaded, measure
from breakeven.measured.reading import RowReading, refused
from breakeven.spec.deployment import Deployment
from breakeven.statement import limited_by


def arms(r: RowReading, also: Loaded) -> Arms:
    """The cache in 16 bit against the row's format, weights alike in both."""
    d = base(r)
    off = set_engine(served_as(r, d), kv_cache_dtype="bf16")
    on = also(turn_on(r, off))
    metric = r.metric()
    if metric.kind == "itl_slope":
        off, on = (under(arm, batch=1.0, context_tokens=speeds.SLOPE_TO) for arm in (off, on))
        return Arms(off=off, on=on, speed=speeds.context_slope, regime="traffic", exposure=1.0)
    if metric.kind == "itl_intercept":
        off, on = (under(arm, batch=1.0, context_tokens=0.0) for arm in (off, on))
        return Arms(off=off, on=on, speed=speeds.DECODE, regime="traffic")
    how = measure(r)
    off, on = how.off(off), how.on(on)
    regime = _regime(off, on, how.name)
    return Arms(off=off, on=on, speed=how.speed, regime=regime, sigma_row="capacity_bound" if how.name == MOST else "")


def turn_on(r: RowReading, d: Deployment) -> Deployment:
    """The deployment with the row's cache in fewer bits."""
    if "skip" in r.text("lever_setting"):
        raise refused("cache_of_some_layers")
    family = words.kv_format(r.text("kv_dtype"))
    if family == "bf16":
        raise refused("cache_is_16_bit", written=r.text("kv_dtype"))
    r.understood("kv_format", "kv_dtype", family)
    return set_engine(d, kv_cache_dtype=family)


def _regime(off: Deployment, on: Deployment, name: str) -> str:
    if kv_kernel(on.engine.kv_cache_dtype).sigma == "kv_software":
        return "software"
    return "capacity" if name == MOST or limited_by(evaluate(off)) == "kv_pool" else "traffic"
