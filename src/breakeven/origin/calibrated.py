"""A calibration put under a deployment: what of it applies, what does not, and what is said of that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from breakeven.errors import InputError
from breakeven.messages import Message
from breakeven.origin.calibration_file import read_calibration
from breakeven.origin.doubtful import doubts_of, told_of_doubts
from breakeven.origin.expired import told_of, unexpired
from breakeven.origin.layers import Given
from breakeven.origin.values import word
from breakeven.spec.calibration import Basis, Calibration, StepCurve
from breakeven.spec.calibration_file import FEW, CalibrationFile, Curve, MeasuredDeployment
from breakeven.spec.correction import TIMES, Place, Rows
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import same_version
from breakeven.spec.model import Model


def calibration_of(d: Deployment, given: Given | None, beside: Path | None) -> tuple[Deployment, tuple[Message, ...]]:
    """The deployment with the calibration that a file or a flag names, and what is to be said of it."""
    if given is None:
        return d, ()
    path = Path(word(given.value, "calibration"))
    if given.layer == "file" and beside is not None and not path.is_absolute():
        path = beside / path
    document = read_calibration(path)
    provenance = dict(sorted({**d.provenance, "calibration": "file"}.items()))
    _check_made_on(document, d, path.name)
    left, old = unexpired(document, d), told_of(document, d, path.name)
    if _sources(document) and not (_sources(left) or left.parameters):
        return d, old
    told = (*old, *_told(left, d, path.name), *told_of_doubts(left, path.name))
    return replace(d, calibration=applied(left, d, path.name), provenance=provenance), told


def applied(document: CalibrationFile, d: Deployment, name: str) -> Calibration:
    """What of a document stands for a deployment; refused where it was made on other devices or another engine."""
    _check_made_on(document, d, name)
    own = [entry for entry in document.deployments if _is_own(entry, d)]
    values = {parameter: found.value for parameter, found in document.parameters.items()}
    rows = sum(entry.rows for entry in own)
    for entry in own:
        values |= entry.values
    curves = tuple(_curve(curve, d) for curve in document.curves if _is_of(curve, d))
    measured = sum(len(curve.rows) for curve in curves if curve.model.name == d.model.name)
    deviations = document.residual.get(level(rows or measured), document.residual.get("none", {}))
    values |= {f"offset.{deviation}": value for deviation, value in deviations.items()}
    basis = Basis(name=name, rows=document.made.rows, own_rows=rows or measured, doubts=doubts_of(document))
    return Calibration(values=values, curves=curves, own=_own(document, d), basis=basis)


def level(own_rows: int) -> str:
    """How well a deployment is known by its own rows.

    >>> [level(rows) for rows in (0, 1, 10, 11)]
    ['none', 'few', 'few', 'deployment']
    """
    return "none" if own_rows == 0 else "few" if own_rows <= FEW else "deployment"


def _own(document: CalibrationFile, d: Deployment) -> Rows | None:
    """The rows of this very deployment; None where the file has none."""
    rows = [row for row in document.own if (row.model, row.device, row.engine) == (d.model.name, d.hardware.device.name, d.engine.name)]
    if not rows:
        return None
    logs = np.log([[row.load, row.input_tokens, row.output_tokens, row.devices] for row in rows])
    place = Place(logs=logs, versions=tuple(row.version for row in rows), formats=tuple(row.format for row in rows))
    missed = {time: np.array([np.nan if found is None else found for found in (getattr(row, time) for row in rows)]) for time in TIMES}
    return Rows(place=place, residuals=missed)


def _is_own(entry: MeasuredDeployment, d: Deployment) -> bool:
    return (entry.model, entry.device, entry.engine) == (d.model.name, d.hardware.device.name, d.engine.name)


def _is_of(curve: Curve, d: Deployment) -> bool:
    """Whether a curve is of the model or of a draft of it, on this engine and device."""
    models = (d.model.name, *(draft.name for draft in d.drafts.values()))
    return curve.model in models and (curve.device, curve.engine) == (d.hardware.device.name, d.engine.name)


def _curve(curve: Curve, d: Deployment) -> StepCurve:
    engine = replace(
        d.engine,
        tensor_parallel_size=curve.tensor_parallel_size,
        quantization=curve.quantization or None,
        kv_cache_dtype=curve.kv_cache_dtype,
        enforce_eager=curve.enforce_eager,
        kv_unified=curve.one_pass,
        speculative=None,
    )
    return StepCurve(model=_model(curve, d), engine=engine, context_tokens=curve.context_tokens, rows=curve.rows, step_s=curve.step_s)


def _model(curve: Curve, d: Deployment) -> Model:
    return d.model if curve.model == d.model.name else next(draft for draft in d.drafts.values() if draft.name == curve.model)


def _sources(document: CalibrationFile) -> Iterable[MeasuredDeployment | Curve]:
    return (*document.deployments, *document.curves)


def _check_made_on(document: CalibrationFile, d: Deployment, name: str) -> None:
    """An engine's own costs and a device's own shares say nothing of others; a file that names none is taken as it is."""
    devices, engines = (sorted({getattr(entry, what) for entry in _sources(document)}) for what in ("device", "engine"))
    if devices and d.hardware.device.name not in devices:
        raise InputError("calibration_other_device", name=name, made_on=", ".join(devices), here=d.hardware.device.name)
    if engines and d.engine.name not in engines:
        raise InputError("calibration_other_engine", name=name, made_on=", ".join(engines), here=d.engine.name)


def _told(document: CalibrationFile, d: Deployment, name: str) -> tuple[Message, ...]:
    """Another model, another version, curves of another spread: the calibration is taken, and that is said."""
    here = [e for e in _sources(document) if (e.device, e.engine) == (d.hardware.device.name, d.engine.name)]
    if not here:
        return ()
    models = sorted({entry.model for entry in here})
    found = []
    if d.model.name not in models:
        found.append(Message("warning.calibration_other_model", {"name": name, "models": ", ".join(models), "model": d.model.name}))
    versions = sorted({entry.version for entry in here if entry.version})
    if versions and not any(same_version(version, d.engine.version) for version in versions):
        found.append(
            Message("warning.calibration_other_version", {"name": name, "versions": ", ".join(versions), "version": d.engine.version})
        )
    spread = sorted({c.tensor_parallel_size for c in document.curves if c.model == d.model.name and _is_of(c, d)})
    if spread and d.engine.tensor_parallel_size not in spread:
        sizes = ", ".join(map(str, spread))
        found.append(Message("warning.calibration_other_spread", {"name": name, "sizes": sizes, "size": d.engine.tensor_parallel_size}))
    return tuple(found)
