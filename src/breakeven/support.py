"""What an engine supports where, by which kernel, and what is typed for it: the rules of ``catalog/support``, asked.

Of the rules that match a deployment, later ones win, key by key, as with the engines' defaults.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from breakeven import registry
from breakeven.errors import UnknownNameError
from breakeven.kernels import kv_names, runs_on, weight_kernel, weight_names
from breakeven.messages import Message
from breakeven.pages import hybrid_block
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model
from breakeven.spec.parallel import layout
from breakeven.spec.support import Found, SupportRule, SupportSheet

Way = Literal["on", "off"]
CATALOG = Path(__file__).with_name("catalog")
NOT_IN_ENGINE: Mapping[str, str] = {
    "kv_quant": "lever.kv_no_engine",
    "prefix_cache": "lever.prefix_no_engine",
    "speculation": "lever.spec_no_engine",
    "weight_quant": "lever.weights_no_engine",
    "batching": "lever.batching_no_engine",
}


@dataclass(frozen=True, kw_only=True)
class Support:
    """Whether a setting of a lever is to be had on a deployment, by what, and why not."""

    supported: bool
    kernel: str | None = None
    """The family in ``catalog/kernels`` that runs it."""
    backend: str | None = None
    """The attention backend that reads such a cache."""
    default: str | None = None
    """What the engine does untold: ``on``, ``off``, ``auto``."""
    reason: Message | None = None
    """Why not; or, where it is supported, what it costs there beside the figures."""
    source: str = ""
    """Where the verdict was read."""


@cache
def engines() -> tuple[str, ...]:
    """The engines that have a sheet, sorted."""
    return tuple(sorted(path.stem for path in (CATALOG / "support").glob("*.toml")))


@cache
def sheet(engine: str) -> SupportSheet:
    """The rules of one engine."""
    if engine not in engines():
        raise UnknownNameError("engine", engine, engines())
    read = {folder: tomllib.loads((CATALOG / folder / f"{engine}.toml").read_text(encoding="utf-8")) for folder in ("support", "engines")}
    found: SupportSheet = registry.module("origin", "support_entry").parse_support(read["support"], read["engines"], engine)
    return found


def overlaid(rules: Iterable[SupportRule]) -> Found:
    """What rules say together: later ones win key by key, and a verdict brings its own reason and source."""
    says: dict[str, object] = {}
    source = ""
    for rule in rules:
        if "supported" in rule.says:
            says.pop("reason", None)
        if "supported" in rule.says or not source:
            source = rule.source
        says |= rule.says
    return Found(says=says, source=source)


def support(lever: str, setting: str, d: Deployment) -> Support:
    """Whether a setting (its first word, where it has numbers) is to be had on a deployment."""
    kind, engine = setting.split(" ", 1)[0], d.engine
    if engine.name not in engines():
        return Support(supported=False, reason=_no_engine(lever, kind, d), source="")
    matching = [
        r for r in sheet(engine.name).rules if r.about(lever, kind) and r.where.holds(engine.version, d.hardware.device, d.model, engine)
    ]
    found = overlaid(matching)
    if "supported" not in found.says:
        return Support(supported=False, reason=_no_engine(lever, kind, d), source=f"catalog/support/{engine.name}.toml: no rule names it")
    reason = found.says.get("reason")
    said = Support(
        supported=found.says["supported"] is True,
        kernel=_text(found.says.get("kernel")),
        backend=_text(found.says.get("backend")),
        default=_text(found.says.get("default")),
        reason=None if reason is None else Message(f"lever.{reason}", _values(kind, d)),
        source=found.source,
    )
    return _by_units(lever, kind, d, said) if said.supported else said


def _by_units(lever: str, kind: str, d: Deployment, said: Support) -> Support:
    """An engine's word holds only where the device has the units that the family computes in."""
    if lever != "weight_quant" or kind not in weight_names() or runs_on(weight_kernel(kind), d.hardware.device):
        return said
    device = d.hardware.device
    reason = Message("lever.weights_no_unit", {"device": device.title, "format": weight_kernel(kind).title})
    read = device.sources.get("native_formats", device.sources.get("formats", f"formats of {device.title}"))
    return Support(supported=False, reason=reason, source=f"catalog/hardware/{device.name}.toml: {read}")


def _no_engine(lever: str, kind: str, d: Deployment) -> Message:
    return Message(NOT_IN_ENGINE.get(lever, "lever.nothing_here"), _values(kind, d))


def _values(kind: str, d: Deployment) -> dict[str, object]:
    title = sheet(d.engine.name).title if d.engine.name in engines() else d.engine.name
    called: object = weight_kernel(kind).title if kind in weight_names() and kind not in kv_names() else kind
    about = {"engine": title, "version": d.engine.version, "device": d.hardware.device.title, "model": d.model.name}
    return {**about, "format": called, "method": kind}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def settings_of(engine: str, lever: str) -> tuple[str, ...]:
    """The settings of a lever that an engine has had in some version, in the order of its file."""
    named = (setting for rule in sheet(engine).rules if rule.lever == lever for setting in rule.settings)
    return tuple(dict.fromkeys(named))


