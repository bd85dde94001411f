"""What the catalogue knows, as documents: devices, models, engines and levers, each with where its figures come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from msgspec import structs

from breakeven import catalog, support
from breakeven.advice import AXES
from breakeven.catalog_document import CatalogDocument, CatalogEntry, Kind
from breakeven.catalog_files import USERS, users_file
from breakeven.compose import Language, plain
from breakeven.efficiencies import table
from breakeven.entry_check import check_entries, template
from breakeven.entry_comparison import compare_devices, compare_models
from breakeven.errors import InputError
from breakeven.kernels import kv_kernel, kv_names, weight_kernel, weight_names
from breakeven.lever import Lever
from breakeven.matrix import support_rows
from breakeven.messages import say, text
from breakeven.spec.hardware import QUANTITIES, Device

KINDS: tuple[Kind, ...] = get_args(Kind)
THEORY = "docs/theory/levers.md"
WORDS: tuple[Kind, ...] = ("axes", "objectives", "weight_formats", "kv_formats")
"""Kinds whose names have a meaning and no figures of their own."""
DEVICE_UNITS = {
    "memory_bytes": "B",
    "bandwidth_bytes_per_s": "B/s",
    "matmul_flops": "FLOP/s",
    "link_bytes_per_s": "B/s",
    "tdp_watts": "W",
    "price_per_hour_low": "USD/h",
    "price_per_hour_high": "USD/h",
}
OTHER_WORDS: Mapping[str, Kind] = {"device": "hardware", "devices": "hardware", "axis": "axes"}


def kind_named(word: str) -> str:
    """The kind a word stands for, in the singular too; a word that names none stays as it is."""
    plural = OTHER_WORDS.get(word, f"{word}s")
    return plural if plural in KINDS and word not in KINDS else word


def names_of(kind: Kind, levers: Mapping[str, Lever], objectives: Mapping[str, str], dirs: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """All names of a kind, those of the user's folders too."""
    ours: dict[Kind, Iterable[str]] = {
        "levers": levers,
        "axes": AXES,
        "objectives": objectives,
        "weight_formats": weight_names(),
        "kv_formats": kv_names(),
        "support": support.engines(),
    }
    if kind in ("hardware", "models", "engines"):
        return catalog.names(kind, dirs)
    return tuple(ours[kind])


def compose_catalog(
    kinds: Mapping[Kind, Iterable[str]],
    levers: Mapping[str, Lever],
    language: Language = "en",
    dirs: tuple[Path, ...] = (),
    *,
    word: str | None = None,
) -> CatalogDocument:
    """The document of the entries named, by kind; of those that a word is in, where one is given."""
    faults = catalog.faults(dirs)
    broken = {Path(str(fault.values["path"])).stem for fault in faults}
    asked = [(kind, name) for kind, names in kinds.items() for name in names]
    # A broken file of the user's is named and passed over in a list; asked for by name, it says itself what is wrong with it.
    named = [(kind, name) for kind, name in asked if len(asked) == 1 or name not in broken or kind not in USERS]
    entries = [entry for entry in (_entry(kind, name, levers, language, dirs) for kind, name in named) if _has(entry, word)]
    return CatalogDocument(language=language, entries=entries, warnings=[text(fault, language) for fault in faults])


def _has(entry: CatalogEntry, word: str | None) -> bool:
    """Whether a word stands in an entry's name, title, or any word of its values."""
    told = [entry.name, entry.title, *(str(value) for value in entry.values.values() if isinstance(value, (str, list, tuple)))]
    return word is None or any(catalog.normalised(word) in catalog.normalised(part) for part in told)


def compose_comparison(kind: Kind, names: tuple[str, str], language: Language = "en", dirs: tuple[Path, ...] = ()) -> CatalogDocument:
    """Two devices or two models side by side."""
    if kind == "hardware":
        devices = [catalog.load("hardware", name, dirs) for name in names]
        compared = compare_devices(devices[0], devices[1], language)
    elif kind == "models":
        models = [catalog.load("models", name, dirs) for name in names]
        compared = compare_models(models[0], models[1], language)
    else:
        raise InputError("not_compared", kind=kind)
    return CatalogDocument(language=language, entries=[], comparison=compared)


def compose_check(path: Path, language: Language = "en") -> CatalogDocument:
    """The entries of a file or a folder, checked."""
    return CatalogDocument(language=language, entries=[], checked=check_entries(path, language))


def template_of(word: str) -> str:
    """The template of an entry of a kind that a user may have."""
    kind = kind_named(word)
    if kind not in USERS:
        raise InputError("not_one_of", path="--template", value=word, names=", ".join(USERS))
    return template(kind)


