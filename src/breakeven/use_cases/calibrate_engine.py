"""The model's numbers fitted to the steps of a running engine, under load that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from breakeven.calibration import driven
from breakeven.calibration.calibrate import Calibrated
from breakeven.driving import grid
from breakeven.driving.grid import Bounds
from breakeven.driving.running_engine import StatedEngine
from breakeven.driving.tour import Progress
from breakeven.endpoint import Endpoint
from breakeven.errors import InputError
from breakeven.use_cases.running_engine import running_engine


def calibrate_engine(
    url: str,
    *,
    allow_load: bool = False,
    stated: StatedEngine | None = None,
    widths: Sequence[int] = (),
    contexts: Sequence[int] = (),
    bounds: Bounds | None = None,
    headers: Mapping[str, str] | None = None,
    catalog_dirs: Sequence[Path | str] = (),
    progress: Progress | None = None,
) -> Calibrated:
    """Load on a running engine, bounded and asked for, and the calibration that its steps tell (``docs/guide/calibrate.md``).

    Without ``allow_load`` it is refused, with what would be sent. ``stated`` is for what the engine does not tell. Streams and contexts
    that are not given are those the engine has room for.
    """
    found = running_engine(Endpoint(url=url, headers=headers or {}), stated or StatedEngine(), catalog_dirs)
    plan = grid.plan(widths, contexts, grid.PROMPTS, found.room, bounds or grid.Bounds())
    if not allow_load:
        raise InputError("drive_refused", server=found.address, **plan.counted)
    return driven.calibrated_on(found, plan, progress=progress)
