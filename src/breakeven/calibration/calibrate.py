"""Files of measurements to a calibration: rows read, numbers fitted, curves drawn, and what the rows leave open."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from breakeven.calibration.document import calibration_file, file_read
from breakeven.calibration.fitted import Fitted
from breakeven.calibration.identify import Tied, Undetermined, concerns, tied, to_measure, undetermined
from breakeven.calibration.lever_fit import LeverFit
from breakeven.calibration.measurements import commands_of
from breakeven.calibration.points import MeasuredPoint
from breakeven.calibration.summary import WEAK
from breakeven.calibration.verification import Verified
from breakeven.errors import InputError
from breakeven.measured.benchmark_files import files_of, read_benchmark
from breakeven.measured.benchmark_rows import rows_of
from breakeven.measured.curves import Drawn, curves_of
from breakeven.measured.lines import Table, read_table
from breakeven.measured.pair import Pair
from breakeven.measured.row import Skipped
from breakeven.measured.run import Run
from breakeven.measured.step_forms import form_of
from breakeven.measured.steps import UNSTATED, Stated, runs_of_steps, steps_of
from breakeven.messages import Message
from breakeven.spec.calibration_file import CalibrationFile, FileRead, Made


@dataclass(frozen=True, kw_only=True)
class ToMeasure:
    """A run to make, the parameters it would tell, and what to type."""

    run: str
    parameters: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Driven:
    """What a load on a running engine told beside its rows."""

    points: tuple[MeasuredPoint, ...]
    verification: tuple[Verified, ...]
    notes: tuple[Message, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A calibration with all that there is to say of it."""

    document: CalibrationFile
    fit: Fitted
    curves: tuple[Drawn, ...]
    undetermined: tuple[Undetermined, ...]
    tied: tuple[Tied, ...]
    to_measure: tuple[ToMeasure, ...]
    left_out: tuple[Skipped, ...]
    """Rows that are in no fit, each with the reason."""
    pairs: int
    """Pairs of a lever among the rows that were used."""
    notes: tuple[tuple[str, Message], ...] = ()
    """Places, and what was taken there otherwise than it is written."""
    driven: Driven | None = None
    """The load that told it, where a running engine was driven."""


@dataclass(frozen=True, kw_only=True)
class CalibrationRows:
    """What a calibration is made of, whatever it was read from."""

    runs: tuple[Run, ...] = ()
    curves: tuple[Drawn, ...] = ()
    left_out: tuple[Skipped, ...] = ()
    pairs: tuple[Pair, ...] = ()
    files: tuple[FileRead, ...] = ()
    notes: tuple[tuple[str, Message], ...] = ()


def calibrate(paths: Sequence[Path], stated: Stated, *, ship: str | None = None) -> Calibrated:
    """A calibration of the rows of all files; ``ship`` is the name of the shipped calibration that it is to be."""
    rows = _read(paths, stated)
    untold = tuple((run.where, Message("calibrate.version_untold")) for run in rows.runs if run.deployment.engine.version == UNSTATED)
    rows = replace(rows, notes=(*rows.notes, *untold))
    if not rows.runs and not rows.pairs:
        raise _none(paths, rows)
    return calibrated(rows, _command(paths, stated, ship), ship=ship)


def calibrated(rows: CalibrationRows, command: str, *, ship: str | None = None) -> Calibrated:
    """A calibration of rows; ``command`` makes it again."""
    from breakeven.calibration.lever_errors import lever_errors

    fit, levers = _fitted(rows, ship)
    used: list[Run | Pair] = [*rows.runs, *rows.pairs]
    sigma = lever_errors(levers) if ship is not None and levers is not None else {}
    made = Made(
        command=command,
        date=today(),
        breakeven=version("breakeven"),
        rows=len(used),
        groups=len({row.group for row in used}),
        left_out=dict(sorted(Counter(row.reason.key for row in rows.left_out).items())),
    )
    seen = [run.deployment for run in rows.runs] + [pair.on for pair in rows.pairs]
    open_ = tuple(one for one in undetermined(fit) if concerns(one.name, seen))
    pairs = tied(fit)
    counted = Counter(row.group for row in used)
    most = max(zip(seen, used, strict=True), key=lambda one: counted[one[1].group])[0]
    wanted = to_measure([one.name for one in open_], pairs)
    return Calibrated(
        document=calibration_file(fit, rows.curves, made, rows.files, sigma),
        fit=fit,
        curves=rows.curves,
        undetermined=open_,
        tied=pairs,
        to_measure=tuple(ToMeasure(run=run, parameters=names, commands=commands_of(run, most)) for run, names in wanted.items()),
        left_out=rows.left_out,
        pairs=len(rows.pairs),
        notes=rows.notes,
    )


