"""What was understood of a field, said back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from breakeven.measured.words._spelling import LONGEST
from breakeven.measured.words.quantities import dataset
from breakeven.messages import Message, printable
from breakeven.stats import Range

FIELDS = (
    "device", "model", "engine", "weight_format", "kv_format", "setting", "parallelism", "number", "tokens", "load", "metric", "acceptance",
    "speculative", "hit_rate", "lever",
)  # fmt: skip
"""Fields that are read here; each has its word in the catalogue of messages."""


def said(field: str, text: str, meaning: object) -> tuple[str, Message]:
    """The field and the sentence: what was written and what was understood, with what was assumed of a named set of prompts."""
    key = "understood_empty" if not text.strip() else "understood"
    if field == "tokens" and dataset(text[:LONGEST]) is not None:
        key = "understood_dataset"
    values = {"field": Message(f"words.field_{field}"), "text": printable(text[:LONGEST]), "meaning": shown(meaning)}
    return field, Message(f"words.{key}", values)


def shown(meaning: object) -> str:
    """A value in the notation of deployments: the entry's name, ``tp=4, devices=4``, ``100–300``."""
    if isinstance(meaning, Range):
        return f"{meaning.low:,.6g}–{meaning.high:,.6g}"
    if isinstance(meaning, float):
        return f"{meaning:,.6g}"
    if isinstance(meaning, tuple):
        return " ".join(shown(each) for each in meaning if each != "")
    named = getattr(meaning, "name", None)
    if isinstance(named, str):
        return named
    if is_dataclass(meaning) and not isinstance(meaning, type):
        told = {each.name: getattr(meaning, each.name) for each in fields(meaning) if getattr(meaning, each.name) != each.default}
        return _pairs({name: value for name, value in told.items() if value is not None})
    return str(meaning)


def _pairs(told: Mapping[str, object]) -> str:
    """Fields as ``name=value``; a kind stands for itself, and what is true is only named."""
    return ", ".join(
        shown(value) if name == "kind" else name if value is True else f"{name}={shown(value)}" for name, value in told.items()
    )
