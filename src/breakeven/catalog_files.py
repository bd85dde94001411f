"""Where entries lie: ours beside the code, the user's in folders of theirs, which stand first; a name is found by file, alias or index."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from breakeven.errors import InputError, UnknownNameError

Kind = Literal["hardware", "models", "engines"]
HERE = Path(__file__).with_name("catalog")
INDEX = "index.toml"
LARGEST_BYTES = 2**20
KIND_WORDS = {"hardware": "device", "models": "model", "engines": "engine"}
"""A kind's word, which is also the name of its parser: ``origin/device_entry.py`` reads a device."""
USERS: tuple[Kind, ...] = ("hardware", "models")
"""Kinds of which a user may have entries."""
SIGNS: Mapping[str, Kind] = {"bandwidth_bytes_per_s": "hardware", "matmul_flops": "hardware", "attention": "models", "parameters": "models"}
"""A key that only one kind has."""


def normalised(name: str) -> str:
    """A name as it is compared: lower case, hyphens."""
    return re.sub(r"[\s_]+", "-", name.strip().lower())


def config_folder(environment: Mapping[str, str], *, windows: bool = os.name == "nt") -> Path | None:
    """The user's own catalogue: ``breakeven/catalog`` in their configuration folder; None where no such folder is told."""
    if windows:
        base = environment.get("APPDATA", "")
    else:
        # An XDG path that is not absolute is to be ignored, says its specification.
        base = environment.get("XDG_CONFIG_HOME", "")
        home = environment.get("HOME", "")
        base = base if base.startswith("/") else f"{home}/.config" if home else ""
    return Path(base) / "breakeven" / "catalog" if base else None


def user_folders(given: Iterable[Path | str] = ()) -> tuple[Path, ...]:
    """The folders to look in before ours: those named, then the user's configuration folder if there is one."""
    named = tuple(Path(folder).expanduser() for folder in given)
    for folder in named:
        if not folder.is_dir():
            raise InputError("catalog_no_folder", path=str(folder))
    mine = config_folder(os.environ)
    return (*named, mine) if mine is not None and mine.is_dir() else named


def user_files(dirs: Iterable[Path]) -> Iterator[tuple[Path, Kind | None]]:
    """Every entry of the user's folders with its kind: that of the folder it lies in, else the one its keys show."""
    for folder in dirs:
        for kind in USERS:
            yield from ((path, kind) for path in _entries(folder / kind))
        yield from ((path, kind_of(path)) for path in _entries(folder))


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.toml") if path.is_file())


def kind_of(path: Path) -> Kind | None:
    """The kind that a file's keys show; None where it cannot be read, or shows none."""
    table = _readable(path)
    return next((kind for key, kind in SIGNS.items() if key in (table or {})), None)


def _readable(path: Path) -> Mapping[str, object] | None:
    try:
        return read_table(path)
    except InputError:
        return None


@cache
def our_names(kind: Kind) -> tuple[str, ...]:
    """Names of a kind in the product: its files, sorted."""
    return tuple(sorted(path.stem for path in (HERE / kind).glob("*.toml")))


def find(kind: Kind, name: str, dirs: tuple[Path, ...] = ()) -> Path:
    """The file of a name as it is compared: the user's by name or alias, then ours by name or by the index."""
    found = users_file(kind, name, dirs) or our_file(kind, name)
    if found is None:
        known = {*our_names(kind), *index().get(kind, {}), *(path.stem for path, its in user_files(dirs) if its == kind)}
        raise UnknownNameError(KIND_WORDS[kind], name, sorted(known))
    return found


def users_file(kind: Kind, name: str, dirs: tuple[Path, ...]) -> Path | None:
    """The user's file of a name, or of what our index calls by it. One that cannot be read is only in the way of its own name."""
    ours = index().get(kind, {}).get(name)
    found = (_users_file(kind, each, dirs) for each in (name, ours) if each)
    return next((path for path in found if path is not None), None) if dirs else None


def _users_file(kind: Kind, name: str, dirs: tuple[Path, ...]) -> Path | None:
    for folder in dirs:
        files = list(user_files((folder,)))
        if direct := next((path for path, its in files if its in (kind, None) and normalised(path.stem) == name), None):
            return direct
        for path in (path for path, its in files if its == kind):
            if name in other_names(_readable(path) or {}):
                return path
    return None


def our_file(kind: Kind, name: str) -> Path | None:
    """Our file of a name, an alias or an id."""
    for stem in (name, str(index().get(kind, {}).get(name, ""))):
        if re.fullmatch(r"[a-z0-9][a-z0-9.+-]{0,99}", stem) and (HERE / kind / f"{stem}.toml").is_file():
            return HERE / kind / f"{stem}.toml"
    return None


def other_names(table: Mapping[str, object]) -> set[str]:
    """Aliases and Hugging Face ids of an entry, as they are compared."""
    found: set[str] = set()
    for key in ("aliases", "hf_ids"):
        listed = table.get(key, [])
        found |= {normalised(str(name)) for name in listed} if isinstance(listed, list) else set()
    return found


@cache
def index() -> Mapping[str, Mapping[str, str]]:
    """Every other name of ours to its file's, by kind."""
    path = HERE / INDEX
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def make_index() -> dict[str, dict[str, str]]:
    """What :func:`index` reads, made from the entries; a name that two files claim is refused."""
    made: dict[str, dict[str, str]] = {}
    for kind in KIND_WORDS:
        found = made.setdefault(kind, {})
        for path in sorted((HERE / kind).glob("*.toml")):
            for name in sorted(other_names(read_table(path))):
                if found.setdefault(name, path.stem) != path.stem:
                    raise InputError("name_twice", name=name, first=found[name], second=path.stem)
    return made


def read_table(path: Path) -> Mapping[str, object]:
    """The table of an entry's file."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise InputError("file_too_large", path=str(path), size=float(path.stat().st_size), limit=float(LARGEST_BYTES))
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("bad_entry", path=path.name, reason=str(error).splitlines()[0]) from None
    except OSError as error:
        raise InputError("bad_entry", path=path.name, reason=error.strerror or "") from None
    except ValueError:
        # A number with more digits than Python reads.
        raise InputError("file_bad_scalar", path=path.name) from None
