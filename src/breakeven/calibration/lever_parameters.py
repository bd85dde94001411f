"""Which fitted numbers the gains of pairs bear on: kernels by class of device, rounds of speculation, classes of engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from breakeven.calibration.parameters import Parameter, parameter
from breakeven.efficiencies import classes, table
from breakeven.kernels import SIXTEEN_BIT, kv_format, weight_kernels
from breakeven.measured.pair import Pair
from breakeven.spec.deployment import Deployment

FACTOR = "~"
"""Between a parameter and a class: a factor on it there, ``weights.fp8.phi~hopper``."""
QUANTITIES = ("phi", "delta_decode", "delta_prefill")


def expanded(values: Mapping[str, object]) -> dict[str, object]:
    """Factors become the parameters of their class: ``weights.fp8.phi~hopper`` times ``weights.fp8.phi`` is ``weights.fp8.phi.hopper``."""
    found = {name: value for name, value in values.items() if FACTOR not in name}
    for name, factor in values.items():
        base, mark, kind = name.partition(FACTOR)
        if mark:
            found[f"{base}.{kind}"] = values[base] * factor  # type: ignore[operator]
    return found


def names_of(pair: Pair) -> frozenset[str]:
    """The parameters that a pair tells of: those of what differs between its arms, and of the class of engine that both run on.

    A kernel that both arms run is in both times: what a gain misses then is no news of the kernel.
    """
    off, on = (frozenset(_of_deployment(d)) for d in (pair.off, pair.on))
    return (off ^ on) | {name for name in off & on if name.startswith("scale.")}


def _of_deployment(d: Deployment) -> Iterable[str]:
    family = d.hardware.device.family
    for role, kernel in weight_kernels(d.model, d.engine, d.hardware.device).items():
        if kernel.name not in SIXTEEN_BIT:
            # Weights that are written out in 16 bits are multiplied by the 16-bit kernel, without an overhead of their own.
            for quantity in QUANTITIES[:1] if kernel.dequantised_bytes else QUANTITIES:
                yield f"weights.{kernel.name}.{quantity}"
                yield f"weights.{kernel.name}.{quantity}{FACTOR}{family}"
            if role == "experts" and d.model.experts is not None:
                yield f"weights.{kernel.name}.phi_experts"
    cache = kv_format(d.model, d.engine)
    if cache != "bf16":
        yield from (f"kv.{cache}.{name}" for name in ("phi", "phi_narrow", "layer_s", "prefill"))
        yield f"kv.{cache}.layer_s{FACTOR}{d.engine.name}"
    if d.engine.enable_prefix_caching:
        yield "prefix.bookkeeping"
    if d.engine.speculative is not None:
        yield from (f"speculation.{name}" for name in table("neutral")["speculation"])
    for each in classes(d.engine):
        for section, entries in table("neutral")["scale"].get(each, {}).items():
            if section != "speculation" or d.engine.speculative is not None:
                yield from (f"scale.{each}.{section}.{name}" for name in entries)


def of_pairs(pairs: Sequence[Pair]) -> tuple[Parameter, ...]:
    """The parameters that pairs bear on, with what is known of each before them."""
    names = sorted({name for pair in pairs for name in names_of(pair)})
    return tuple(parameter(name, entry(name)) for name in names)


def entry(name: str) -> Mapping[str, float]:
    """Where a parameter begins, and how firmly: its entry in ``neutral.toml``."""
    sheet = table("neutral")
    base, mark, _ = name.partition(FACTOR)
    section, *rest = base.split(".")
    found: Mapping[str, float]
    if mark:
        found = sheet["weights"]["family"]["factor"] if section == "weights" else sheet["kv"]["factor"]
    elif section == "weights":
        found = sheet["weights"]["native" if _is_native(rest[0]) else "unpacked"][rest[1]]
    elif section == "kv":
        found = sheet["kv"][rest[1]]
    elif section == "scale":
        found = sheet["scale"][rest[0]][rest[1]][rest[2]]
    else:
        found = sheet[section][rest[0]]
    return found


def _is_native(kernel: str) -> bool:
    from breakeven.kernels import weight_kernel

    return weight_kernel(kernel).compute not in SIXTEEN_BIT
