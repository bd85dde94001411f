"""What goes by a name: a model, devices, an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from breakeven import catalog
from breakeven.origin.model_source import load_model
from breakeven.spec.engine import Engine
from breakeven.spec.hardware import Device, Hardware, with_memory
from breakeven.spec.model import Model


def model(name: str, *, catalog_dirs: Sequence[Path | str] = ()) -> Model:
    """A model by catalogue name, Hugging Face id, or path of a ``config.json``, its folder or a GGUF file; your folders stand first.

    As on the command line, the configuration of an id that is neither catalogued nor in the hub's cache is fetched, with a line on stderr.
    """
    return load_model(str(name), catalog.user_folders(catalog_dirs))[0]


def hardware(name: str, count: int = 1, *, memory_bytes: float | None = None, catalog_dirs: Sequence[Path | str] = ()) -> Hardware:
    """Devices by catalogue name, with the memory that you state where the device's own is not all, or not known."""
    device = catalog.load("hardware", name, catalog.user_folders(catalog_dirs))
    return Hardware(device=device if memory_bytes is None else with_memory(device, memory_bytes), count=count)


def engine(name: str = "vllm", version: str | None = None, device: Device | None = None, **settings: Any) -> Engine:
    """An engine with its own defaults at a version and on a device, and the settings given."""
    return catalog.engine(name, version, device, **settings)
