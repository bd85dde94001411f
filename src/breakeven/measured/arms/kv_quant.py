"""The cache in fewer bits: what it saves in traffic, and what it makes room for."""

from __future__ import annotations

from breakeven.kernels import kv_kernel
from breakeven.measured import speeds, strings
from breakeven.measured.conditions import Arms, base, set_engine, text, under
from breakeven.measured.measures import measure
from breakeven.measured.row import Row


def arms(row: Row) -> Arms:
    """The cache in 16 bit against the row's format, weights alike in both."""
    name = {"fp8": "fp8", "int8": "int8"}.get(text(row, "kv_dtype"))
    if name is None or "skip" in text(row, "lever_setting"):
        raise strings.refused("cache_unknown", written=f"{text(row, 'kv_dtype')} {text(row, 'lever_setting')}")
    d = base(row)
    if d.model.name.startswith("gpt-oss"):
        d = set_engine(d, quantization="mxfp4")
    if text(row, "weight_dtype") == "fp8":
        d = set_engine(d, quantization="fp8")
    metric, sigma = text(row, "metric"), kv_kernel(name).sigma
    if "slope" in metric:
        off = under(d, batch=1.0, context_tokens=speeds.SLOPE_TO)
        return Arms(off=off, on=set_engine(off, kv_cache_dtype=name), speed=speeds.context_slope, regime="traffic", sigma_row=sigma)
    if metric == "ITL intercept":
        off = under(d, batch=1.0, context_tokens=0.0)
        return Arms(off=off, on=set_engine(off, kv_cache_dtype=name), speed=speeds.DECODE, regime="traffic", sigma_row=sigma)
    how = measure(row)
    off, on = how.loaded(d), how.loaded(set_engine(d, kv_cache_dtype=name))
    return Arms(off=off, on=on, speed=how.speed, regime="traffic", sigma_row=sigma)
