"""What an engine does when it is not told: its defaults by version and device, with their sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from breakeven.origin.values import refuse_unknown
from breakeven.spec.engine import EngineDefaults, version_key
from breakeven.spec.hardware import Device

KEYS = (
    "title",
    "version",
    "aliases",
    "kv_reserve",
    "mixes_prompts",
    "fills",
    "runtime_reserve_bytes",
    "state_dtype",
    "own_slots_since",
    "settings",
    "rules",
    "flag_separator",
    "commands",
    "sources",
)
RULE_KEYS = ("since", "before", "memory_at_least_bytes", "memory_below_bytes", "device_without", "device_with", "settings", "source")


def parse_engine(table: Mapping[str, object], name: str, version: str | None, device: Device | None) -> EngineDefaults:
    """The defaults in force; of the rules that match, later ones win."""
    refuse_unknown(table, KEYS, f"{name}.")
    in_force = version or str(table["version"])
    settings = dict(cast(Mapping[str, object], table["settings"]))
    for rule in cast(list[Mapping[str, object]], table.get("rules", [])):
        refuse_unknown(rule, RULE_KEYS, f"{name}.rules.")
        if _matches(rule, version_key(in_force), device):
            settings |= cast(Mapping[str, object], rule["settings"])
    return EngineDefaults(
        name=name,
        title=str(table["title"]),
        version=in_force,
        settings=settings,
        kv_reserve=cast(Literal["grow", "whole"], table["kv_reserve"]),
        mixes_prompts=table.get("mixes_prompts") is True,
        fills=cast(Literal["device", "free"], table.get("fills", "device")),
        runtime_reserve_bytes=float(cast(float, table["runtime_reserve_bytes"])),
        state_dtype=cast(Literal["float32", "bfloat16"], table["state_dtype"]),
        own_slots="own_slots_since" in table and version_key(in_force) >= version_key(str(table["own_slots_since"])),
        sources=cast(Mapping[str, str], table.get("sources", {})),
    )


def _matches(rule: Mapping[str, object], version: tuple[int, ...], device: Device | None) -> bool:
    if "since" in rule and version < version_key(str(rule["since"])):
        return False
    if "before" in rule and version >= version_key(str(rule["before"])):
        return False
    about_device = {key for key in rule if key.startswith(("memory", "device"))}
    return not about_device or (device is not None and _device_matches(rule, device))


def _device_matches(rule: Mapping[str, object], device: Device) -> bool:
    least, below = cast(float, rule.get("memory_at_least_bytes", 0.0)), cast(float, rule.get("memory_below_bytes", float("inf")))
    without, wanted = cast(list[str], rule.get("device_without", [])), cast(list[str], rule.get("device_with", []))
    named = not wanted or any(part in device.name for part in wanted)
    return least <= device.capacity_bytes < below and named and not any(part in device.name for part in without)
