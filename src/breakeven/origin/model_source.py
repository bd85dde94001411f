"""A model however the user names it: a catalogue name, a Hugging Face id, or a local configuration."""

from __future__ import annotations

from pathlib import Path

from breakeven import catalog
from breakeven.errors import InputError, UnknownNameError
from breakeven.origin.json_file import CONFIGS
from breakeven.origin.values import shown
from breakeven.spec.deployment import Provenance
from breakeven.spec.model import Model


def load_model(
    name: str, catalog_dirs: tuple[Path, ...] = (), beside: Path | None = None, *, fetch: bool = True
) -> tuple[Model, Provenance]:
    """The model, and whether it came from a file or from the catalogue; with ``fetch``, an id that is not catalogued from the hub.

    Relative paths are looked up beside ``beside`` too.
    """
    path = _local(name, beside)
    if path is None:
        try:
            return _catalogued(name, catalog_dirs), "catalogue"
        except InputError as unknown:
            from breakeven.origin.hub import is_id, load_id

            if not fetch or not is_id(name) or not unknown.message.key.startswith("error.unknown_model_id"):
                raise
            return load_id(name, near=str(unknown.message.values["near"])), "file"
    from breakeven.origin.gguf import is_gguf, load_gguf

    if is_gguf(path):
        return load_gguf(path), "file"
    from breakeven.origin.config_file import load_config

    return load_config(path), "file"


def load_told(name: str, catalog_dirs: tuple[Path, ...] = ()) -> Model:
    """The model by what an engine calls it: an id, a path that is here too, or a folder whose last two names are an id.

    Nothing is fetched for it, and an alias that the engine was given tells nothing.
    """
    for each in dict.fromkeys((name, "/".join(name.rstrip("/").split("/")[-2:]))):
        try:
            return load_model(each, catalog_dirs, fetch=False)[0]
        except InputError:
            continue
    if (kept := _kept(name)) is not None:
        return kept
    raise InputError("evidence_model", name=shown(name))


def _kept(name: str) -> Model | None:
    """The model of an id that an engine on this machine has fetched before: from the hub's cache."""
    from breakeven.origin.hub import is_id, load_kept

    return load_kept(name) if is_id(name) and not Path(name).exists() else None


def _local(name: str, beside: Path | None) -> Path | None:
    """The path a name means, if it means one: spelled as a path, a ``.json`` or ``.gguf`` name, or a folder with a configuration."""
    spelled = name.startswith(("./", "../", "/", "~", ".\\")) or name in (".", "..") or name.lower().endswith((".json", ".gguf"))
    candidates = [Path(name).expanduser()]
    if beside is not None and not candidates[0].is_absolute():
        candidates.insert(0, beside / name)
    try:
        existing = next((path for path in candidates if path.exists() and (spelled or _has_config(path))), None)
    except (OSError, ValueError, RuntimeError):
        # A symlink loop or a name no file can have: the reader of configurations says which.
        existing = None
    return existing or (candidates[0] if spelled else None)


def _has_config(path: Path) -> bool:
    return any((path / config).exists() for config in CONFIGS)


def _catalogued(name: str, catalog_dirs: tuple[Path, ...]) -> Model:
    try:
        return catalog.load("models", name, catalog_dirs)
    except UnknownNameError as unknown:
        near = str(unknown.message.values.get("near", ""))
        if name.count("/") != 1:
            raise
        raise InputError("unknown_model_id_near" if near else "unknown_model_id", name=shown(name), near=near) from None
