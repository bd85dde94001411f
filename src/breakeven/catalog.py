"""What is known of devices, models and engines: one TOML file each, found by name, alias or Hugging Face id."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

from breakeven import registry
from breakeven.errors import InputError, UnknownNameError
from breakeven.messages import Message
from breakeven.spec.engine import Engine, EngineDefaults
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model

Kind = Literal["hardware", "models", "engines"]
Way = Literal["on", "off"]
HERE = Path(__file__).with_name("catalog")
INDEX = "index.toml"
FIGURES = "figures.toml"
COMPARED = ("title", "vendor", "memory_bytes", "bandwidth_bytes_per_s")
SURE = ("2 sources", "2 sources")
KIND_WORDS = {"hardware": "device", "models": "model", "engines": "engine"}
"""A kind's word, which is also the name of its parser: ``origin/device_entry.py`` reads a device."""


def normalised(name: str) -> str:
    """A name as it is compared: lower case, hyphens."""
    return re.sub(r"[\s_]+", "-", name.strip().lower())


@cache
def names(kind: Kind, dirs: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """Names of a kind, sorted: its files, in the product and in further folders."""
    return tuple(sorted({path.stem for folder in _folders(kind, dirs) for path in folder.glob("*.toml")}))


@overload
def load(kind: Literal["hardware"], name: str, dirs: tuple[Path, ...] = ()) -> Device: ...
@overload
def load(kind: Literal["models"], name: str, dirs: tuple[Path, ...] = ()) -> Model: ...
def load(kind: Literal["hardware", "models"], name: str, dirs: tuple[Path, ...] = ()) -> Device | Model:
    """The entry of a name, an alias or a Hugging Face id, in any case. A model asked for by an id has that id first."""
    return _load(kind, normalised(name), dirs)


@cache
def _load(kind: Literal["hardware", "models"], name: str, dirs: tuple[Path, ...]) -> Device | Model:
    path = _path(kind, name, dirs)
    # By the registry, since what resolves a deployment lies beside the parsers and looks names up here.
    reader = registry.module("origin", f"{KIND_WORDS[kind]}_entry")
    found: Device | Model = (reader.parse_device if kind == "hardware" else reader.parse_entry)(read_table(path), path.stem)
    return _asked_first(found, name) if isinstance(found, Model) else found


def _asked_first(model: Model, name: str) -> Model:
    asked = [hf_id for hf_id in model.hf_ids if normalised(hf_id) == name]
    return replace(model, hf_ids=(*asked, *(hf_id for hf_id in model.hf_ids if hf_id not in asked))) if asked else model


def engine_defaults(name: str, version: str | None = None, device: Device | None = None) -> EngineDefaults:
    """What an engine does at that version and on that device when it is not told."""
    path = _path("engines", normalised(name), ())
    found: EngineDefaults = registry.module("origin", "engine_entry").parse_engine(read_table(path), path.stem, version, device)
    return found


def engine_title(name: str) -> str:
    """An engine as its makers write it; a name that is not in the catalogue stays as it is."""
    return str(_engine_table(name)["title"]) if name in names("engines") else name


def commands(engine: str) -> Mapping[str, str]:
    """What to type to measure on an engine (``bench``, ``hits`` …), where it has it; {model} and the like are to be filled in."""
    return _texts(_engine_table(engine).get("commands", {})) if engine in names("engines") else {}


def flags(lever: str, way: Way, setting: str | None = None, **values: object) -> Mapping[str, str]:
    """Engine to what is typed to turn a lever on (at a setting, where settings differ) or off; perhaps nothing, and a note says what to do.

    An engine that does not have the lever, or the setting, is not there. ``values`` fill the holes: {setting}, {k}, {model} …
    """
    return {name: entry.get(way, "").format(setting=setting, **values) for name, entry in _entries(lever, way, setting).items()}


def joined_flags(engine: str, typed: Iterable[str]) -> str:
    """Several flags as the engine takes them together: one after the other on a command line, or entry after entry of a file."""
    between = str(_engine_table(engine).get("flag_separator", " ")) if engine in names("engines") else " "
    return between.join(text for text in typed if text)


def flag_table(lever: str) -> Mapping[str, Mapping[str, str]]:
    """Engine to setting to what is typed for it, holes left open; where settings do not differ it is called ``on``."""
    found: dict[str, dict[str, str]] = {}
    for name in names("engines"):
        table = _engine_table(name).get("flags", {})
        entry = table.get(lever, {}) if isinstance(table, dict) else {}
        settings = {key: value for key, value in entry.items() if isinstance(value, dict)} or {"on": entry}
        found[name] = {key: str(value.get("on", "")) for key, value in settings.items() if "on" in value or "on_note" in value}
    return {name: settings for name, settings in found.items() if settings}


def flag_notes(lever: str, way: Way, setting: str | None = None) -> Mapping[str, Message]:
    """Engine to what is to be done beside the flag: a checkpoint to be had, a flag to be left out."""
    found = {name: entry.get(f"{way}_note") for name, entry in _entries(lever, way, setting).items()}
    return {name: Message(f"lever.{note}", {}) for name, note in found.items() if note}


def _entries(lever: str, way: Way, setting: str | None) -> dict[str, dict[str, str]]:
    """Engine to its texts for one way: those of the table that the setting's first word names, else the lever's own."""
    found = {}
    for name in names("engines"):
        table = _engine_table(name).get("flags", {})
        entry = table.get(lever, {}) if isinstance(table, dict) else {}
        by_setting = {key: value for key, value in entry.items() if isinstance(value, dict)}
        chosen = by_setting.get((setting or "").split(" ")[0], {}) if way == "on" and by_setting else entry
        if way in chosen or f"{way}_note" in chosen:
            found[name] = _texts(chosen)
    return found


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
    nature = {name: getattr(found, name) for name in ("kv_reserve", "mixes_prompts", "runtime_reserve_bytes", "state_dtype")}
    values: dict[str, Any] = {**found.settings, **nature, **settings}
    return Engine(name=found.name, version=found.version, **values)


@cache
def _engine_table(name: str) -> Mapping[str, object]:
    return read_table(_path("engines", normalised(name), ()))


def _path(kind: Kind, name: str, dirs: tuple[Path, ...]) -> Path:
    """The file of a name: directly, by the index, or by reading the aliases of files that the index does not know."""
    direct = _file(kind, name, dirs)
    if direct is not None:
        return direct
    indexed = _file(kind, str(_index().get(kind, {}).get(name, "")), dirs)
    if indexed is not None:
        return indexed
    for path in (path for folder in _folders(kind, dirs) for path in sorted(folder.glob("*.toml"))):
        if name in other_names(read_table(path)):
            return path
    known = {*names(kind, dirs), *_index().get(kind, {})}
    raise UnknownNameError(KIND_WORDS[kind], name, sorted(known))


def _file(kind: Kind, name: str, dirs: tuple[Path, ...]) -> Path | None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]{0,99}", name):
        return None
    found = (folder / f"{name}.toml" for folder in _folders(kind, dirs))
    return next((path for path in found if path.is_file()), None)


