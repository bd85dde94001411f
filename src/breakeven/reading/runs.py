"""Results of a benchmark that hold its requests as lists of equal length, one list a quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from breakeven.errors import InputError
from breakeven.reading.chat import Table
from breakeven.reading.records import Record, records, table_of
from breakeven.reading.request import Request, at, seconds, whole
from breakeven.reading.rows import Rows
from breakeven.spec.workload import Acceptance

NS = 1e9
INPUTS, OUTPUTS = "input_lens", "output_lens"


@dataclass
class Runs:
    """The runs of a file, which may be appended to each other."""

    rows: Rows
    option: str
    """What has to be given to the benchmark for the lists to be written."""
    requests: int = 0
    read: int = 0
    totals: int = 0

    def take_all(self) -> list[Table]:
        """Reads every run of the file; a file of totals alone is refused."""
        runs: list[Table] = []
        for record in records(self.rows.source):
            found = table_of(record.data)
            if found is None:
                self.rows.damaged(record.number, record.line)
            elif isinstance(found.get(INPUTS), list) and isinstance(found.get(OUTPUTS), list):
                self._take(found, record)
                runs.append(found)
            else:
                self.totals += 1
                self.rows.set_apart("totals", record.number)
        if self.totals and not self.read:
            raise InputError("trace_totals_only", path=str(self.rows.source.path), option=self.option)
        return runs

    def _take(self, run: Table, record: Record) -> None:
        self.read += 1
        group = at(run, self.rows.reading.group or "model_id")
        for place in range(max(len(run[INPUTS]), len(run[OUTPUTS]))):
            self.requests += 1
            if _entry(run, "errors", place):
                self.rows.set_apart("failed", self.requests)
            else:
                self.rows.add(self.requests, _request(run, place, group), record.line)


def _entry(run: Table, name: str, place: int) -> object:
    values = run.get(name)
    return values[place] if isinstance(values, list) and place < len(values) else None


def _request(run: Table, place: int, group: object) -> Request:
    ttft = seconds(_entry(run, "ttfts", place)) or None
    gaps = _entry(run, "itls", place)
    start = seconds(_entry(run, "start_times", place))
    rest = [seconds(gap) or 0.0 for gap in gaps] if isinstance(gaps, list) else None
    prompt, output = _entry(run, INPUTS, place), _entry(run, OUTPUTS, place)
    return Request(
        arrival_ns=None if start is None else round(start * NS),
        input_tokens=prompt,
        output_tokens=-1 if output is None else output,
        ttft_s=ttft,
        e2e_s=None if ttft is None or rest is None else ttft + sum(rest),
        group=group,
    )


def drafting(runs: list[Table], positions: str, length: str, drafts: Mapping[str, str]) -> Acceptance | None:
    """Acceptance as the runs state it: by position, weighted by how often was drafted, or tokens a round with the bonus token."""
    weighed = [(run, whole(run.get(drafts["drafts"])) or 1) for run in runs]
    rates = [(run[positions], weight) for run, weight in weighed if _falls(run.get(positions))]
    rates = [(found, weight) for found, weight in rates if len(found) == len(rates[0][0])]
    if rates:
        total = sum(weight for _, weight in rates)
        cumulative = tuple(sum(found[place] * weight for found, weight in rates) / total for place in range(len(rates[0][0])))
        return Acceptance(cumulative=cumulative, k=len(cumulative))
    lengths = [(found, weight) for run, weight in weighed if (found := seconds(run.get(length))) is not None and found >= 1.0]
    if not lengths:
        return None
    drafted = {_drafted(run, drafts) for run in runs}
    mean = sum(found * weight for found, weight in lengths) / sum(weight for _, weight in lengths)
    return Acceptance(length=mean, k=drafted.pop() if len(drafted) == 1 else None)


def _falls(rates: object) -> bool:
    """Whether it is a list of shares that does not rise."""
    if not isinstance(rates, list) or not rates or not all(isinstance(rate, (int, float)) and 0 <= rate <= 1 for rate in rates):
        return False
    return all(later <= earlier for earlier, later in pairwise(rates))


def _drafted(run: Table, drafts: Mapping[str, str]) -> int | None:
    """Drafted tokens a round, where they are a whole number."""
    tokens, rounds = whole(run.get(drafts["tokens"])), whole(run.get(drafts["drafts"]))
    return tokens // rounds if tokens and rounds and tokens % rounds == 0 else None
