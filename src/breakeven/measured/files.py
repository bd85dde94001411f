"""Files of measurements, read and understood: both forms, told by their columns; nothing is silently lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from breakeven.errors import InputError
from breakeven.measured.benchmark_files import files_of, read_benchmark
from breakeven.measured.benchmark_rows import rows_of
from breakeven.measured.columns import is_pair, missing_for_pairs, missing_for_runs
from breakeven.measured.doubts import doubts_of
from breakeven.measured.impossible import impossible_pair, impossible_run
from breakeven.measured.lines import Table, read_table
from breakeven.measured.pair import Pair
from breakeven.measured.pairs import pair_of
from breakeven.measured.row import NotUnderstood, Row, Skipped
from breakeven.measured.run import Run
from breakeven.measured.runs import runs_of
from breakeven.measured.steps import Stated, runs_of_steps
from breakeven.measured.twins import doubted
from breakeven.messages import Message
from breakeven.spec.bounds import check_number, check_value, whole
from breakeven.spec.check import ENGINE, WORKLOAD
from breakeven.spec.deployment import Deployment

VALUELESS = ("doubt.not_number", "doubt.not_positive")
"""Doubts about rows that measured nothing that a prediction could be held against."""
PairOf = Callable[[Row], Pair]
RunsOf = Callable[[Sequence[Row]], tuple[list[Run], list[Skipped]]]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What files of measurements hold."""

    runs: tuple[Run, ...] = ()
    pairs: tuple[Pair, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    """Rows that are not answered, each with the reason."""
    bad: tuple[Skipped, ...] = ()
    """Rows that cannot be true as written, answered or not: they are left out of fits."""
    columns: tuple[str, ...] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)
    """Every row as it is written, by its place, in the order of the files."""

    @property
    def sound(self) -> Measured:
        """What a fit may take: the rows without a doubt."""
        return self.only(lambda row: row.doubt is None)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of all groups, in the order they come."""
        return tuple(dict.fromkeys([*(run.group for run in self.runs), *(pair.group for pair in self.pairs)]))

    def only(self, wanted: Callable[[Run | Pair], bool]) -> Measured:
        """The rows that are wanted, of those that are understood."""
        return replace(self, runs=tuple(filter(wanted, self.runs)), pairs=tuple(filter(wanted, self.pairs)))

    def without(self, group: str) -> Measured:
        """All groups but one."""
        return self.only(lambda row: row.group != group)


def read(paths: Iterable[Path | str], stated: Stated | None = None) -> Measured:
    """What the files hold; a file that is of neither form, or cannot be read, is refused in a line.

    Results of benchmarks are rows too, of what is stated where they do not say it.
    """
    files = [file for path in dict.fromkeys(Path(path) for path in paths) for file in files_of(path)]
    benchmarks = [one for file in files if (one := read_benchmark(file)) is not None]
    known = {one.path for one in benchmarks}
    tables = [_checked(read_table(path)) for path in dict.fromkeys(files) if path not in known]
    found = understood(tables, pair_of, runs_of)
    taken = rows_of([outcome for one in benchmarks for outcome in one.outcomes], stated or Stated())
    runs = (*found.runs, *taken.runs, *runs_of_steps(taken.steps))
    return replace(found, runs=runs, skipped=(*found.skipped, *taken.skipped))


def _checked(table: Table) -> Table:
    """A table that has the columns of one of the forms at least."""
    pairs, runs = missing_for_pairs(table.columns), missing_for_runs(table.columns)
    if pairs and runs:
        raise InputError("measured_unknown_form", path=table.path, pairs=", ".join(pairs), runs=", ".join(runs))
    return table


def understood(tables: Sequence[Table], pair_of: PairOf, runs_of: RunsOf) -> Measured:
    """The rows of all files as pairs and runs, with what is not answered and what is not believed."""
    rows = {row.where: row for table in tables for row in table.rows}
    damaged = tuple(each for table in tables for each in table.damaged)
    doubts = doubts_of(rows.values())
    told = [row for row in rows.values() if row.where not in doubts or doubts[row.where].key not in VALUELESS]
    runs, skipped = runs_of([row for row in told if not is_pair(row.fields)])
    pairs, lost = _pairs([row for row in told if is_pair(row.fields)], pair_of)
    runs, never_ran = _possible(runs, rows)
    runs = doubted([replace(run, doubt=run.doubt or doubts.get(run.where) or impossible_run(run)) for run in runs])
    pairs = [replace(pair, doubt=pair.doubt or doubts.get(pair.where) or impossible_pair(pair, rows[pair.where])) for pair in pairs]
    known: list[Run | Pair] = [*runs, *pairs]
    reasons = doubts | {each.where: each.doubt for each in known if each.doubt is not None}
    without_value = [_skipped(rows[where], reason) for where, reason in doubts.items() if reason.key in VALUELESS]
    return Measured(
        runs=tuple(runs),
        pairs=tuple(pairs),
        skipped=(*damaged, *without_value, *skipped, *never_ran, *lost),
        bad=(*damaged, *(_skipped(rows[where], reason) for where, reason in reasons.items())),
        columns=tuple(dict.fromkeys(name for table in tables for name in table.columns)),
        rows=rows | {each.where: Row(where=each.where, id=each.id, fields=each.fields) for each in damaged},
    )


def _possible(runs: Iterable[Run], rows: Mapping[str, Row]) -> tuple[list[Run], list[Skipped]]:
    """Runs whose numbers can be, and the rows that state some that cannot. A split that the model's heads do not allow is answered:

    such labels count the devices of several workers, and a row says that it ran.
    """
    kept: list[Run] = []
    lost: list[Skipped] = []
    for run in runs:
        try:
            _check_numbers(run.deployment)
            kept.append(run)
        except InputError as error:
            lost.append(_skipped(rows[run.where], error.message))
    return kept, lost


def _check_numbers(d: Deployment) -> None:
    check_number(d.hardware.count, "hardware.count", whole)
    for name, rule in (*ENGINE.items(), *WORKLOAD.items()):
        value = getattr(d.engine if name in ENGINE else d.workload, name)
        if value is not None:
            check_value(value, name, rule)


def _pairs(rows: Iterable[Row], pair_of: PairOf) -> tuple[list[Pair], list[Skipped]]:
    pairs: list[Pair] = []
    lost: list[Skipped] = []
    for row in rows:
        try:
            # A condition that cannot be is refused when the pair is checked; what comes of it before is no news.
            with np.errstate(all="ignore"):
                pairs.append(pair_of(row))
        except NotUnderstood as error:
            lost.append(_skipped(row, error.message))
        except ArithmeticError:
            # A figure so large or so small that no deployment of it can be evaluated.
            lost.append(_skipped(row, Message("doubt.beyond", {})))
    return pairs, lost


def _skipped(row: Row, reason: Message) -> Skipped:
    return Skipped(id=row.id, where=row.where, reason=reason, fields=row.fields)
