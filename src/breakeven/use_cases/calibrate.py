"""The model's numbers fitted to measurements in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from breakeven import catalog
from breakeven.calibration.calibrate import Calibrated
from breakeven.calibration.calibrate import calibrate as fitted
from breakeven.measured.steps import Stated


def calibrate(
    paths: Path | str | Sequence[Path | str],
    *,
    model: str | None = None,
    hardware: str | None = None,
    device_memory: str | None = None,
    engine: str | None = None,
    ship: str | None = None,
    catalog_dirs: Sequence[Path | str] = (),
) -> Calibrated:
    """The model's numbers fitted to measurements in files: serving rows, or steps over width (``docs/guide/calibrate.md``).

    ``model``, ``hardware`` and ``engine`` are said of rows that do not say them, ``device_memory`` (``24GB``) of a device whose memory is
    its machine's; ``ship`` names the shipped calibration that is made anew.
    """
    files = [Path(path) for path in ([paths] if isinstance(paths, (Path, str)) else paths)]
    said = {"model": model or "", "device": hardware or "", "memory": device_memory or "", "engine": engine or ""}
    stated = Stated(**said, folders=catalog.user_folders(catalog_dirs))
    return fitted(files, stated, ship=ship)
