"""What is known of devices, models and engines: one TOML file each, found by name, alias or Hugging Face id."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

from breakeven import registry, support
from breakeven.catalog_files import (
    HERE,
    INDEX,
    KIND_WORDS,
    Kind,
    find,
    make_index,
    normalised,
    other_names,
    our_file,
    our_names,
    read_table,
    user_files,
    user_folders,
    users_file,
)
from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.spec.engine import Engine, EngineDefaults
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model

FIGURES = "figures.toml"
COMPARED = ("title", "vendor", "memory_bytes", "bandwidth_bytes_per_s")
SURE = ("2 sources", "2 sources")
"""Memory and bandwidth of a device that may be named as a next one."""
__all__ = ["HERE", "INDEX", "KIND_WORDS", "make_index", "normalised", "other_names", "read_table", "user_folders"]
"""What is looked up where entries are looked up."""


def names(kind: Kind, dirs: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """Names of a kind, sorted: its files, in the product and in further folders."""
    return tuple(sorted({*our_names(kind), *(path.stem for path, its in user_files(dirs) if its == kind)}))


@overload
def load(kind: Literal["hardware"], name: str, dirs: tuple[Path, ...] = ()) -> Device: ...
@overload
def load(kind: Literal["models"], name: str, dirs: tuple[Path, ...] = ()) -> Model: ...
def load(kind: Literal["hardware", "models"], name: str, dirs: tuple[Path, ...] = ()) -> Device | Model:
    """The entry of a name, an alias or a Hugging Face id, in any case. A model asked for by an id has that id first."""
    compared = normalised(name)
    path = find(kind, compared, dirs)
    found = _load(kind, path, path.stat().st_mtime_ns)
    return _asked_first(found, compared) if isinstance(found, Model) else found


@cache
def _load(kind: Literal["hardware", "models"], path: Path, changed: int) -> Device | Model:
    """The entry of a file as it was at that time: a user may be writing it."""
    return parse(kind, read_table(path), path.stem)


def parse(kind: Literal["hardware", "models"], table: Mapping[str, object], name: str) -> Device | Model:
    """The entry of a table."""
    # By the registry, since what resolves a deployment lies beside the parsers and looks names up here.
    reader = registry.module("origin", f"{KIND_WORDS[kind]}_entry")
    found: Device | Model = (reader.parse_device if kind == "hardware" else reader.parse_entry)(table, name)
    return found


def told_of_folders(asked: Mapping[Literal["hardware", "models"], str], dirs: tuple[Path, ...]) -> tuple[Message, ...]:
    """What is to be said of the user's folders: an entry of theirs that stands before ours, and files that cannot be used."""
    found = []
    for kind, name in asked.items():
        mine = users_file(kind, normalised(name), dirs)
        if mine is not None and our_file(kind, normalised(name)) is not None:
            found.append(Message("warning.entry_shadows", {"path": str(mine), "name": name}))
    return (*found, *faults(dirs))


def faults(dirs: tuple[Path, ...]) -> tuple[Message, ...]:
    """The files of the user's folders that cannot be used, each with why: they stand in nobody's way but their own."""
    found = []
    for path, kind in user_files(dirs):
        try:
            table = read_table(path)
            if kind not in ("hardware", "models"):
                raise InputError("entry_of_no_kind", path=path.name)
            parse(kind, table, path.stem)
        except InputError as error:
            found.append(Message("warning.entry_broken", {"path": str(path), "reason": error.message}))
    return tuple(found)


def _asked_first(model: Model, name: str) -> Model:
    asked = [hf_id for hf_id in model.hf_ids if normalised(hf_id) == name]
    return replace(model, hf_ids=(*asked, *(hf_id for hf_id in model.hf_ids if hf_id not in asked))) if asked else model


def engine_defaults(name: str, version: str | None = None, device: Device | None = None) -> EngineDefaults:
    """What an engine does at that version and on that device when it is not told."""
    path = find("engines", normalised(name))
    found: EngineDefaults = registry.module("origin", "engine_entry").parse_engine(read_table(path), path.stem, version, device)
    return found


def engine_title(name: str) -> str:
    """An engine as its makers write it; a name that is not in the catalogue stays as it is."""
    return str(_engine_table(name)["title"]) if name in names("engines") else name


def commands(engine: str) -> Mapping[str, str]:
    """What to type to measure on an engine (``bench``, ``hits`` …), where it has it; {model} and the like are to be filled in."""
    return _texts(_engine_table(engine).get("commands", {})) if engine in names("engines") else {}


def joined_flags(engine: str, typed: Iterable[str]) -> str:
    """Several flags as the engine takes them together: one after the other on a command line, or entry after entry of a file."""
    between = str(_engine_table(engine).get("flag_separator", " ")) if engine in names("engines") else " "
    return between.join(text for text in typed if text)


def _texts(table: object) -> dict[str, str]:
    return {key: value for key, value in table.items() if isinstance(value, str)} if isinstance(table, dict) else {}


def engine(name: str = "vllm", version: str | None = None, device: Device | None = None, **settings: object) -> Engine:
    """An engine's settings: those given, the rest its own defaults at that version and on that device."""
    known = {field.name for field in fields(Engine)}
    for setting in settings:
        if setting not in known:
            near = get_close_matches(setting, known, n=1, cutoff=0.6)
            path = f"engine.{setting}"
            raise InputError(
                "unknown_key_near" if near else "unknown_key", path=path, near=near and near[0], known=", ".join(sorted(known))
            )
    found = engine_defaults(name, version, device)
    nature = {name: getattr(found, name) for name in ("kv_reserve", "mixes_prompts", "fills", "runtime_reserve_bytes", "state_dtype")}
    runs = {"checkpoint_kernels": support.checkpoint_kernels(found.name, found.version, device)}
    shared = {"kv_unified": False} if found.own_slots and "max_num_seqs" in settings else {}
    values: dict[str, Any] = {**found.settings, **nature, **runs, **shared, **settings}
    return Engine(name=found.name, version=found.version, **values)


@cache
def _engine_table(name: str) -> Mapping[str, object]:
    return read_table(find("engines", normalised(name)))


@cache
def figures(kind: Literal["hardware", "models"]) -> Mapping[str, Mapping[str, Any]]:
    """Of a kind, by name, the few figures that are compared over all of them: well-founded devices, mixtures of experts."""
    found: Mapping[str, Mapping[str, Any]] = tomllib.loads((HERE / FIGURES).read_text(encoding="utf-8"))[kind]
    return found


def make_figures() -> dict[str, dict[str, dict[str, Any]]]:
    """What :func:`figures` reads, made from the entries."""
    devices = {name: load("hardware", name) for name in names("hardware")}
    sure = {name: device for name, device in devices.items() if (device.confidence_memory, device.confidence_bandwidth) == SURE}
    models = {name: load("models", name) for name in names("models")}
    return {
        "hardware": {name: {key: getattr(device, key) for key in COMPARED} for name, device in sure.items() if device.memory_bytes},
        "models": {
            name: {"parameters": model.parameters.total, "active_parameters": model.parameters.total - _idle_parameters(model)}
            for name, model in models.items()
            if model.experts is not None
        },
    }


def _idle_parameters(model: Model) -> float:
    experts = model.experts
    return 0.0 if experts is None else model.parameters.experts * (1 - experts.top_k / experts.count)
