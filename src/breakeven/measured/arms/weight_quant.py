"""Weights in fewer bits: of a served model, of one stream, or of a matrix product alone."""

from __future__ import annotations

from breakeven.kernels import on_device, weight_kernel
from breakeven.measured import speeds, strings
from breakeven.measured.conditions import Arms, base, set_engine, text
from breakeven.measured.measures import Measure, measure
from breakeven.measured.row import Row
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Model, Parameters
from breakeven.spec.workload import Workload

KERNELS = {"Marlin": "int4_marlin", "bitsandbytes": "nf4"}
WEIGHT_ONLY = ("weight_only", "weight_only_unknown")


def arms(row: Row) -> Arms:
    """16 bit, or what the row begins with, against the format it ends with."""
    if text(row, "engine").startswith("kernel only"):
        return _product(row)
    setting = text(row, "lever_setting")
    format_on = strings.weight_format(setting)
    how = measure(row)
    d = base(row)
    if d.model.name.startswith("gpt-oss"):
        format_on = "mxfp4"
    off = set_engine(d, quantization="fp8", kv_cache_dtype="fp8") if setting.startswith("fp8->") else d
    on = set_engine(off, quantization=format_on)
    off, on = how.loaded(off), how.loaded(on)
    return Arms(off=off, on=on, speed=how.speed, regime=_regime(on, format_on, how), sigma_row="")


def _regime(on: Deployment, format_on: str, how: Measure) -> str:
    if how.name == "max that fits":
        return how.name
    sigma = on_device(format_on, on.hardware.device).sigma
    if sigma.startswith("gguf"):
        return f"gguf {how.name}"
    if sigma in WEIGHT_ONLY:
        one = on.workload.batch == 1.0 or on.workload.concurrency == 1.0
        return "weight only, batch 1" if one else "weight only, batch above 1"
    return {"fp8": "native 8 bit"}.get(sigma, sigma)


def _product(row: Row) -> Arms:
    """One matrix product, or those of a layer: the same two roofs, without a model around them."""
    name = KERNELS.get(text(row, "engine").removeprefix("kernel only: "))
    if name is None:
        raise strings.refused("kernel_unknown", written=text(row, "engine"))
    rows = strings.number(text(row, "batch_or_concurrency"), "rows")
    one = Model(
        name=text(row, "model"),
        family="matrix",
        layers=1,
        hidden=1,
        vocabulary=1,
        attention=(),
        parameters=Parameters(embedding=0, head=0, attention=0, mlp=10**9, experts=0, other=0),
        dtype="float16",
    )
    off = Deployment(
        model=one,
        hardware=Hardware(device=strings.device(text(row, "hardware"))),
        engine=Engine(kv_cache_dtype="bf16", enable_prefix_caching=False),
        workload=Workload(batch=rows, context_tokens=1.0),
    )
    on = set_engine(off, quantization=name)
    return Arms(off=off, on=on, speed=speeds.MATRICES, regime="kernel", sigma_row=weight_kernel(name).sigma)