def _folders(kind: Kind, dirs: tuple[Path, ...]) -> Iterator[Path]:
    """The user's folders first, so that an entry of theirs wins over ours."""
    for folder in dirs:
        yield folder / kind if (folder / kind).is_dir() else folder
    yield HERE / kind


def other_names(table: Mapping[str, object]) -> set[str]:
    """Aliases and Hugging Face ids of an entry, as they are compared."""
    found: set[str] = set()
    for key in ("aliases", "hf_ids"):
        listed = table.get(key, [])
        found |= {normalised(str(name)) for name in listed} if isinstance(listed, list) else set()
    return found


@cache
def _index() -> Mapping[str, Mapping[str, str]]:
    path = HERE / INDEX
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


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


def make_index() -> dict[str, dict[str, str]]:
    """Every other name to its file's, by kind; a name that two files claim is refused."""
    index: dict[str, dict[str, str]] = {}
    for kind in KIND_WORDS:
        found = index.setdefault(kind, {})
        for path in sorted((HERE / kind).glob("*.toml")):
            for name in sorted(other_names(read_table(path))):
                if found.setdefault(name, path.stem) != path.stem:
                    raise InputError("name_twice", name=name, first=found[name], second=path.stem)
    return index


def read_table(path: Path) -> Mapping[str, object]:
    """The table of an entry's file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("bad_entry", path=path.name, reason=str(error).splitlines()[0]) from None
