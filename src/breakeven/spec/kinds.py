"""Whether a deployment is made of the kinds of things it says: parts, names and switches, before any number is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from breakeven.errors import InputError
from breakeven.spec.bounds import shown
from breakeven.spec.deployment import Deployment
from breakeven.spec.disaggregation import Disaggregation, PrefillPool
from breakeven.spec.engine import Engine, Speculative
from breakeven.spec.hardware import Device, Hardware
from breakeven.spec.model import Model
from breakeven.spec.workload import Acceptance, ArrivalRates, Lengths, Price, ReuseRates, Slo, Workload

PARTS: Mapping[str, tuple[type, str]] = {
    "deployment": (Deployment, "breakeven.Deployment(model=…, hardware=…, engine=…, workload=…)"),
    "model": (Model, 'breakeven.model("llama-3.1-8b")'),
    "hardware": (Hardware, 'breakeven.hardware("h100-sxm", count=4)'),
    "hardware.device": (Device, 'breakeven.hardware("h100-sxm").device'),
    "engine": (Engine, 'breakeven.engine("vllm", "0.11")'),
    "engine.speculative": (Speculative, 'breakeven.Speculative(method="ngram", num_speculative_tokens=3)'),
    "workload": (Workload, "breakeven.Workload(input_tokens=2000, output_tokens=300, concurrency=32)"),
    "workload.acceptance": (Acceptance, "breakeven.Acceptance(length=2.5)"),
    "workload.lengths": (Lengths, "lengths(read(path)), of breakeven.trace and breakeven.traces"),
    "workload.arrivals": (ArrivalRates, "ArrivalRates(factors=(0.5, 1.5), weights=(0.5, 0.5), window_s=60, windows=60)"),
    "workload.reuse": (ReuseRates, "ReuseRates(capacity_tokens=(0, 1e6), hit_rates=(0.0, 0.4))"),
    "disaggregation": (Disaggregation, "breakeven.Disaggregation(prefill=breakeven.PrefillPool(count=4, tensor_parallel_size=4))"),
    "slo": (Slo, "breakeven.Slo(tpot_s=0.05)"),
    "price": (Price, "breakeven.Price(per_device_hour=2.5)"),
}
"""What stands at a path, and how one is made."""
OPTIONAL = (
    "engine.speculative",
    "workload.acceptance",
    "workload.lengths",
    "workload.arrivals",
    "workload.reuse",
    "disaggregation",
    "price",
)
KV_RESERVES = ("grow", "whole")
TRUTHS = (bool, np.bool_)
SWITCHES = tuple(field.name for field in fields(Engine) if field.type == "bool")
ENGINE_NAMES = tuple(field.name for field in fields(Engine) if field.type in ("str", "str | None"))


def check_kinds(d: Deployment) -> None:
    """Refuse whatever is not the kind of thing its place needs, with how to make one."""
    _check_part(d, "deployment")
    for path in PARTS:
        if path != "deployment":
            owner, _, name = path.rpartition(".")
            _check_part(getattr(getattr(d, owner) if owner else d, name), path)
    _check_engine(d.engine)
    if d.disaggregation is not None:
        _check_pool(d.disaggregation.prefill)
    if d.engine.speculative is not None:
        _check_names(d.engine.speculative, "engine.speculative", ("method", "model"))
    _check_names(d.workload, "workload", ("task", "trace"))
    if d.workload.acceptance is not None:
        _check_names(d.workload.acceptance, "workload.acceptance", ("method",))
    if d.price is not None:
        _check_names(d.price, "price", ("currency",))
    _check_tables(d)
    check_list(d.slo.tails, "slo.tails")
    check_list(d.slo.tail_limits_s, "slo.tail_limits_s")
    for place, tail in enumerate(d.slo.tails):
        _check_name(tail, f"slo.tails[{place}]")


def _check_part(value: object, path: str) -> None:
    kind, example = PARTS[path]
    if isinstance(value, kind) or (value is None and path in OPTIONAL):
        return
    raise InputError("not_a_part", path=path, value=shown(value), kind=kind.__name__, example=example)


def _check_pool(pool: object) -> None:
    if not isinstance(pool, PrefillPool):
        example = "breakeven.PrefillPool(count=4, tensor_parallel_size=4)"
        raise InputError("not_a_part", path="disaggregation.prefill", value=shown(pool), kind=PrefillPool.__name__, example=example)
    if not isinstance(pool.enable_expert_parallel, TRUTHS):
        path = "disaggregation.prefill.enable_expert_parallel"
        raise InputError("not_a_switch", path=path, value=shown(pool.enable_expert_parallel))
    device: object = pool.device
    if device is not None and not isinstance(device, Device):
        kind, example = PARTS["hardware.device"]
        raise InputError("not_a_part", path="disaggregation.prefill.device", value=shown(device), kind=kind.__name__, example=example)


def _check_engine(engine: Engine) -> None:
    version: object = engine.version
    if isinstance(version, (int, float)):
        raise InputError("version_not_text", value=shown(version))
    _check_names(engine, "engine", ENGINE_NAMES)
    for name in SWITCHES:
        if not isinstance(getattr(engine, name), TRUTHS):
            raise InputError("not_a_switch", path=f"engine.{name}", value=shown(getattr(engine, name)))
    reserve: object = engine.kv_reserve
    if not isinstance(reserve, str) or reserve not in KV_RESERVES:
        raise InputError("not_one_of", path="engine.kv_reserve", value=shown(reserve), names=", ".join(KV_RESERVES))


def _check_names(part: object, path: str, names: tuple[str, ...]) -> None:
    """A name is text; None only where the field is said to take it."""
    optional = {field.name for field in fields(part) if "None" in str(field.type)}  # type: ignore[arg-type]
    for name in names:
        value = getattr(part, name)
        if value is not None or name not in optional:
            _check_name(value, f"{path}.{name}")


def _check_name(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise InputError("not_text", path=path, value=shown(value))


def _check_tables(d: Deployment) -> None:
    tables = {"drafts": d.drafts, "provenance": d.provenance, "engine.unread": d.engine.unread}
    for path, table in tables.items():
        if not isinstance(table, Mapping):
            raise InputError("not_a_table", path=path)
    for name, draft in d.drafts.items():
        if not isinstance(draft, Model):
            kind, example = PARTS["model"]
            raise InputError("not_a_part", path=f"drafts[{shown(name)}]", value=shown(draft), kind=kind.__name__, example=example)


def check_list(value: object, path: str) -> None:
    """A tuple or a list."""
    if not isinstance(value, (tuple, list)):
        raise InputError("not_a_list", path=path)
