"""What of a calibration has expired: it was measured on another version of the engine than the one that is stated to run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from breakeven.messages import Message
from breakeven.spec.calibration_file import CalibrationFile, Curve, MeasuredDeployment, OwnRow
from breakeven.spec.deployment import Deployment
from breakeven.spec.engine import same_version

COMMAND = "breakeven calibrate FILES"
UNSTATED = "assumed"


def unexpired(document: CalibrationFile, d: Deployment) -> CalibrationFile:
    """The document without the rows, the curves and the deployments of other versions of the engine.

    Where nothing is left that was measured on this engine and device, the shared numbers of the fit are of the other versions, and go too.
    """
    if not _expired(document, d):
        return document
    left = replace(
        document,
        deployments=tuple(entry for entry in document.deployments if not _is_old(entry, d)),
        curves=tuple(curve for curve in document.curves if not _is_old(curve, d)),
        own=tuple(row for row in document.own if not _is_old(row, d)),
    )
    return left if _here((*left.deployments, *left.curves), d) else replace(left, parameters={}, residual={})


def told_of(document: CalibrationFile, d: Deployment, name: str) -> tuple[Message, ...]:
    """One line where something has expired: its versions, and what to type."""
    versions = ", ".join(_expired(document, d))
    if not versions:
        return ()
    values = {"name": name, "versions": versions, "version": d.engine.version, "command": document.made.command or COMMAND}
    left = unexpired(document, d)
    key = "calibration_expired_partly" if _here((*left.deployments, *left.curves), d) else "calibration_expired"
    return (Message(f"warning.{key}", values),)


def _expired(document: CalibrationFile, d: Deployment) -> list[str]:
    """Versions of this engine on this device that are not the one that runs."""
    entries: tuple[MeasuredDeployment | Curve, ...] = (*document.deployments, *document.curves)
    return sorted({entry.version for entry in entries if _is_old(entry, d)})


def _is_old(entry: MeasuredDeployment | Curve | OwnRow, d: Deployment) -> bool:
    """A version that nobody stated contradicts none, on either side."""
    stated = d.provenance.get("engine.version") != UNSTATED
    return stated and entry.engine == d.engine.name and bool(entry.version) and not same_version(entry.version, d.engine.version)


def _here(entries: Iterable[MeasuredDeployment | Curve], d: Deployment) -> bool:
    return any((entry.device, entry.engine) == (d.hardware.device.name, d.engine.name) for entry in entries)
