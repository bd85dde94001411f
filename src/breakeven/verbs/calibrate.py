"""``breakeven calibrate FILES``: the model's numbers fitted to one's own measurements, and kept in a file."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import re
from pathlib import Path
from typing import Annotated

import typer

from breakeven import streams
from breakeven.errors import InputError
from breakeven.verb import AsJson, Folders, InLanguage, Seed, ShowHelp, Verbose, language, option, show, whole

SHIPPED = Path("src/breakeven/catalog/calibrations")
"""In a checkout: a calibration that is shipped is a file of the repository."""


def calibrate(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILES", show_default=False)],
    out: Annotated[str | None, option("--out", metavar="FILE")] = None,
    ship: Annotated[str | None, option("--ship", metavar="NAME")] = None,
    model: Annotated[str | None, option("--model", metavar="NAME|FILE")] = None,
    hardware: Annotated[str | None, option("--hardware", metavar="DEVICE")] = None,
    engine: Annotated[str | None, option("--engine", metavar="NAME")] = None,
    catalog_dirs: Folders = None,
    seed: Seed = "0",
    verbose: Verbose = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """The model's numbers fitted to measurements, what they leave open, and what to measure next."""
    from breakeven import api, calibrate_report
    from breakeven.calibration import document

    whole(seed, "--seed")
    if ship is not None and re.fullmatch(r"[a-z0-9][a-z0-9.-]*", ship) is None:
        raise InputError("calibrate_ship_name", value=ship)
    if out is not None and ship is not None:
        raise InputError("two_forms", first="--out", second="--ship")
    found = api.calibrate(files, model=model, hardware=hardware, engine=engine, ship=ship, catalog_dirs=catalog_dirs or ())
    path = Path(out) if out is not None else None if ship is None else SHIPPED / f"{ship}.toml"
    if path is not None and path.resolve() in {Path(file).resolve() for file in files}:
        raise InputError("calibrate_over_input", path=path.as_posix())
    if path is not None:
        streams.write_file(path, document.written(found.document))
    show(calibrate_report.compose(found, language(ctx), None if path is None else path.as_posix()), as_json, verbose=verbose)


VERB = calibrate
