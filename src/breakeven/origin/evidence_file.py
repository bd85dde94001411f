"""The file of an observation read: its schema first, every key known, every number possible; one line for what cannot be used."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path

import msgspec

from breakeven.errors import InputError
from breakeven.origin.evidence_check import check_said
from breakeven.origin.values import refuse_unknown, shown
from breakeven.spec.evidence import EVIDENCE_SCHEMA, Evidence

LARGEST_BYTES = 16 * 2**20
SHARES = ("prefix_hit_rate", "acceptance_rate", "kv_usage", "kv_share", "prompt_share")
"""Figures that are shares from 0 to 1."""


def read_evidence(path: Path) -> Evidence:
    """The observation in a file."""
    where = shown(str(path), 300)
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise InputError("file_is_a_folder" if path.is_dir() else "file_not_regular", path=where)
        if state.st_size > LARGEST_BYTES:
            raise InputError("file_too_large", path=where, size=float(state.st_size), limit=float(LARGEST_BYTES))
        body = path.read_bytes()
    except FileNotFoundError:
        raise InputError("file_missing", path=where) from None
    except (OSError, ValueError) as error:
        raise InputError("file_unreadable", path=where, reason=shown(getattr(error, "strerror", None) or str(error))) from None
    return parse_evidence(body, path.name)


def parse_evidence(body: bytes, name: str) -> Evidence:
    """The observation in the bytes of a file or an answer, which ``name`` names."""
    name = shown(name, 120)
    return checked(_object(body, name), name)


def checked(raw: Mapping[str, object], name: str) -> Evidence:
    """The observation in an object of JSON, every key of it known and every number possible."""
    _check_schema(raw.get("schema"), name)
    try:
        found = msgspec.convert(raw, Evidence, strict=True)
    except msgspec.ValidationError as error:
        raise InputError("evidence_damaged", path=name, reason=shown(str(error), 200)) from None
    _refuse_unknown(raw, msgspec.to_builtins(found), f"{name}: ")
    for path, value, high in _numbers(found):
        if not isfinite(value) or not 0.0 <= value <= high:
            raise InputError("evidence_number", path=f"{name}: {path}", value=value)
    check_said(found, name)
    return found


def _object(body: bytes, name: str) -> Mapping[str, object]:
    try:
        raw = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("evidence_not_json", path=name, reason=shown(str(error), 120)) from None
    if not isinstance(raw, dict):
        raise InputError("evidence_not", path=name, schema=EVIDENCE_SCHEMA)
    return raw


def _check_schema(given: object, name: str) -> None:
    if given == EVIDENCE_SCHEMA:
        return
    kind, _, version = str(given or "").rpartition("/")
    if kind == EVIDENCE_SCHEMA.rpartition("/")[0] and version.isdecimal():
        raise InputError("evidence_newer", path=name, given=shown(str(given)), schema=EVIDENCE_SCHEMA)
    if given:
        raise InputError("evidence_other", path=name, given=shown(str(given)), schema=EVIDENCE_SCHEMA)
    raise InputError("evidence_not", path=name, schema=EVIDENCE_SCHEMA)


def _refuse_unknown(raw: object, known: object, where: str) -> None:
    """A key that reading dropped is one that this version does not know."""
    if isinstance(raw, Mapping) and isinstance(known, Mapping):
        refuse_unknown(raw, tuple(known), where)
        for key in raw:
            _refuse_unknown(raw[key], known[key], f"{where}{shown(str(key))}.")
    elif isinstance(raw, (list, tuple)) and isinstance(known, (list, tuple)):
        for place, (one, other) in enumerate(zip(raw, known, strict=True)):
            _refuse_unknown(one, other, f"{where}[{place}].")


def _counted(value: float) -> float:
    """A number; infinite where it is a whole one beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _numbers(e: Evidence) -> Iterator[tuple[str, float, float]]:
    """Every number with the most that it may be."""
    most, part = float("inf"), 1.0 + 1e-9
    yield from ((name, _counted(getattr(e, name)), most) for name in ("seconds", "readings", "missed", "every_s", "replicas", "ranks"))
    told = {"kv_tokens": e.told.kv_tokens, "devices": e.told.devices, "devices_seen": e.told.devices_seen}
    whole = {**told, **e.told.settings, **e.told.speculative}
    yield from ((f"told.{shown(name)}", _counted(value), most) for name, value in whole.items() if isinstance(value, int))
    for name, figure in e.figures.items():
        yield f"figures.{shown(name)}", figure.value, part if name in SHARES else most
        yield from ((f"figures.{shown(name)}", end, most) for end in (figure.low, figure.high) if end is not None)
    yield from ((f"acceptance_cumulative[{place}]", value, part) for place, value in enumerate(e.acceptance_cumulative))
    yield from ((f"counts.{shown(name)}", value, most) for name, value in e.counts.items())
    for name, level in e.levels.items():
        yield from ((f"levels.{shown(name)}.values", value, most) for value in level.values)
        yield from ((f"levels.{shown(name)}.shares", value, part) for value in level.shares)
    for name, latency in e.latencies.items():
        ends: tuple[float | None, ...] = (latency.mean, latency.count, latency.p50, latency.p90, latency.p95, latency.p99)
        yield from ((f"latencies.{shown(name)}", value, most) for value in ends if value is not None)
    if e.windows is not None:
        yield "windows.window_s", e.windows.window_s, most
        rows = (*e.windows.requests, *e.windows.output_tokens, *e.windows.running)
        yield from (("windows", value, most) for value in rows)
