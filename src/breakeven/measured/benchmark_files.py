"""Files and folders of benchmarks, recognised by what is in them; a folder (of a sweep) is all of its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path, PurePath

from breakeven import registry
from breakeven.errors import InputError
from breakeven.measured.benchmark import Benchmark, Loop, Outcome, Record, refused
from breakeven.measured.benchmark_text import records_of
from breakeven.measured.lines import LONGEST_PATH, read_text
from breakeven.messages import Message
from breakeven.origin.values import shown

ENDINGS = (".json", ".jsonl", ".csv", ".yaml", ".yml", ".md", ".sql", ".txt", ".gz")
MOST_FILES = 2000
BEYOND = 1e7
"""Seconds, streams or tokens of a request that nobody has measured."""
SUMMARIES = ("summary.json", "summary.csv")
"""What a sweep writes beside the runs themselves: the same once more."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """What one file holds."""

    path: Path
    outcomes: tuple[Outcome, ...]


@cache
def readers() -> dict[str, Benchmark]:
    """Every reader of a benchmark's files, by its name."""
    return {name: registry.module("measured.benchmarks", name).BENCHMARK for name in registry.names("measured/benchmarks")}


def read_benchmark(path: Path) -> Read | None:
    """The outcomes of a file that is a benchmark's; None where it is another table."""
    where = shown(str(path), LONGEST_PATH)
    text = read_text(path)
    if not is_recognised(text, where):
        return None
    return Read(path=path, outcomes=tuple(replace(one, id=PurePath(one.where).name) for one in _outcomes(records_of(text, where))))


def is_recognised(text: str, where: str) -> bool:
    """Whether a text's first record is one of a benchmark; what cannot be read as far as that is none."""
    try:
        first = next(iter(records_of(text, where)), None)
    except InputError:
        return False
    return first is not None and _reader(first) is not None


def files_of(path: Path) -> list[Path]:
    """A file itself, or the files of a folder that could be results; of a sweep the runs and not their summary."""
    if not path.is_dir():
        return [path]
    found = sorted(one for one in path.rglob("*") if one.suffix.lower() in ENDINGS and one.is_file())
    if len(found) > MOST_FILES:
        raise InputError("benchmark_too_many", path=shown(str(path), LONGEST_PATH), count=len(found), limit=MOST_FILES)
    runs = [one for one in found if one.name not in SUMMARIES]
    if not found:
        raise InputError("benchmark_empty_folder", path=shown(str(path), LONGEST_PATH), endings=", ".join(ENDINGS))
    return runs or found


def _outcomes(records: Iterable[Record]) -> Iterator[Outcome]:
    """Records of one tool together: some tell of a run only all in all."""
    for name, together in groupby(records, key=_reader):
        if name is None:
            yield from (refused(record, "other_record") for record in together)
        else:
            yield from map(_possible, readers()[name].read(tuple(together)))


def _possible(outcome: Outcome) -> Outcome:
    """Figures that are none, or none above 0, are refused whatever tool wrote them."""
    one = outcome.measured
    figures: tuple[float, ...]
    if isinstance(one, Loop):
        figures = (one.concurrency, one.input_tokens, one.output_tokens, one.tpot_s, one.ttft_s if one.ttft_s is not None else 1.0)
    elif one is not None:
        figures = (one.width, one.context_tokens, one.step_s)
    else:
        return outcome
    if all(0.0 < value < BEYOND for value in figures):
        return outcome
    return Outcome(where=outcome.where, id=outcome.id, refused=Message("bench.not_positive", {}))


def _reader(record: Record) -> str | None:
    return next((name for name, one in readers().items() if one.recognises(record.fields)), None)
