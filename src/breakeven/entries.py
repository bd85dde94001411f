"""What the catalogue knows, as documents: devices, models, engines and levers, each with where its figures come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from breakeven import catalog, support
from breakeven.advice import AXES
from breakeven.compose import Language, plain
from breakeven.document import CatalogDocument, CatalogEntry, Kind
from breakeven.efficiencies import table
from breakeven.kernels import kv_kernel, kv_names, weight_kernel, weight_names
from breakeven.lever import Lever
from breakeven.matrix import support_rows
from breakeven.messages import say, text
from breakeven.spec.hardware import Device
from breakeven.spec.model import Model

KINDS: tuple[Kind, ...] = get_args(Kind)
THEORY = "docs/theory/levers.md"
WORDS: tuple[Kind, ...] = ("axes", "objectives", "weight_formats", "kv_formats")
"""Kinds whose names have a meaning and no figures of their own."""
OTHER_WORDS: Mapping[str, Kind] = {"device": "hardware", "devices": "hardware", "axis": "axes"}


def kind_named(word: str) -> str:
    """The kind a word stands for, in the singular too; a word that names none stays as it is."""
    plural = OTHER_WORDS.get(word, f"{word}s")
    return plural if plural in KINDS and word not in KINDS else word


def names_of(kind: Kind, levers: Mapping[str, Lever], objectives: Mapping[str, str]) -> tuple[str, ...]:
    """All names of a kind."""
    ours: dict[Kind, Iterable[str]] = {
        "levers": levers,
        "axes": AXES,
        "objectives": objectives,
        "weight_formats": weight_names(),
        "kv_formats": kv_names(),
        "support": support.engines(),
    }
    return tuple(ours[kind] if kind in ours else catalog.names(kind))


def compose_catalog(kinds: Mapping[Kind, Iterable[str]], levers: Mapping[str, Lever], language: Language = "en") -> CatalogDocument:
    """The document of the entries named, by kind."""
    entries = [entry for kind, names in kinds.items() for entry in (_entry(kind, name, levers, language) for name in names)]
    return CatalogDocument(language=language, entries=entries)


def _entry(kind: Kind, name: str, levers: Mapping[str, Lever], language: Language) -> CatalogEntry:
    if kind == "hardware":
        return _device(catalog.load("hardware", name), language)
    if kind == "models":
        return _model(catalog.load("models", name), language)
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
    return CatalogEntry(kind="hardware", name=device.name, title=device.title, summary=rates, values=values, sources=sources)


def _model(model: Model, language: Language) -> CatalogEntry:
    values = plain(model, language)
    sources = values.pop("sources")
    summary = {"parameters": model.parameters.total, "layers": model.layers, "max_context": model.max_context}
    return CatalogEntry(kind="models", name=model.name, title=model.family, summary=summary, values=values, sources=sources)


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