def _entry(kind: Kind, name: str, levers: Mapping[str, Lever], language: Language, dirs: tuple[Path, ...]) -> CatalogEntry:
    if kind in USERS:
        path = users_file(kind, catalog.normalised(name), dirs)
        found = _device(catalog.load("hardware", name, dirs), language) if kind == "hardware" else _model(name, language, dirs)
        return structs.replace(found, origin=None if path is None else str(path))
    if kind == "engines":
        return _engine(name, language)
    if kind == "support":
        return _support(name, language)
    return _lever(levers[name], language) if kind == "levers" else _word(kind, name, language)


def _word(kind: Kind, name: str, language: Language) -> CatalogEntry:
    """A name that has a meaning and no figures of its own: an axis, an objective, a format."""
    if kind == "axes":
        title, means, source = say(f"report.axis_{name}", language), say(f"report.means_{name}", language), THEORY
    elif kind == "objectives":
        title, means, source = name, say(f"metric.goal_{name}", language), THEORY
    else:
        kernel = weight_kernel(name) if kind == "weight_formats" else kv_kernel(name)
        title, means, source = text(kernel.title, language), say("report.format_bytes", language, bytes=kernel.bytes), kernel.source
    return CatalogEntry(kind=kind, name=name, title=title, summary={"means": means}, values={"means": means}, sources={"means": source})


def _device(device: Device, language: Language) -> CatalogEntry:
    values = plain(device, language)
    sources = values.pop("sources")
    rates = {"memory_bytes": device.memory_bytes, "bandwidth_bytes_per_s": device.bandwidth_bytes_per_s, **device.matmul_flops}
    confidence = {"overall": device.confidence} | {quantity: device.confidence_of(quantity) for quantity in QUANTITIES}
    return CatalogEntry(
        kind="hardware",
        name=device.name,
        title=device.title,
        summary=rates,
        values=values,
        sources=sources,
        units=DEVICE_UNITS,
        confidence=confidence,
    )


def _model(name: str, language: Language, dirs: tuple[Path, ...]) -> CatalogEntry:
    model = catalog.load("models", name, dirs)
    values = plain(model, language)
    sources = values.pop("sources")
    summary = {"parameters": model.parameters.total, "layers": model.layers, "max_context": model.max_context}
    return CatalogEntry(
        kind="models",
        name=model.name,
        title=model.family,
        summary=summary,
        values=values,
        sources=sources,
        confidence={"overall": model.confidence},
    )


def _engine(name: str, language: Language) -> CatalogEntry:
    found = catalog.engine_defaults(name)
    values = plain(found, language)
    sources = values.pop("sources")
    values["commands"] = {key: _typed(template) for key, template in catalog.commands(name).items()}
    summary = {"version": found.version, "max_num_seqs": found.settings["max_num_seqs"], "block_size": found.settings["block_size"]}
    return CatalogEntry(kind="engines", name=found.name, title=found.title, summary=summary, values=values, sources=sources)


def _support(engine: str, language: Language) -> CatalogEntry:
    """What an engine supports: the rows of its sheet, by lever and setting."""
    rows, found = support_rows(engine, language), support.sheet(engine)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for row in rows:
        values.setdefault(row.key, []).append(row.values)
        sources[row.key] = f"{sources[row.key]} | {row.source}" if row.key in sources else row.source
    summary = {"version": found.version, "rows": len(rows)}
    return CatalogEntry(kind="support", name=engine, title=found.title, summary=summary, values=values, sources=sources)


def _lever(lever: Lever, language: Language) -> CatalogEntry:
    settings = support.flag_table(lever.name)
    values: dict[str, Any] = {"ledger": lever.ledger, "accuracy": text(lever.accuracy, language)}
    values |= {engine: {setting: _typed(flag) for setting, flag in flags.items()} for engine, flags in settings.items()}
    summary = {"ledger": lever.ledger, "engines": list(settings)}
    title = say(f"report.name_{lever.name}", language)
    return CatalogEntry(kind="levers", name=lever.name, title=title, summary=summary, values=values, sources=_sources(lever.name))


def _typed(template: str) -> str:
    """A template with its holes left open, its braces as they are typed."""
    return template.replace("{{", "{").replace("}}", "}")


def _sources(lever: str) -> dict[str, str]:
    """Where what is known of a lever's settings comes from."""
    known = {
        "weight_quant": {name: weight_kernel(name).source for name in weight_names()},
        "kv_quant": {name: kv_kernel(name).source for name in kv_names()},
        "speculation": {name: entry["source"] for name, entry in table("acceptance").items() if isinstance(entry, dict)},
        "prefix_cache": {name: entry["source"] for name, entry in table("prior")["prefix"].items()},
    }
    return {**known.get(lever, {}), "formula": THEORY}
