"""``breakeven calibrate``: the model's numbers fitted to one's own measurements and kept in a file; ``--probe``: this machine's rates."""

# No `from __future__ import annotations`: typer reads the annotations of a verb.
import re
from collections.abc import Mapping, Sequence
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breakeven import out_file, streams
from breakeven.drive_options import OPTIONS, AllowLoad, Contexts, Requests, Seconds, Sent, Tokens, TotalSeconds, Url, Widths, grid_of, told
from breakeven.errors import InputError
from breakeven.observe_options import Header, ModelName, headers
from breakeven.verb import AsJson, Folders, InLanguage, Seed, ShowHelp, Verbose, language, option, show, whole

if TYPE_CHECKING:
    from breakeven.calibration.calibrate import Calibrated
    from breakeven.compose import Language
    from breakeven.probe_document import ProbeDocument

SHIPPED = Path("src/breakeven/catalog/calibrations")
"""In a checkout: a calibration that is shipped is a file of the repository."""


def calibrate(
    ctx: typer.Context,
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILES]", show_default=False)] = None,
    probe: Annotated[bool, option("--probe")] = False,
    driven_url: Url = None,
    allow_load: AllowLoad = False,
    widths: Widths = None,
    contexts: Contexts = None,
    point_requests: Requests = None,
    seconds: Seconds = None,
    total_seconds: TotalSeconds = None,
    tokens: Tokens = None,
    header: Header = None,
    model_name: ModelName = None,
    out: Annotated[str | None, option("--out", metavar="FILE")] = None,
    ship: Annotated[str | None, option("--ship", metavar="NAME")] = None,
    model: Annotated[str | None, option("--model", metavar="NAME|FILE")] = None,
    hardware: Annotated[str | None, option("--hardware", metavar="DEVICE")] = None,
    device_memory: Annotated[str | None, option("--device-memory", metavar="SIZE")] = None,
    engine: Annotated[str | None, option("--engine", metavar="NAME")] = None,
    engine_version: Annotated[str | None, option("--engine-version", metavar="VERSION")] = None,
    launch: Annotated[str | None, option("--launch", metavar="COMMAND")] = None,
    catalog_dirs: Folders = None,
    seed: Seed = "0",
    verbose: Verbose = False,
    as_json: AsJson = False,
    lang: InLanguage = None,
    show_help: ShowHelp = False,
) -> None:
    """The model's numbers fitted to measurements, what they leave open, and what to measure next."""
    whole(seed, "--seed")
    grid = {
        "widths": widths,
        "contexts": contexts,
        "requests": point_requests,
        "seconds": seconds,
        "total_seconds": total_seconds,
        "tokens": tokens,
    }
    of_load = {"--allow-load": allow_load, "--launch": launch, "--engine-version": engine_version, "--header": header}
    of_load |= {"--model-name": model_name, **{OPTIONS[name]: grid[name] for name in grid}}
    if probe:
        others = {
            "FILES": files,
            "--url": driven_url,
            "--ship": ship,
            "--model": model,
            "--device-memory": device_memory,
            "--engine": engine,
        }
        _refuse_beside("--probe", {**others, **of_load})
        _show_probed(ctx, hardware, _place_of_device(out), catalog_dirs or (), as_json, verbose)
        return
    if driven_url is not None:
        _refuse_beside("--url", {"FILES": files, "--ship": ship})
        from breakeven.driving.running_engine import StatedEngine

        flags = {"model": model, "hardware": hardware, "device_memory": device_memory, "engine": engine, "engine_version": engine_version}
        stated = StatedEngine(
            flags={name: given for name, given in flags.items() if given is not None}, launch=launch, model_name=model_name
        )
        sent = Sent(url=driven_url, allow_load=allow_load, headers=headers(header), stated=stated, catalog_dirs=catalog_dirs or ())
        _show_driven(ctx, sent, grid_of(grid), _place(out), as_json, verbose)
        return
    if (unused := next((name for name, given in of_load.items() if given), None)) is not None:
        raise InputError("drive_no_url", option=unused)
    if not files:
        raise InputError("calibrate_nothing")
    said = {"model": model, "hardware": hardware, "device_memory": device_memory, "engine": engine}
    _show_fitted(ctx, files, out, ship, said, catalog_dirs or (), as_json, verbose)


