"""A probe becomes a document: rates beside those of a sheet, and sentences in the reader's language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from breakeven.compose import Language, figure, sure
from breakeven.messages import say
from breakeven.probe_document import ProbeDocument, ProbeFigure, ProbeMachine, counting
from breakeven.probing.entry import entry
from breakeven.probing.probe import BUSY, Figure, Probed
from breakeven.spec.hardware import Device

UNSTEADY = 0.5
IMPOSSIBLE = 1.0


def compose(
    probed: Probed, date: str, language: Language = "en", *, device: Device | None = None, written: Path | None = None
) -> ProbeDocument:
    """The document of a probe, beside the sheet of a device where one is named."""
    figures = [_figure(one, device) for one in probed.figures]
    return ProbeDocument(
        language=language,
        date=date,
        seconds=sure(probed.seconds),
        machine=_machine(probed),
        compared_with=None if device is None else device.name,
        figures=figures,
        warnings=list(_warnings(probed, figures, device, language)),
        entry=entry(probed, date),
        written=None if written is None else written.as_posix(),
        folder=None if written is None else written.parent.as_posix(),
        name=None if written is None else written.stem,
    )


def _machine(probed: Probed) -> ProbeMachine:
    machine, backend = probed.machine, probed.backend
    return ProbeMachine(
        device=backend.device,
        processor=machine.processor,
        cores=machine.cores,
        clock_hz=figure(machine.clock_hz),
        load=None if machine.load is None else [sure(value) for value in machine.load],
        memory_bytes=sure(backend.memory_bytes),
        libraries=dict(backend.libraries),
        devices=backend.devices,
    )


def _figure(one: Figure, device: Device | None) -> ProbeFigure:
    sheet = None if device is None else _sheet(one, device)
    return ProbeFigure(
        quantity=one.quantity,
        format=one.form,
        size=one.size,
        best=sure(one.best),
        median=sure(one.median),
        spread=sure(one.spread),
        repeats=one.repeats,
        sheet=sheet,
        share=None if sheet is None else sure(one.best / sheet),
    )


def _sheet(one: Figure, device: Device) -> float | None:
    """What an entry says of the same quantity; no entry says what 32 bit do."""
    if one.quantity == "product":
        return device.matmul_flops.get(one.form)
    return device.link_bytes_per_s if one.quantity == "link" else device.bandwidth_bytes_per_s


def _warnings(probed: Probed, figures: list[ProbeFigure], device: Device | None, language: Language) -> Iterator[str]:
    machine = probed.machine
    if machine.load is not None and machine.load[0] > BUSY * machine.cores:
        yield say("probe.busy", language, load=machine.load[0], cores=machine.cores)
    if probed.cached:
        yield say("probe.cached", language, cache=probed.backend.cache_bytes)
    unsteady = max(counting(figures), key=lambda one: one.spread)
    if unsteady.spread > UNSTEADY:
        yield say("probe.unsteady", language, spread=unsteady.spread)
    above = [one for one in figures if one.share is not None and one.share > IMPOSSIBLE]
    if above and device is not None:
        worst = max(above, key=lambda one: one.share or 0.0)
        yield say("probe.impossible", language, share=worst.share, device=device.name, title=probed.backend.device)
