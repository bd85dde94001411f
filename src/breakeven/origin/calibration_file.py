"""The file of a calibration read: every key known, every number checked, every parameter one that the ledgers have."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from breakeven.errors import InputError
from breakeven.origin.deployment_file import read_deployment
from breakeven.origin.parameter_names import is_parameter
from breakeven.origin.values import count, number, positive, refuse_unknown, shown, switch, word
from breakeven.spec.calibration_file import (
    CALIBRATION_SCHEMAS,
    DEVIATIONS,
    LEVELS,
    CalibrationFile,
    Curve,
    FileRead,
    Made,
    MeasuredDeployment,
    OwnRow,
    Parameter,
    Sent,
)

KEYS = ("schema", "made", "files", "parameters", "residual", "deployments", "curves", "own", "correction", "sigma", "sent")
LARGEST_DEVIATION = 10.0
"""Of a logarithm: a factor of 22,000, which nobody measured."""


def read_calibration(path: Path) -> CalibrationFile:
    """A calibration from its file."""
    return parse_calibration(read_deployment(path), path.name)


def parse_calibration(table: Mapping[str, Any], name: str) -> CalibrationFile:
    """A calibration from its table."""
    where = f"{name}: "
    if table.get("schema") not in CALIBRATION_SCHEMAS:
        given = shown(str(table.get("schema", "")))
        raise InputError("calibration_schema", path=name, schema=", ".join(CALIBRATION_SCHEMAS), given=given)
    refuse_unknown(table, KEYS, where)
    return CalibrationFile(
        made=_made(_table(table, "made", where), f"{where}made."),
        files=tuple(_file(entry, place) for entry, place in _entries(table, "files", where)),
        parameters=_parameters(_table(table, "parameters", where), f"{where}parameters."),
        residual=_residual(_table(table, "residual", where), f"{where}residual."),
        deployments=tuple(_measured(entry, place) for entry, place in _entries(table, "deployments", where)),
        curves=tuple(_curve(entry, place) for entry, place in _entries(table, "curves", where)),
        own=tuple(_own(entry, place) for entry, place in _entries(table, "own", where)),
        sent=_sent(_table(table, "sent", where), f"{where}sent.") if "sent" in table else None,
    )


def _table(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise InputError("not_a_table", path=f"{where}{key}")
    return found


def _entries(table: Mapping[str, Any], key: str, where: str) -> list[tuple[Mapping[str, Any], str]]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(entry, Mapping) for entry in found):
        raise InputError("not_tables", path=f"{where}{key}")
    return [(entry, f"{where}{key}[{place}].") for place, entry in enumerate(found)]


def _needed(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in keys:
        if key not in table:
            raise InputError("missing_key", path=f"{where}{key}")


def _made(table: Mapping[str, Any], where: str) -> Made:
    refuse_unknown(table, ("command", "date", "breakeven", "rows", "groups", "left_out"), where)
    left_out = _table(table, "left_out", where)
    return Made(
        command=str(table.get("command", "")),
        date=str(table.get("date", "")),
        breakeven=str(table.get("breakeven", "")),
        rows=_whole(table.get("rows", 0), f"{where}rows"),
        groups=_whole(table.get("groups", 0), f"{where}groups"),
        left_out={str(reason): _whole(rows, f"{where}left_out.{reason}") for reason, rows in left_out.items()},
    )


def _sent(table: Mapping[str, Any], where: str) -> Sent:
    words, counts, numbers = (
        ("server", "engine", "version"),
        ("points", "requests", "input_tokens", "output_tokens"),
        ("seconds", "load_before", "load_after", "spread", "others_tokens"),
    )
    refuse_unknown(table, (*words, *counts, *numbers), where)
    server, engine, version = (str(table.get(name, "")) for name in words)
    points, requests, prompts, outputs = (_whole(table.get(name, 0), f"{where}{name}") for name in counts)
    seconds = _weight(table.get("seconds", 0.0), f"{where}seconds")
    before, after, spread, others = (_weight(table[name], f"{where}{name}") if name in table else None for name in numbers[1:])
    return Sent(
        server=server,
        engine=engine,
        version=version,
        points=points,
        requests=requests,
        input_tokens=prompts,
        output_tokens=outputs,
        seconds=seconds,
        load_before=before,
        load_after=after,
        spread=spread,
        others_tokens=others,
    )


def _whole(raw: object, path: str) -> int:
    return 0 if raw == 0 else count(raw, path)


def _file(table: Mapping[str, Any], where: str) -> FileRead:
    refuse_unknown(table, ("name", "rows", "sha256"), where)
    _needed(table, ("name",), where)
    return FileRead(name=str(table["name"]), rows=_whole(table.get("rows", 0), f"{where}rows"), sha256=str(table.get("sha256", "")))


def _parameters(table: Mapping[str, Any], where: str) -> dict[str, Parameter]:
    found = {}
    for name, entry in table.items():
        path = f"{where}{shown(name)}"
        if not is_parameter(name):
            raise InputError("calibration_parameter", path=path)
        if not isinstance(entry, Mapping):
            raise InputError("not_a_table", path=path)
        refuse_unknown(entry, ("value", "low", "high", "prior", "rows", "determined"), f"{path}.")
        _needed(entry, ("value",), f"{path}.")
        value = _weight(entry["value"], f"{path}.value")
        low, high, prior = (_weight(entry.get(key, value), f"{path}.{key}") for key in ("low", "high", "prior"))
        if not low <= value <= high:
            raise InputError("calibration_interval", path=path, value=value, low=low, high=high)
        found[name] = Parameter(
            value=value,
            low=low,
            high=high,
            prior=prior,
            rows=_whole(entry.get("rows", 0), f"{path}.rows"),
            determined=switch(entry.get("determined", True), f"{path}.determined"),
        )
    return found


def _weight(raw: object, path: str) -> float:
    value = number(raw, path)
    if value < 0:
        raise InputError("calibration_negative", path=path, value=value)
    return value


def _residual(table: Mapping[str, Any], where: str) -> dict[str, dict[str, float]]:
    refuse_unknown(table, LEVELS, where)
    found: dict[str, dict[str, float]] = {}
    for level in table:
        entry = _table(table, level, where)
        refuse_unknown(entry, DEVIATIONS, f"{where}{level}.")
        found[level] = {name: _deviation(value, f"{where}{level}.{name}") for name, value in entry.items()}
    return found


def _deviation(raw: object, path: str) -> float:
    value = _weight(raw, path)
    if value > LARGEST_DEVIATION:
        raise InputError("too_large", path=path, value=value)
    return value


def _measured(table: Mapping[str, Any], where: str) -> MeasuredDeployment:
    refuse_unknown(table, ("model", "device", "family", "engine", "version", "rows", "values"), where)
    _needed(table, ("model", "device", "engine", "rows"), where)
    values = _table(table, "values", where)
    for name in values:
        if not is_parameter(name):
            raise InputError("calibration_parameter", path=f"{where}values.{shown(name)}")
    return MeasuredDeployment(
        model=word(table["model"], f"{where}model"),
        device=word(table["device"], f"{where}device"),
        family=str(table.get("family", "")),
        engine=word(table["engine"], f"{where}engine"),
        version=str(table.get("version", "")),
        rows=count(table["rows"], f"{where}rows"),
        values={name: _weight(value, f"{where}values.{name}") for name, value in values.items()},
    )


LARGEST_LOG = 10.0
"""ln of a ratio beyond which no row is meant: twenty thousand times the model's time."""


