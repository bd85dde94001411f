"""The metadata of a GGUF file: keys of the architecture, as one number or one a layer, checked before they are used."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from breakeven.errors import InputError, NotModelledError
from breakeven.origin.gguf_head import Listed
from breakeven.origin.values import shown

LARGEST = 2_000_000_000
MOST_LAYERS = 2_000


@dataclass(frozen=True, kw_only=True)
class Windows:
    """How llama.cpp lets an architecture slide where the file does not say it."""

    period: int = 0
    """Every n-th layer is full; 0 where only a pattern in the file can say."""
    dense_first: bool = False
    window: int | None = None
    only_layers: int | None = None
    chunked: bool = False
    needs_key: bool = False
    """Slides only where the file writes a window."""
    shared_from: int | None = None


@dataclass(frozen=True, kw_only=True)
class Known:
    """An architecture that is read."""

    windows: Windows | None = None
    mixer: str | None = None
    plain: bool = False
    """Nothing slides, whatever the file writes."""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The metadata of one model."""

    where: str
    arch: str
    values: Mapping[str, object]

    def raw(self, key: str) -> object:
        """What is written under a key of the architecture."""
        return self.values.get(f"{self.arch}.{key}")

    def optional(self, key: str, low: int = 0) -> int | None:
        """A whole number, or None where it is not written."""
        value = self.raw(key)
        return None if value is None else self._whole(value, key, low)

    def count(self, key: str, low: int = 1) -> int:
        """A whole number that has to be written."""
        found = self.optional(key, low)
        if found is None:
            raise InputError("gguf_no_key", where=self.where, field=f"{self.arch}.{key}")
        return found

    def per_layer(self, key: str, layers: int, default: int | None = None) -> list[int]:
        """One number a layer, however it is written; arrays may go on with the MTP layers."""
        value = self.raw(key)
        if value is None:
            if default is None:
                raise InputError("gguf_no_key", where=self.where, field=f"{self.arch}.{key}")
            return [default] * layers
        if not isinstance(value, list):
            return [self._whole(value, key, 0)] * layers
        if len(value) < layers:
            raise InputError("gguf_layer_list", where=self.where, field=f"{self.arch}.{key}", entries=len(value), layers=layers)
        return [self._whole(item, key, 0) for item in value[:layers]]

    def _whole(self, value: object, key: str, low: int) -> int:
        if not isinstance(value, int) or not low <= value <= LARGEST:
            entries = f"[{value.entries}]" if isinstance(value, Listed) else value
            raise InputError("gguf_bad_key", where=self.where, field=f"{self.arch}.{key}", value=shown(entries))
        return int(value)

    @property
    def layers(self) -> int:
        """Layers of the model, its MTP layers not counted (they are within ``block_count``)."""
        found = self.count("block_count") - self.mtp_layers
        if not 0 < found <= MOST_LAYERS:
            raise InputError("gguf_bad_key", where=self.where, field=f"{self.arch}.block_count", value=shown(self.raw("block_count")))
        return found

    @property
    def mtp_layers(self) -> int:
        """MTP layers kept in the file."""
        return self.optional("nextn_predict_layers") or 0


def keys_of(values: Mapping[str, object], where: str) -> Keys:
    """The keys of a model; files of another kind are refused by name."""
    arch, kind = values.get("general.architecture"), values.get("general.type", "model")
    if arch == "clip" or kind == "mmproj":
        raise InputError("gguf_projector", where=where)
    if kind != "model":
        raise InputError("gguf_not_a_model", where=where, kind=shown(kind))
    if not isinstance(arch, str) or not arch:
        raise InputError("gguf_no_key", where=where, field="general.architecture")
    if arch not in _sheet():
        raise NotModelledError("gguf_architecture_unknown", where=where, architecture=shown(arch), known=", ".join(sorted(_sheet())))
    return Keys(where=where, arch=arch, values=values)


def known(arch: str) -> Known:
    """What llama.cpp takes for granted of an architecture."""
    return _sheet()[arch]


@cache
def _sheet() -> Mapping[str, Known]:
    text = resources.files("breakeven").joinpath("catalog", "gguf.toml").read_text(encoding="utf-8")
    sheet = tomllib.loads(text)
    plain = dict.fromkeys(sheet.pop("plain")["names"], Known(plain=True))
    return {**plain, **{name: _known(entry) for name, entry in sheet.items()}}


def _known(entry: Mapping[str, object]) -> Known:
    facts = {name: value for name, value in entry.items() if name not in ("source", "mixer")}
    mixer = entry.get("mixer")
    return Known(windows=Windows(**facts) if facts else None, mixer=str(mixer) if mixer else None)  # type: ignore[arg-type]
