"""A device from its entry in the catalogue: every key known, every value checked and sourced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakeven.errors import InputError
from breakeven.origin.values import count, number, positive, refuse_unknown, size, word
from breakeven.spec.hardware import CONFIDENCES, QUANTITIES, Device

FORMATS = ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4")
RATES = ("bf16", "fp16", "fp8", "int8", "fp4")
FAMILIES = ("ampere", "ada", "hopper", "blackwell", "cdna", "apple", "cpu", "other")
TEXTS = ("title", "vendor", "architecture", "compute_capability", "family", "link_type")
FORMAT_LISTS = ("native_formats", "weight_only_formats", "unsupported_formats")
OPTIONAL_COUNTS = ("link_domain",)
OPTIONAL = ("tdp_watts", "price_per_hour_low", "price_per_hour_high")
CONFIDENCE_KEYS = ("confidence", *(f"confidence_{quantity}" for quantity in QUANTITIES))
PLAIN_CONFIDENCE: Mapping[str, str] = {"high": "2 sources", "medium": "1 source", "low": "recalled"}
"""A user's plain words for how sure they are."""
FIGURES = ("memory_bytes", "bandwidth_bytes_per_s", "link_bytes_per_s", "matmul_flops", "software_devices")
KEYS = (*TEXTS, *FIGURES, *FORMAT_LISTS, *OPTIONAL, *OPTIONAL_COUNTS, *CONFIDENCE_KEYS, "aliases", "notes", "sources")
SPARSE_FACTOR = 2.1
"""An fp8 rate above this many bf16 rates is likely the sparse figure, and needs a note."""


def parse_device(table: Mapping[str, object], name: str) -> Device:
    """A device from the table of its file. Only the bandwidth is needed; what else is left out is not known, or the plainest guess."""
    where = f"{name}."
    refuse_unknown(table, KEYS, where)
    if "bandwidth_bytes_per_s" not in table:
        raise InputError("missing_key", path=f"{where}bandwidth_bytes_per_s")
    rates = _rates(table["matmul_flops"], f"{where}matmul_flops") if "matmul_flops" in table else {}
    notes = str(table.get("notes", ""))
    if not notes and rates.get("fp8", 0.0) > SPARSE_FACTOR * rates.get("bf16", float("inf")):
        raise InputError("sparse_rate", path=f"{where}matmul_flops.fp8")
    fields: dict[str, Any] = {"title": name, "vendor": "other", "architecture": "", "compute_capability": "", "family": "other"}
    fields |= {"link_type": "none", **{key: word(table[key], where + key) for key in TEXTS if key in table}}
    _check_family(fields["family"], f"{where}family")
    fields |= {key: number(table[key], where + key) for key in OPTIONAL if key in table}
    fields |= {key: count(table[key], where + key) for key in OPTIONAL_COUNTS if key in table}
    sources = _texts(table["sources"], f"{where}sources") if "sources" in table else {}
    fields |= _format_lists(table, rates, where) | _confidences(table, bool(sources), where)
    return Device(
        name=name,
        memory_bytes=size(table["memory_bytes"], f"{where}memory_bytes") if "memory_bytes" in table else None,
        bandwidth_bytes_per_s=positive(table["bandwidth_bytes_per_s"], f"{where}bandwidth_bytes_per_s"),
        link_bytes_per_s=positive(table["link_bytes_per_s"], f"{where}link_bytes_per_s") if "link_bytes_per_s" in table else None,
        software_devices=count(table.get("software_devices", 1), f"{where}software_devices"),
        matmul_flops=rates,
        notes=notes,
        sources=sources,
        **fields,
    )


def _check_family(family: str, path: str) -> None:
    if family.removesuffix("-ws") not in FAMILIES:
        raise InputError("not_one_of", path=path, value=family, names=", ".join(FAMILIES))


def _confidences(table: Mapping[str, object], sourced: bool, where: str) -> dict[str, Any]:
    """How sure each quantity is: as said, else as the whole entry, which without a source is recalled."""
    whole = _confidence(table.get("confidence", "1 source" if sourced else "recalled"), f"{where}confidence")
    return {key: _confidence(table.get(key, whole), where + key) for key in CONFIDENCE_KEYS}


def _confidence(raw: object, path: str) -> str:
    given = word(raw, path)
    found = PLAIN_CONFIDENCE.get(given, given)
    if found not in CONFIDENCES:
        raise InputError("not_one_of", path=path, value=given, names=", ".join((*CONFIDENCES, *PLAIN_CONFIDENCE)))
    return found


def _format_lists(table: Mapping[str, object], rates: Mapping[str, float], where: str) -> dict[str, Any]:
    """The formats as listed; unlisted, those with a rate are computed in, the other common ones only stored, the rest neither."""
    listed = {key: _formats(table[key], where + key) for key in FORMAT_LISTS if key in table}
    taken = {name for names in listed.values() for name in names}
    plain = {
        "native_formats": tuple(name for name in FORMATS if name in rates),
        "weight_only_formats": ("bf16", "fp16", "int8", "int4"),
        "unsupported_formats": FORMATS,
    }
    for key in FORMAT_LISTS:
        if key not in listed:
            listed[key] = tuple(name for name in plain[key] if name not in taken)
            taken |= set(listed[key])
    return listed


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