def _log_ratio(raw: object, path: str) -> float:
    value = number(raw, path)
    if abs(value) > LARGEST_LOG:
        raise InputError("calibration_interval", path=path, value=value, low=-LARGEST_LOG, high=LARGEST_LOG)
    return value


def _own(table: Mapping[str, Any], where: str) -> OwnRow:
    names, numbers = ("model", "device", "engine"), ("load", "input_tokens", "output_tokens")
    refuse_unknown(table, (*names, *numbers, "version", "format", "devices", "tpot", "ttft"), where)
    _needed(table, (*names, *numbers), where)
    model, device, engine = (word(table[name], f"{where}{name}") for name in names)
    load, prompt, output = (positive(table[name], f"{where}{name}") for name in numbers)
    tpot, ttft = (_log_ratio(table[name], f"{where}{name}") if name in table else None for name in ("tpot", "ttft"))
    return OwnRow(
        model=model,
        device=device,
        engine=engine,
        version=str(table.get("version", "")),
        format=str(table.get("format", "")),
        load=load,
        input_tokens=prompt,
        output_tokens=output,
        devices=count(table.get("devices", 1), f"{where}devices"),
        tpot=tpot,
        ttft=ttft,
    )


def _curve(table: Mapping[str, Any], where: str) -> Curve:
    needed = ("model", "device", "engine", "context_tokens", "rows", "step_s")
    optional = ("version", "tensor_parallel_size", "quantization", "kv_cache_dtype", "enforce_eager", "one_pass", "source")
    refuse_unknown(table, (*needed, *optional), where)
    _needed(table, needed, where)
    rows, step_s = (_numbers(table[key], f"{where}{key}") for key in ("rows", "step_s"))
    if len(rows) != len(step_s):
        raise InputError("calibration_curve_lengths", path=where.removesuffix("."), rows=len(rows), steps=len(step_s))
    if any(b <= a for a, b in pairwise(rows)):
        raise InputError("calibration_curve_widths", path=where.removesuffix("."))
    return Curve(
        model=word(table["model"], f"{where}model"),
        device=word(table["device"], f"{where}device"),
        engine=word(table["engine"], f"{where}engine"),
        version=str(table.get("version", "")),
        context_tokens=_weight(table["context_tokens"], f"{where}context_tokens"),
        rows=rows,
        step_s=step_s,
        tensor_parallel_size=count(table.get("tensor_parallel_size", 1), f"{where}tensor_parallel_size"),
        quantization=str(table.get("quantization", "")),
        kv_cache_dtype=str(table.get("kv_cache_dtype", "auto")),
        enforce_eager=switch(table.get("enforce_eager", False), f"{where}enforce_eager"),
        one_pass=switch(table.get("one_pass", False), f"{where}one_pass"),
        source=str(table.get("source", "")),
    )


def _numbers(raw: object, path: str) -> tuple[float, ...]:
    if not isinstance(raw, list) or not raw:
        raise InputError("not_numbers", path=path)
    return tuple(positive(each, f"{path}[{place}]") for place, each in enumerate(raw))
