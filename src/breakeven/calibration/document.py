"""A calibration written to its file: the same fit gives the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from breakeven.calibration.fitted import Fitted, FittedParameter
from breakeven.calibration.identify import NARROWED, left_of_prior
from breakeven.measured.curves import Drawn
from breakeven.spec.calibration_file import (
    CALIBRATION_SCHEMAS,
    CalibrationFile,
    Curve,
    FileRead,
    LeverSigma,
    Made,
    MeasuredDeployment,
    OwnRow,
    Parameter,
)
from breakeven.spec.correction import Scales

FIGURES = 8
SHA_DIGITS = 12
ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def file_read(path: Path, rows: int) -> FileRead:
    """A file by its name, its rows, and the beginning of the hash of its bytes."""
    return FileRead(name=path.name, rows=rows, sha256=hashlib.sha256(path.read_bytes()).hexdigest()[:SHA_DIGITS])


def calibration_file(
    fit: Fitted | None, curves: Sequence[Drawn], made: Made, files: Sequence[FileRead], sigma: Mapping[str, Mapping[str, LeverSigma]]
) -> CalibrationFile:
    """The document of a fit and of the curves beside it: numbers that some row bears on, since others are only what they were."""
    estimates = fit.estimates if fit is not None else {}
    return CalibrationFile(
        made=made,
        files=tuple(sorted(files, key=lambda one: one.name)),
        parameters={name: _parameter(estimates[name]) for name in sorted(estimates) if estimates[name].rows},
        residual=fit.deviations if fit is not None else {},
        deployments=fit.deployments if fit is not None else (),
        curves=tuple(drawn.curve for drawn in curves),
        own=fit.own if fit is not None else (),
        correction=fit.correction if fit is not None else {},
        sigma=sigma,
    )


def _parameter(estimate: FittedParameter) -> Parameter:
    return Parameter(
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        prior=estimate.prior,
        rows=estimate.rows,
        determined=left_of_prior(estimate) < NARROWED,
    )


def written(document: CalibrationFile) -> str:
    """The text of a document: sections and keys in order, numbers to eight figures."""
    lines = [f"schema = {_value(_schema(document))}", "", "[made]", *_keys(_plain(document.made, leave=("left_out",)))]
    if document.made.left_out:
        lines += ["", "[made.left_out]", *_keys(document.made.left_out)]
    if document.sent is not None:
        lines += ["", "[sent]", *_keys({name: value for name, value in _plain(document.sent).items() if value is not None})]
    for file in sorted(document.files, key=lambda one: one.name):
        lines += ["", "[[files]]", *_keys(_plain(file))]
    if document.parameters:
        lines += ["", "[parameters]"]
        lines += [f"{_key(name)} = {_inline(_plain(document.parameters[name]))}" for name in sorted(document.parameters)]
    for level in sorted(document.residual):
        lines += ["", f"[residual.{_key(level)}]", *_keys(document.residual[level])]
    for deployment in sorted(document.deployments, key=_place):
        lines += ["", "[[deployments]]", *_keys(_plain(deployment, leave=() if deployment.values else ("values",)))]
    for curve in sorted(document.curves, key=_place):
        lines += ["", "[[curves]]", *_keys(_plain(curve))]
    for row in sorted(document.own, key=_place):
        lines += ["", "[[own]]", *_keys({name: value for name, value in _plain(row).items() if value is not None})]
    for time in sorted(document.correction):
        lines += ["", f"[correction.{_key(time)}]", *_keys(_scales(document.correction[time]))]
    for lever in sorted(document.sigma):
        lines += ["", f"[sigma.{_key(lever)}]"]
        lines += [f"{_key(row)} = {_inline(_plain(document.sigma[lever][row]))}" for row in sorted(document.sigma[lever])]
    return "\n".join(lines) + "\n"


def _schema(document: CalibrationFile) -> str:
    """The earliest version that has all of it, so that older programs read what they know."""
    first, second = CALIBRATION_SCHEMAS
    sent = document.sent
    return second if sent is not None and (sent.spread is not None or sent.others_tokens is not None) else first


def _scales(scales: Scales) -> dict[str, object]:
    widening = {str(rows): factor for rows, factor in scales.widening.items()}
    return {**_plain(scales, leave=("widening",)), "widening": widening}


def _place(entry: MeasuredDeployment | Curve | OwnRow) -> tuple[str, ...]:
    """Order of entries: by all that names them, and then by the rest."""
    return (entry.model, entry.device, entry.engine, entry.version, repr(entry))


def _plain(entry: object, leave: tuple[str, ...] = ()) -> dict[str, object]:
    return {f.name: getattr(entry, f.name) for f in fields(entry) if f.name not in leave}  # type: ignore[arg-type]  # a dataclass


def _keys(table: Mapping[str, object]) -> Iterable[str]:
    return [f"{_key(name)} = {_value(table[name])}" for name in sorted(table)]


def _inline(table: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{_key(name)} = {_value(value)}" for name, value in table.items()) + "}"


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else _value(name)


def _value(value: object) -> str:
    """A value as TOML writes it: a boolean before a number, since Python's is one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return _inline({name: value[name] for name in sorted(value)})
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return '"' + "".join(ESCAPES.get(sign, sign if sign.isprintable() else f"\\U{ord(sign):08x}") for sign in str(value)) + '"'


def _number(value: float) -> str:
    """Eight figures, with the point that makes it no integer."""
    text = f"{value:.{FIGURES}g}"
    return text if "." in text or "e" in text or "n" in text else f"{text}.0"
