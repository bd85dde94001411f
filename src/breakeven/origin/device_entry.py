"""A device from its entry in the catalogue: every key known, every value checked and sourced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.errors import InputError
from breakeven.origin.values import count, number, positive, refuse_unknown, word
from breakeven.spec.hardware import Device

FORMATS = ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4")
RATES = ("bf16", "fp16", "fp8", "int8", "fp4")
FAMILIES = ("ampere", "ada", "hopper", "blackwell", "cdna", "apple", "cpu", "other")
TEXTS = ("title", "vendor", "architecture", "compute_capability", "family", "link_type")
POSITIVE = ("memory_bytes", "bandwidth_bytes_per_s", "link_bytes_per_s")
FORMAT_LISTS = ("native_formats", "weight_only_formats", "unsupported_formats")
OPTIONAL_COUNTS = ("link_domain",)
OPTIONAL = ("tdp_watts", "price_per_hour_low", "price_per_hour_high")
KEYS = (*TEXTS, *POSITIVE, *FORMAT_LISTS, *OPTIONAL, *OPTIONAL_COUNTS, "aliases", "matmul_flops", "confidence", "notes", "sources")
SPARSE_FACTOR = 2.1
"""An fp8 rate above this many bf16 rates is likely the sparse figure, and needs a note."""


def parse_device(table: Mapping[str, object], name: str) -> Device:
    """A device from the table of its file."""
    where = f"{name}."
    refuse_unknown(table, KEYS, where)
    missing = [key for key in (*TEXTS, *POSITIVE, *FORMAT_LISTS, "matmul_flops", "sources") if key not in table]
    if missing:
        raise InputError("missing_key", path=f"{where}{missing[0]}")
    rates = _rates(table["matmul_flops"], f"{where}matmul_flops")
    notes = str(table.get("notes", ""))
    if not notes and rates.get("fp8", 0.0) > SPARSE_FACTOR * rates.get("bf16", float("inf")):
        raise InputError("sparse_rate", path=f"{where}matmul_flops.fp8")
    fields: dict[str, Any] = {key: word(table[key], where + key) for key in TEXTS}
    fields |= {key: positive(table[key], where + key) for key in POSITIVE}
    fields |= {key: _formats(table[key], where + key) for key in FORMAT_LISTS}
    fields |= {key: number(table[key], where + key) for key in OPTIONAL if key in table}
    fields |= {key: count(table[key], where + key) for key in OPTIONAL_COUNTS if key in table}
    _check_family(fields["family"], f"{where}family")
    confidence, sources = str(table.get("confidence", "1 source")), _texts(table["sources"], f"{where}sources")
    return Device(name=name, matmul_flops=rates, confidence=confidence, notes=notes, sources=sources, **fields)


def _check_family(family: str, path: str) -> None:
    if family.removesuffix("-ws") not in FAMILIES:
        raise InputError("not_one_of", path=path, value=family, names=", ".join(FAMILIES))


def _rates(raw: object, path: str) -> Mapping[str, float]:
    if not isinstance(raw, Mapping) or not raw:
        raise InputError("not_a_table", path=path)
    refuse_unknown(raw, RATES, f"{path}.")
    return {str(name): positive(value, f"{path}.{name}") for name, value in raw.items()}


def _formats(raw: object, path: str) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise InputError("not_a_list", path=path)
    refuse_unknown(raw, FORMATS, f"{path}: ")
    return tuple(raw)


def _texts(raw: object, path: str) -> Mapping[str, str]:
    if not isinstance(raw, Mapping) or not raw:
        raise InputError("not_a_table", path=path)
    return {str(name): word(value, f"{path}.{name}") for name, value in raw.items()}