def engine_settings(engine: str, lever: str) -> tuple[str, ...]:
    """The settings of a lever in an engine's sheet; none for an engine that has no sheet."""
    return settings_of(engine, lever) if engine in engines() else ()


def _typed(engine: str, lever: str, way: Way, setting: str | None, version: str | None = None) -> Mapping[str, object]:
    """What is said of flags at a version: rules that ask more than the version say nothing of what is typed."""
    known, kind = sheet(engine), (setting or "").split(" ", 1)[0] or None
    in_force = version or known.version
    settings = settings_of(engine, lever)
    if way == "on" and settings and kind not in settings:
        return {}
    about = [r for r in known.rules if r.about(lever, kind if way == "on" and settings else None) and r.where.about_version_only]
    return overlaid(r for r in about if r.where.in_version(in_force)).says


def flags(
    lever: str, way: Way, setting: str | None = None, version: Mapping[str, str] | None = None, **values: object
) -> Mapping[str, str]:
    """Engine to what is typed to turn a lever on (at a setting, where settings differ) or off; perhaps nothing, and a note says what to do.

    An engine that does not have the lever, or the setting, is not there. ``version`` holds versions by engine, else the one taken untold;
    ``values`` fill the holes: {setting}, {k}, {model} …
    """
    found = {name: _typed(name, lever, way, setting, (version or {}).get(name)) for name in engines()}
    there = {name: says for name, says in found.items() if way in says or f"{way}_note" in says}
    return {name: str(says.get(way, "")).format(setting=setting, **values) for name, says in there.items()}


def flag_notes(lever: str, way: Way, setting: str | None = None, version: Mapping[str, str] | None = None) -> Mapping[str, Message]:
    """Engine to what is to be done beside the flag: a checkpoint to be had, a flag to be left out."""
    found = {name: _typed(name, lever, way, setting, (version or {}).get(name)).get(f"{way}_note") for name in engines()}
    return {name: Message(f"lever.{note}", {}) for name, note in found.items() if note}


def flag_table(lever: str) -> Mapping[str, Mapping[str, str]]:
    """Engine to setting to what is typed for it, holes left open; where settings do not differ it is called ``on``."""
    found = {}
    for name in engines():
        rows = {setting: _typed(name, lever, "on", setting) for setting in settings_of(name, lever) or ("on",)}
        found[name] = {key: str(says.get("on", "")) for key, says in rows.items() if "on" in says or "on_note" in says}
    return {name: settings for name, settings in found.items() if settings}


def checkpoint_kernels(engine: str, version: str, device: Device | None) -> Mapping[str, str]:
    """The family that runs a checkpoint's format where nothing is typed, by the family that the format alone would name."""
    if engine not in engines() or device is None:
        return {}
    found: dict[str, str] = {}
    for rule in sheet(engine).rules:
        if rule.runs_checkpoint is not None and rule.where.holds(version, device):
            found[rule.runs_checkpoint] = str(rule.says["kernel"])
    return found


def block_size(model: Model, engine: Engine, device: Device) -> int | None:
    """The prefix cache's block in force, in tokens; None where no rule says."""
    if engine.name not in engines():
        return None
    matching = [rule for rule in sheet(engine.name).blocks if rule.where.holds(engine.version, device, model, engine)]
    if not matching:
        return None
    last = matching[-1]
    return hybrid_block(model, engine, last.tokens) if last.state_pages else last.tokens


def reserves(model: Model, engine: Engine, device: Device) -> Mapping[str, float]:
    """Fields of ``Engine`` that say what is kept free, where rules say: a share of the device, and bytes beside weights and cache.

    ``kept_bytes`` is what the engine leaves of the device, as SGLang chooses its share: utilisation = 1 − kept/capacity.
    """
    if engine.name not in engines():
        return {}
    says: dict[str, float] = {}
    for rule in sheet(engine.name).reserves:
        if rule.where.holds(engine.version, device, model, engine):
            says |= rule.says
    found = {
        name: says[key]
        for key, name in (("utilisation", "gpu_memory_utilization"), ("reserve_bytes", "runtime_reserve_bytes"))
        if key in says
    }
    if "kept_bytes" in says:
        found["gpu_memory_utilization"] = round(1.0 - _kept(says, model, engine) / device.capacity_bytes, 3)
    return found


def _kept(says: Mapping[str, float], model: Model, engine: Engine) -> float:
    devices = layout(model, engine).devices
    kept = says["kept_bytes"] + devices * says.get("kept_bytes_per_device", 0.0)
    if engine.speculative is None:
        return kept
    extra = "kept_bytes_draft_model" if engine.speculative.method == "draft_model" else "kept_bytes_speculation"
    return kept + says.get(extra, 0.0)


def keeps_prefixes(model: Model, engine: Engine, device: Device) -> bool | None:
    """Whether the engine keeps this model's prefixes untold: False where it cannot, or asks to be told; None where no rule says."""
    if engine.name not in engines():
        return None
    rules = (r for r in sheet(engine.name).rules if r.about("prefix_cache", "on"))
    says = overlaid(r for r in rules if r.where.holds(engine.version, device, model, engine)).says
    return None if "supported" not in says else says["supported"] is True and says.get("default", "on") == "on"