def _refuse_beside(first: str, others: Mapping[str, object]) -> None:
    """What says nothing of this way to calibrate is refused, not passed over."""
    second = next((name for name, given in others.items() if given), None)
    if second is not None:
        raise InputError("two_forms", first=first, second=second)


CALIBRATION, PROBED = b'schema = "breakeven.calibration/', b"breakeven calibrate --probe"
"""What a calibration begins with, and what a probed device holds: each may be made anew, and neither by the other."""


def _place(out: str | None) -> Path | None:
    """Where a calibration is to go."""
    return out_file.place_for(out, lambda head: CALIBRATION in head, "calibrate_out_other")


def _place_of_device(out: str | None) -> Path | None:
    """Where a probed device is to go; a calibration may name the command of a probe, and is none."""
    return out_file.place_for(out, lambda head: PROBED in head and CALIBRATION not in head, "probe_out_other")


def _show_fitted(
    ctx: typer.Context,
    files: Sequence[str],
    out: str | None,
    ship: str | None,
    said: Mapping[str, str | None],
    catalog_dirs: Sequence[str],
    as_json: bool,
    verbose: bool,
) -> None:
    """Measurements in files: what they tell, kept and shown."""
    from breakeven import api

    if ship is not None and re.fullmatch(r"[a-z0-9][a-z0-9.-]*", ship) is None:
        raise InputError("calibrate_ship_name", value=ship)
    if out is not None and ship is not None:
        raise InputError("two_forms", first="--out", second="--ship")
    if out is not None and realpath(out) in map(realpath, files):
        raise InputError("calibrate_over_input", path=Path(out).as_posix())
    path = _place(out)
    if ship is not None:
        path = SHIPPED / f"{ship}.toml"
        streams.try_file(path)
    _keep(ctx, api.calibrate(files, **said, ship=ship, catalog_dirs=catalog_dirs), path, as_json, verbose)


def _show_driven(ctx: typer.Context, sent: Sent, grid: Mapping[str, Any], path: Path | None, as_json: bool, verbose: bool) -> None:
    """A load on a running engine: what it tells, kept and shown."""
    _keep(ctx, _driven(sent, grid, language(ctx)), path, as_json, verbose)


def _keep(ctx: typer.Context, found: "Calibrated", path: Path | None, as_json: bool, verbose: bool) -> None:
    """A calibration, kept in a file and shown."""
    from breakeven import calibrate_report
    from breakeven.calibration import document

    def shown(written: Path | None) -> None:
        show(calibrate_report.compose(found, language(ctx), None if written is None else written.as_posix()), as_json, verbose=verbose)

    out_file.keep(path, "" if path is None else document.written(found.document), shown, suffix=".toml", on_stdout=not as_json)


def _driven(sent: Sent, grid: Mapping[str, Any], spoken: "Language") -> "Calibrated":
    """A load on a running engine."""
    from breakeven import api

    with told(spoken) as progress:
        return api.calibrate_engine(
            sent.url,
            allow_load=sent.allow_load,
            stated=sent.stated,
            headers=sent.headers,
            catalog_dirs=sent.catalog_dirs,
            progress=progress,
            **grid,
        )


def _show_probed(
    ctx: typer.Context, hardware: str | None, path: Path | None, catalog_dirs: Sequence[str], as_json: bool, verbose: bool
) -> None:
    """The rates of this machine, kept as a device and shown."""
    from breakeven import api, probe_report
    from breakeven.calibration.calibrate import today

    found, date = api.probe(hardware, catalog_dirs=catalog_dirs), today()

    def told(written: Path | None) -> "ProbeDocument":
        return probe_report.compose(found.probed, date, language(ctx), device=found.device, written=written)

    # As JSON the document has the entry within it.
    out_file.keep(
        path, told(path).entry, lambda written: show(told(written), as_json, verbose=verbose), suffix=".toml", on_stdout=not as_json
    )


VERB = calibrate
