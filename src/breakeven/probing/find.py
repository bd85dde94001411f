"""Which device of this machine is probed: the accelerator that torch sees, else the processor."""

from __future__ import annotations

import importlib.util
from typing import Any

from breakeven.errors import InputError
from breakeven.probing.backend import Backend
from breakeven.probing.machine import Machine
from breakeven.spec.hardware import Device

KINDS = ("cuda", "xpu")
OF_THE_PROCESSOR = ("cpu", "apple")
"""Families whose memory is the machine's own."""


def found_for(device: Device | None, machine: Machine) -> Backend:
    """The device to probe, held against the one that is named; refused where that one cannot be here."""
    torch = torch_module()
    kind = None if torch is None else next((kind for kind in KINDS if _is_there(torch, kind)), None)
    on_processor = device is not None and device.family in OF_THE_PROCESSOR
    if kind is not None and not on_processor:
        return accelerator(torch, kind)
    if device is not None and not on_processor:
        raise InputError("probe_no_device", device=device.name)
    from breakeven.probing.backends.host import host

    return host(machine, torch)


def accelerator(torch: Any, kind: str) -> Backend:
    """The first accelerator of a kind."""
    from breakeven.probing.backends.torch_device import torch_device

    library = getattr(torch, kind)
    free, total = library.mem_get_info(0)
    return torch_device(torch, kind, memory_bytes=float(total), free_bytes=float(free), count=int(library.device_count()))


def torch_module() -> Any:
    """torch where it is installed and can be loaded, else None: it is no dependency of ours."""
    if importlib.util.find_spec("torch") is None:
        return None
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError):
        return None


def _is_there(torch: Any, kind: str) -> bool:
    library = getattr(torch, kind, None)
    return library is not None and bool(library.is_available())
