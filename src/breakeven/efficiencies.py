"""The fitted numbers the ledgers take as arguments: priors by engine and era, acceptance priors, model-form sigmas."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from breakeven.spec.calibration import Calibration
from breakeven.spec.calibration_file import CALIBRATION_SCHEMAS
from breakeven.spec.engine import Engine, version_key
from breakeven.stats import Array

FACTOR = "factor"
"""Row of a lever's shipped errors that is a factor on the prior's."""
GRAPH_VERSION = (0, 8)
"""vLLM from 0.8 on runs its V1 engine with CUDA graphs."""


@dataclass(frozen=True, kw_only=True)
class Efficiencies:
    """Shares of sheet rates that are achieved, and fixed costs in seconds. Names as in the theory pages."""

    bandwidth_dense: Array | float
    bandwidth_experts: Array | float
    bandwidth_kv: Array | float
    mfu_decode: Array | float
    mfu_decode_experts: Array | float
    layer_s: Array | float
    mla_layer_s: Array | float
    moe_layer_s: Array | float
    sequence_s: Array | float
    host_s: Array | float
    allreduce_s: Array | float
    link_efficiency: Array | float
    alltoall_s: Array | float
    network_efficiency: Array | float
    expert_imbalance: Array | float
    logit_bytes: Array | float
    prefill_mfu_dense: Array | float
    prefill_mfu_experts: Array | float
    prefill_mfu_attention: Array | float
    interference: Array | float
    ttft_start_s: Array | float
    ttft_steps: Array | float
    ttft_layer_s: Array | float
    ttft_burst: Array | float
    ttft_queue: Array | float
    round_s: Array | float
    round_sequence_s: Array | float
    tree_s: Array | float
    draft_pass_s: Array | float
    draft_bandwidth: Array | float
    lookup_s: Array | float
    width_penalty: Array | float
    expert_sharing: Array | float
    prefix_bookkeeping: Array | float
    tpot_between: Array | float
    tpot_within: Array | float
    ttft_between: Array | float
    ttft_within: Array | float
    eager: bool


@cache
def table(name: str) -> Mapping[str, Any]:
    """One file of ``catalog/calibrations``, read once."""
    return tomllib.loads(resources.files("breakeven").joinpath("catalog", "calibrations", f"{name}.toml").read_text(encoding="utf-8"))


def is_eager(engine: Engine) -> bool:
    """Whether the engine launches kernels one by one (no CUDA graphs): asked for, or of the era before them.

    A version without a number (``main``, ``nightly``) is a new one.
    """
    return engine.enforce_eager or (engine.name == "vllm" and version_key(engine.version) < GRAPH_VERSION)


SECTIONS: Mapping[str, str] = {"prefill": "prefill_", "ttft": "ttft_", "prefix": "prefix_"}
"""Sections of ``prior.toml`` whose names stand behind a word of their own; those of others stand as they are."""


def _field(section: str, name: str) -> str:
    return name if name == "interference" else SECTIONS.get(section, "") + name


@cache
def parameters() -> Mapping[str, str]:
    """Field of :class:`Efficiencies` to the parameter behind it, ``section.name``."""
    sheet = table("prior")
    return {
        found: f"{section}.{name}"
        for section in ("step", "parallel", "prefix", "prefill", "ttft", "speculation", "offset")
        for name in sheet[section]
        if (found := _field(section, name)) in Efficiencies.__dataclass_fields__
    }


@cache
def prior_values() -> Mapping[str, float]:
    """Every parameter of ``prior.toml`` and its value, factors by class of engine (``scale.eager.step.layer_s``) included."""
    return dict(_flat("", table("prior")))


@cache
def shipped() -> Mapping[str, Mapping[str, Any]]:
    """The calibrations that are shipped, by name: the files of ``catalog/calibrations`` of that schema."""
    folder = resources.files("breakeven").joinpath("catalog", "calibrations")
    names = sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return {name: table(name) for name in names if table(name).get("schema") in CALIBRATION_SCHEMAS}


@cache
def shipped_values(without: str = "") -> Mapping[str, float]:
    """What the shipped calibrations found, but for one that is made anew; with the deviations of a deployment that none of them saw."""
    found: dict[str, float] = {}
    for sheet in (sheet for name, sheet in shipped().items() if name != without):
        found |= {name: float(entry["value"]) for name, entry in sheet.get("parameters", {}).items()}
        found |= {f"offset.{name}": float(value) for name, value in sheet.get("residual", {}).get("none", {}).items()}
    return found


@cache
def shipped_of(kernel: str) -> Mapping[str, float]:
    """What is shipped of one kernel family: ``weights.fp8`` or ``kv.fp8``."""
    return {name: value for name, value in shipped_values().items() if name.startswith(f"{kernel}.")}


def fitted_of(kernel: str, calibration: Calibration | None) -> Mapping[str, Array | float]:
    """What was fitted of one kernel family."""
    return _over(shipped_of(kernel), calibration, f"{kernel}.")


def fitted_values(calibration: Calibration | None) -> Mapping[str, Array | float]:
    """What was fitted: as shipped, and over it what a calibration of the user's found.

    A number for all stands for every one: what is shipped of single classes (``weights.fp8.phi.hopper``) was not fitted with it.
    """
    return _over(shipped_values(), calibration)


def _over(known: Mapping[str, float], calibration: Calibration | None, begins: str = "") -> Mapping[str, Array | float]:
    if calibration is None or says_nothing(calibration):
        return known
    given = calibration.values
    some = {name: value for name, value in given.items() if name.startswith(begins)} if begins else given
    if calibration.alone:
        return some
    return {**{name: value for name, value in known.items() if name.rpartition(".")[0] not in given}, **some}


def says_nothing(calibration: Calibration | None) -> bool:
    """Whether all parameters are as shipped: an observation has rows alone."""
    return calibration is None or not (calibration.values or calibration.alone)


def shipped_rows(engine: Engine, family: str) -> int:
    """Public rows of this engine on this class of device in the shipped calibrations."""
    entries = (entry for sheet in shipped().values() for entry in sheet.get("deployments", ()))
    return sum(int(entry["rows"]) for entry in entries if entry["engine"] == engine.name and entry.get("family") == family)


def _flat(path: str, entry: object) -> Iterator[tuple[str, float]]:
    if isinstance(entry, Mapping):
        if "value" in entry:
            yield path, float(entry["value"])
            return
        for name, below in entry.items():
            yield from _flat(f"{path}.{name}" if path else name, below)


def classes(engine: Engine) -> tuple[str, ...]:
    """The classes of an engine whose factors apply: its name, and ``eager`` where it launches kernels one by one."""
    return (engine.name, "eager") if is_eager(engine) else (engine.name,)


def prior(engine: Engine, calibration: Calibration | None = None) -> Efficiencies:
    """The efficiencies of an engine: what is shipped, and over it what a calibration found."""
    return _shipped(engine.name, is_eager(engine)) if says_nothing(calibration) else _built(classes(engine), fitted_values(calibration))


@cache
def _shipped(name: str, eager: bool) -> Efficiencies:
    return _built((name, "eager") if eager else (name,), shipped_values())


def _built(named: tuple[str, ...], found: Mapping[str, Array | float]) -> Efficiencies:
    known = prior_values()
    values: dict[str, Array | float] = {}
    for target, parameter in parameters().items():
        value = found.get(parameter, known[parameter])
        for each in named:
            factor = f"scale.{each}.{parameter}"
            if factor in found or factor in known:
                value = value * found.get(factor, known.get(factor, 1.0))
        values[target] = value
    return Efficiencies(eager="eager" in named, **values)


def drawn_range(section: str, name: str) -> tuple[float, float]:
    """The bounds of a prior that is drawn."""
    entry = table("prior")[section][name]
    return float(entry["low"]), float(entry["high"])


@cache
def lever_sigma(lever: str, row: str, known: str) -> float:
    """A lever's own error of ln gain for a kind of row: as the shipped calibrations tell it from pairs left out, else the prior's."""
    for sheet in shipped().values():
        found = sheet.get("sigma", {}).get(lever, {}).get(row)
        if found is not None:
            return float(found[known])
    return float(table("sigma")[lever][row][known])


@cache
def sigma_factor(lever: str, known: str) -> float:
    """By what the sum of a lever's several errors has to be widened for pairs left out to lie in their intervals; 1 where none were."""
    for sheet in shipped().values():
        found = sheet.get("sigma", {}).get(lever, {}).get(FACTOR)
        if found is not None:
            return float(found[known])
    return 1.0


def level(engine: Engine, family: str) -> str:
    """How well the model-form is known here: ``family`` when the fits held this engine on this class of device, else ``foreign``."""
    return "family" if f"{engine.name} {family}" in table("sigma")["known"] else "foreign"
