"""A matrix product alone, as kernels are measured: the two roofs of a step's dense part, without a model around them."""

from __future__ import annotations

from breakeven.measured import speeds, words
from breakeven.measured.conditions import Arms, set_engine
from breakeven.measured.measures import load_of
from breakeven.measured.reading import RowReading, refused
from breakeven.measured.row import NotUnderstood
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Hardware
from breakeven.spec.model import Model, Parameters
from breakeven.spec.workload import Workload

KERNEL_ONLY = "kernel only"
WEIGHTS = 10**9
"""Any number large enough to be read from memory: the gain does not depend on it."""


def is_product(r: RowReading) -> bool:
    """Whether a row measures a kernel and no engine."""
    return r.text("engine").lower().startswith(KERNEL_ONLY)


def product(r: RowReading) -> Arms:
    """One product, or those of a layer together: 16 bit against the kernel's format."""
    rows = load_of(r).on
    if rows is None:
        raise refused("load_without_number")
    off = Deployment(
        model=_matrix(r.text("model")),
        hardware=Hardware(device=r.device()),
        engine=Engine(kv_cache_dtype="bf16", enable_prefix_caching=False),
        workload=Workload(batch=rows, context_tokens=1.0),
    )
    return Arms(off=off, on=set_engine(off, quantization=_family(r)), speed=speeds.MATRICES, regime="kernel")


def _matrix(name: str) -> Model:
    parameters = Parameters(embedding=0, head=0, attention=0, mlp=WEIGHTS, experts=0, other=0)
    return Model(name=name, family="matrix", layers=1, hidden=1, vocabulary=1, attention=(), parameters=parameters, dtype="float16")


def _family(r: RowReading) -> str:
    """The family of the kernel that the setting names, else of the format of the weights."""
    try:
        found = words.weight_format(words.setting(r.text("lever_setting"))[1])
    except NotUnderstood:
        found = words.weight_format(r.text("weight_dtype"))
    r.understood("setting", "lever_setting", found)
    return found
