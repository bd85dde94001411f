"""What this machine reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from breakeven import catalog
from breakeven.probing.find import found_for
from breakeven.probing.machine import machine
from breakeven.probing.probe import Probed, probed
from breakeven.spec.hardware import Device


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a machine reached, and the device of the catalogue that it is held against."""

    probed: Probed
    device: Device | None


def probe(hardware: str | None = None, *, catalog_dirs: Sequence[Path | str] = ()) -> Probe:
    """Bandwidth and matrix rate of this machine: its accelerator where torch sees one, else its processor."""
    device = None if hardware is None else catalog.load("hardware", hardware, catalog.user_folders(catalog_dirs))
    here = machine()
    return Probe(probed=probed(found_for(device, here), here), device=device)