def _none(paths: Sequence[Path], rows: CalibrationRows) -> InputError:
    """No row at all, and what is wrong with the first."""
    files = ", ".join(path.name for path in paths)
    first = next(iter(rows.left_out), None)
    if first is None:
        return InputError("calibrate_no_rows", files=files, left_out=0)
    return InputError("calibrate_no_rows_first", files=files, left_out=len(rows.left_out), where=first.where, reason=first.reason)


def _fitted(rows: CalibrationRows, ship: str | None) -> tuple[Fitted, LeverFit | None]:
    """The step by absolute rows, then kernels and rounds by pairs; what is to be shipped is fitted once more with those kernels."""
    from breakeven.calibration.leave_out import neutral_kernels
    from breakeven.calibration.own import fit_own
    from breakeven.calibration.own_pairs import with_pairs

    neutral, without = ship is not None, ship or ""
    again = neutral and bool(rows.runs) and bool(rows.pairs)
    kernels = neutral_kernels() if again else None
    timed = fit_own(rows.runs, neutral_ground=neutral, without=without, constants=kernels, leave_out=not again) if rows.runs else None
    fit, levers = with_pairs(timed, rows.pairs, neutral_ground=neutral, without=without, constants=kernels)
    if again and levers is not None:
        found = {**neutral_kernels(), **{name: x for name, x in levers.values.items() if name.startswith(("weights.", "kv."))}}
        timed = fit_own(rows.runs, neutral_ground=True, without=without, constants=found)
        fit, levers = with_pairs(timed, rows.pairs, neutral_ground=True, without=without, constants=found)
    return fit, levers


def _command(paths: Sequence[Path], stated: Stated, ship: str | None) -> str:
    """What to type to make it again, in the folder of the files."""
    said = {"--model": stated.model, "--hardware": stated.device, "--device-memory": stated.memory, "--engine": stated.engine}
    said["--ship"] = ship or ""
    words = ["breakeven", "calibrate", *(path.name for path in paths)]
    return shlex.join([*words, *(word for name, value in said.items() if value for word in (name, value))])


def today() -> str:
    """The day, or that of SOURCE_DATE_EPOCH, by which the same rows give the same bytes on any day."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return now.date().isoformat()


def _read(paths: Sequence[Path], stated: Stated) -> CalibrationRows:
    """Absolute rows, steps over width and pairs of a lever of all files; of a folder, all that is in it."""
    from breakeven.measured.files import read

    files = [file for path in dict.fromkeys(paths) for file in files_of(path)]
    benchmarks = [one for file in files if (one := read_benchmark(file)) is not None]
    taken = rows_of([outcome for one in benchmarks for outcome in one.outcomes], stated)
    whole = {one.path for one in benchmarks}
    tables = {path: read_table(path) for path in dict.fromkeys(files) if path not in whole}
    stepped = [table for table in tables.values() if form_of(table.columns) is not None]
    steps, left_out = steps_of(stepped, stated)
    others = [path for path, table in tables.items() if form_of(table.columns) is None]
    found = read(others) if others else None
    damaged = tuple(each for table in stepped for each in table.damaged)
    steps += taken.steps
    runs = (*(found.sound.runs if found else ()), *taken.runs, *runs_of_steps(steps))
    good, weak = _by_quality(found.sound.pairs if found else ())
    lost = (*(found.skipped if found else ()), *(found.bad if found else ()), *damaged, *left_out, *weak, *taken.skipped)
    counted = {path: _rows(table) for path, table in tables.items()} | {one.path: len(one.outcomes) for one in benchmarks}
    return CalibrationRows(
        runs=runs,
        curves=tuple(curves_of(steps)),
        left_out=tuple({each.where: each for each in lost}.values()),
        pairs=good,
        files=tuple(file_read(path, count) for path, count in counted.items()),
        notes=taken.notes,
    )


def _by_quality(pairs: Sequence[Pair]) -> tuple[tuple[Pair, ...], tuple[Skipped, ...]]:
    """Pairs that a fit takes, and those whose own collector calls them weak."""
    weak = [pair for pair in pairs if pair.quality[:1].upper() in WEAK]
    reasons = (Message("doubt.weak", {"quality": pair.quality}) for pair in weak)
    left = tuple(Skipped(id=pair.id, where=pair.where, reason=reason, fields={}) for pair, reason in zip(weak, reasons, strict=True))
    return tuple(pair for pair in pairs if pair not in weak), left


def _rows(table: Table) -> int:
    return len(table.rows) + len(table.damaged)
