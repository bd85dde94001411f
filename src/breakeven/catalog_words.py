"""How entries of the catalogue are told: a line for a list, a figure with its unit, a comparison, a check."""

from __future__ import annotations

from breakeven import catalog
from breakeven.catalog_document import CatalogEntry, ComparedValue
from breakeven.messages import say
from breakeven.units import GIB, bytes_text, flop_text, significant
from breakeven.words import joined, value_words

WORDS_ONLY = ("axes", "objectives", "weight_formats", "kv_formats")
BEST = ("2 sources", "high")
WIDE = 6
"""Digits from which a count is written with commas."""


def summary_words(entry: CatalogEntry, language: str) -> str:
    """An entry's main figures in a line, and how sure they are where that is less than they could be."""
    figures = entry.summary
    if entry.kind in WORDS_ONLY:
        return " · ".join(str(value) for value in figures.values())
    if entry.kind == "engines":
        return say("report.catalog_engine", language, version=figures["version"], seqs=figures["max_num_seqs"], block=figures["block_size"])
    if entry.kind == "support":
        return say("report.catalog_support_rows", language, version=figures["version"], rows=figures["rows"])
    if entry.kind == "levers":
        titles = say("report.list_join", language).join(catalog.engine_title(name) for name in figures["engines"])
        return say("report.catalog_lever", language, ledger=say(f"report.{figures['ledger']}", language), engines=titles)
    told = _model_words(entry, language) if entry.kind == "models" else _device_words(entry, language)
    return joined([*told, sure_words(entry, language), "" if entry.origin is None else say("report.catalog_yours", language)])


def _model_words(entry: CatalogEntry, language: str) -> list[str]:
    figures, context = entry.summary, entry.summary["max_context"]
    words = say("report.catalog_model", language, parameters=figures["parameters"] / 1e9, layers=figures["layers"])
    return [words, say("report.asked_context", language, context=significant(context, 7)) if context else ""]


def _device_words(entry: CatalogEntry, language: str) -> list[str]:
    figures = entry.summary
    rate = figures.get("bf16") or figures.get("fp16")
    memory = figures["memory_bytes"]
    told = [
        say("report.catalog_memory_open", language, bandwidth=figures["bandwidth_bytes_per_s"])
        if memory is None
        else say("report.catalog_device", language, memory=memory, bandwidth=figures["bandwidth_bytes_per_s"])
    ]
    return [*told, say("report.catalog_rate", language, tflops=rate / 1e12) if rate else say("report.catalog_no_rate", language)]


def sure_words(entry: CatalogEntry, language: str) -> str:
    """How well founded an entry is, where it is not as well as entries are."""
    whole = entry.confidence.get("overall", BEST[0])
    return "" if whole in BEST else say(f"report.sure_{whole.replace(' ', '_')}", language)


def figure_words(value: object, unit: str, language: str) -> str:
    """A value of an entry with its unit."""
    if isinstance(value, dict) and unit:
        return ", ".join(f"{key} {figure_words(item, unit, language)}" for key, item in value.items())
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if unit == "B":
            return f"{bytes_text(value)} ({significant(value / GIB, 4)} GiB)" if value >= GIB else bytes_text(value)
        if unit in ("B/s", "FLOP/s"):
            return f"{(bytes_text if unit == 'B/s' else flop_text)(value)}/s"
        if unit:
            return f"{significant(value, 4)} {unit}"
        return f"{value:,.0f}" if float(value).is_integer() and value >= 10**WIDE else value_words(value, language)
    return value_words(value, language)


def compared_words(row: ComparedValue, language: str) -> tuple[str, str, str, str]:
    """A line of a comparison: what, of the first, of the second, and the second over the first."""
    first, second = ("–" if value is None else figure_words(value, row.unit, language) for value in row.values)
    return row.title, first, second, f"×{significant(row.ratio, 3)}" if row.ratio is not None else ""
