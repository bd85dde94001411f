"""What each part of the model buys: the same numbers with one part switched off, as a calibration that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from breakeven.efficiencies import prior_values, shipped_values
from breakeven.kernels import by_family, kv_kernel, kv_names, weight_kernel, weight_names
from breakeven.spec.calibration import Calibration
from breakeven.spec.deployment import Deployment
from breakeven.stats import Array

FREE_LINK = 1e9
"""A share of a link's rate at which bytes take no time."""
NEARLY_NOTHING = 1e-9
"""Nothing, where a row divides one arm's share by the other's."""
FIXED = ("layer_s", "mla_layer_s", "moe_layer_s", "sequence_s", "host_s", "allreduce_s")
ROUNDS = ("round_s", "round_sequence_s", "tree_s", "draft_pass_s", "lookup_s")
PER_ENGINE = ("start_s", "steps", "layer_s", "burst", "queue")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the model, and the values that switch it off."""

    name: str
    title: str
    values: Mapping[str, Array | float]

    def without(self, d: Deployment) -> Deployment:
        """The deployment without the part."""
        return replace(d, calibration=Calibration(values=self.values))


def _known() -> dict[str, float]:
    """Every parameter that is shipped with a value of its own."""
    return {**prior_values(), **shipped_values()}


def _places(name: str, own: Iterable[str]) -> list[str]:
    """Classes for which a kernel's quantity has a value of its own, in the catalogue or in a calibration."""
    found = (each.removeprefix(f"{name}.") for each in shipped_values() if each.startswith(f"{name}."))
    return sorted({*own, *found} - {"default"})


def _off(section: str, names: tuple[str, ...], value: float) -> Iterator[tuple[str, float]]:
    """The values of parameters, and of the factors by engine on them."""
    for name in names:
        parameter = f"{section}.{name}"
        yield parameter, value
        yield from ((factor, 1.0) for factor in _known() if factor.startswith("scale.") and factor.endswith(f".{parameter}"))


def _weight_kernels(*quantities: str) -> Iterator[tuple[str, float]]:
    """1 for every kernel family, and for every family of devices that has a value of its own."""
    for name in weight_names():
        kernel = weight_kernel(name)
        for each in quantities:
            yield f"weights.{name}.{each}", 1.0
            yield from ((f"weights.{name}.{each}.{family}", 1.0) for family in _places(f"weights.{name}.{each}", getattr(kernel, each)))
        if "phi" in quantities and (kernel.phi_experts is not None or f"weights.{name}.phi_experts" in shipped_values()):
            yield f"weights.{name}.phi_experts", 1.0


def _kv_kernels() -> Iterator[tuple[str, float]]:
    for name in kv_names():
        yield from ((f"kv.{name}.{each}", value) for each, value in (("phi", 1.0), ("phi_narrow", 1.0), ("layer_s", 0.0), ("prefill", 1.0)))
        engines = _places(f"kv.{name}.layer_s", kv_kernel(name).layer_s_by_engine)
        yield from ((f"kv.{name}.layer_s.{engine}", 0.0) for engine in engines)


@cache
def parts() -> tuple[Part, ...]:
    """Every part that has a row of its own, in the order in which the page shows them."""
    fixed = {**dict(_off("step", FIXED, 0.0)), **dict(_off("parallel", ("alltoall_s",), 0.0))}
    rounds = dict(_off("speculation", ROUNDS, 0.0))
    shares = dict(_off("step", ("bandwidth_dense", "bandwidth_experts", "bandwidth_kv"), 1.0))
    mfu = {**dict(_off("step", ("mfu_decode",), 1.0)), **dict(_off("prefill", ("mfu_dense", "mfu_experts", "mfu_attention"), 1.0))}
    found: tuple[tuple[str, str, dict[str, float]], ...] = (
        ("none", "nothing: the model as shipped, in the median world", {}),
        ("fixed", "fixed costs of a step (layer, mixture layer, sequence, host, message)", fixed),
        ("rounds", "fixed costs of a round of speculation", rounds),
        ("bandwidth", "achieved share of bandwidth", shares),
        ("mfu", "achieved share of FLOP/s", mfu),
        ("phi", "share of bandwidth by weight kernel, φ", dict(_weight_kernels("phi"))),
        ("delta", "compute overhead by weight kernel, δ", dict(_weight_kernels("delta_decode", "delta_prefill"))),
        ("kv", "share and penalties of cache kernels", dict(_kv_kernels())),
        ("interference", "prompts beside decoding", dict(_off("prefill", ("interference",), NEARLY_NOTHING))),
        ("link", "bytes over links", dict(_off("step", ("link_efficiency",), FREE_LINK))),
        ("ttft", "starts, steps and queues of the first token", dict(_off("ttft", PER_ENGINE, 0.0))),
    )
    return tuple(Part(name=name, title=title, values=values) for name, title, values in found)


def in_force(name: str) -> float:
    """The value of a parameter as it is shipped; a kernel's value for all devices, once fitted, stands for each of them."""
    kind, _, rest = name.partition(".")
    if name in _known():
        return _known()[name]
    family, quantity, *place = rest.split(".")
    base = f"{kind}.{family}.{quantity}"
    if place and base in shipped_values():
        return shipped_values()[base]
    kernel = weight_kernel(family) if kind == "weights" else kv_kernel(family)
    if quantity == "delta_decode" and kernel.delta_decode_range is not None:  # type: ignore[union-attr]
        low, high = kernel.delta_decode_range  # type: ignore[union-attr]
        return float((low * high) ** 0.5)
    if quantity == "layer_s" and place:
        return float(kv_kernel(family).layer_s_by_engine.get(place[0], kv_kernel(family).layer_s))
    value = getattr(kernel, quantity)
    return float(by_family(value, place[0] if place else "default") if isinstance(value, Mapping) else value)


@cache
def stacked() -> Calibration:
    """All parts side by side: the n-th element of every value is that of the n-th part, so that one call evaluates all."""
    names = dict.fromkeys(name for part in parts() for name in part.values)
    return Calibration(values={name: np.array([float(part.values.get(name, in_force(name))) for part in parts()]) for name in names})


@cache
def nothing() -> Part:
    """All parts at once: the ledgers' counts at sheet rates, prompts and steps still told apart by the solver."""
    values = {name: value for part in parts() for name, value in part.values.items()}
    return Part(name="all", title="all of these", values=values)
