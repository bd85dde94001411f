"""An engine's support file: rules with a source each, unknown keys and words refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from breakeven.errors import InputError
from breakeven.origin.values import refuse_unknown
from breakeven.spec.engine import version_key
from breakeven.spec.support import (
    ENGINE_WORDS,
    MODEL_WORDS,
    BlockRule,
    Condition,
    DeviceCondition,
    ReserveRule,
    SupportRule,
    SupportSheet,
)

KEYS = ("rules", "blocks", "reserves")
WHERE = ("since", "before", "device", "model", "engine")
DEVICE_LISTS = ("vendors", "without_vendors", "families", "names")
MEMORY = ("memory_at_least_bytes", "memory_below_bytes")
DEVICE_KEYS = (*DEVICE_LISTS, "capability_at_least", "capability_below", "native", "not_native", *MEMORY)
MODEL_KEYS = ("kinds", "without_kinds", "head_dims", "head_dims_beside")
SAYS = ("supported", "kernel", "backend", "default", "on", "off", "on_note", "off_note", "reason")
RULE_KEYS = ("lever", "settings", *WHERE, *SAYS, "runs_checkpoint", "source")
BLOCK_KEYS = ("tokens", "state_pages", *WHERE, "source")
RESERVE_SAYS = (
    "utilisation",
    "reserve_bytes",
    "kept_bytes",
    "kept_bytes_per_device",
    "kept_bytes_speculation",
    "kept_bytes_draft_model",
)
RESERVE_KEYS = (*RESERVE_SAYS, *WHERE, "source")
Table = Mapping[str, object]


def parse_support(table: Table, engine: Table, name: str) -> SupportSheet:
    """A support file's table and its engine's, read into rules."""
    refuse_unknown(table, KEYS, f"{name}.")
    return SupportSheet(
        engine=name,
        title=str(engine["title"]),
        version=str(engine["version"]),
        rules=tuple(_rule(entry, f"{name}.rules.") for entry in _entries(table, "rules")),
        blocks=tuple(_block(entry, f"{name}.blocks.") for entry in _entries(table, "blocks")),
        reserves=tuple(_reserve(entry, f"{name}.reserves.") for entry in _entries(table, "reserves")),
    )


def _entries(table: Table, key: str) -> list[Table]:
    return cast(list[Table], table.get(key, []))


def _rule(entry: Table, path: str) -> SupportRule:
    refuse_unknown(entry, RULE_KEYS, path)
    says = {key: entry[key] for key in SAYS if key in entry}
    if not says:
        raise InputError("support_says_nothing", path=path, lever=entry.get("lever"))
    if says.get("supported") is False and not says.get("reason"):
        raise InputError("support_without_reason", path=path, lever=entry.get("lever"))
    checkpoint = entry.get("runs_checkpoint")
    return SupportRule(
        lever=str(entry["lever"]),
        settings=_words(entry, "settings"),
        where=_where(entry, path),
        says=says,
        runs_checkpoint=None if checkpoint is None else str(checkpoint),
        source=_source(entry, path),
    )


def _block(entry: Table, path: str) -> BlockRule:
    refuse_unknown(entry, BLOCK_KEYS, path)
    tokens, pages = int(cast(int, entry["tokens"])), entry.get("state_pages") is True
    return BlockRule(where=_where(entry, path), tokens=tokens, state_pages=pages, source=_source(entry, path))


def _reserve(entry: Table, path: str) -> ReserveRule:
    refuse_unknown(entry, RESERVE_KEYS, path)
    says = {key: float(cast(float, entry[key])) for key in RESERVE_SAYS if key in entry}
    return ReserveRule(where=_where(entry, path), says=says, source=_source(entry, path))


def _source(entry: Table, path: str) -> str:
    if not entry.get("source"):
        raise InputError("support_without_source", path=path, lever=entry.get("lever", ""))
    return str(entry["source"])


def _where(entry: Table, path: str) -> Condition:
    device, model = cast(Table | None, entry.get("device")), cast(Table, entry.get("model", {}))
    refuse_unknown(model, MODEL_KEYS, f"{path}model.")
    kinds, without, engine = _words(model, "kinds"), _words(model, "without_kinds"), _words(entry, "engine")
    _known((*kinds, *without), MODEL_WORDS, f"{path}model")
    _known(engine, ENGINE_WORDS, f"{path}engine")
    return Condition(
        since=_version(entry, "since"),
        before=_version(entry, "before"),
        device=None if device is None else _device(device, path),
        kinds=kinds,
        without_kinds=without,
        head_dims=tuple(cast(list[int], model.get("head_dims", []))),
        head_dims_beside=tuple(cast(list[int], model.get("head_dims_beside", []))),
        engine=engine,
    )


def _version(entry: Table, key: str) -> str | None:
    if key not in entry:
        return None
    version_key(str(entry[key]))
    return str(entry[key])


def _device(entry: Table, path: str) -> DeviceCondition:
    refuse_unknown(entry, DEVICE_KEYS, f"{path}device.")
    stated: dict[str, Any] = {key: _words(entry, key) if key in DEVICE_LISTS else entry[key] for key in DEVICE_KEYS if key in entry}
    return DeviceCondition(**stated)


def _words(entry: Table, key: str) -> tuple[str, ...]:
    return tuple(str(word) for word in cast(list[object], entry.get(key, [])))


def _known(words: tuple[str, ...], known: object, path: str) -> None:
    refuse_unknown(words, tuple(sorted(cast(frozenset[str], known))), f"{path}.")
