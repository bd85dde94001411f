"""What is known of devices, models and engines: one TOML file each, found by name, alias or Hugging Face id."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, overload

from breakeven import registry
from breakeven.errors import InputError, UnknownNameError
from breakeven.spec.engine import EngineDefaults
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model

Kind = Literal["hardware", "models", "engines"]
HERE = Path(__file__).with_name("catalog")
INDEX = "index.toml"
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
    """The entry of a name, an alias or a Hugging Face id, in any case."""
    return _load(kind, normalised(name), dirs)


@cache
def _load(kind: Literal["hardware", "models"], name: str, dirs: tuple[Path, ...]) -> Device | Model:
    path = _path(kind, name, dirs)
    # By the registry, since what resolves a deployment lies beside the parsers and looks names up here.
    reader = registry.module("origin", f"{KIND_WORDS[kind]}_entry")
    found: Device | Model = (reader.parse_device if kind == "hardware" else reader.parse_entry)(read_table(path), path.stem)
    return found


def engine_defaults(name: str, version: str | None = None, device: Device | None = None) -> EngineDefaults:
    """What an engine does at that version and on that device when it is not told."""
    path = _path("engines", normalised(name), ())
    found: EngineDefaults = registry.module("origin", "engine_entry").parse_engine(read_table(path), path.stem, version, device)
    return found


@cache
def flags(lever: str, way: Literal["on", "off"]) -> Mapping[str, str]:
    """Engine to the flag that turns a lever on or off; {setting} stands for the setting."""
    found = {name: engine_defaults(name).flags.get(lever, {}).get(way) for name in names("engines")}
    return {name: text for name, text in found.items() if text is not None}


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
