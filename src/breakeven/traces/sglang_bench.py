"""Results of ``python -m sglang.bench_serving --output-file x.jsonl --output-details``, a run a line."""

from __future__ import annotations

from breakeven.reading import Reading
from breakeven.reading.finish import trace_of
from breakeven.reading.records import first_table, is_lines
from breakeven.reading.rows import Rows
from breakeven.reading.runs import Runs, drafting
from breakeven.reading.source import Source
from breakeven.trace import Trace

TOTALS = {"backend", "dataset_name", "completed", "total_output_tokens_retokenized"}
LENGTH = "accept_length"
"""Mean tokens a round of the server, the bonus token included; null where it did not draft."""


def sniff(head: bytes) -> bool:
    """Whether the first record has the totals that the benchmark writes."""
    return set(first_table(head)) >= TOTALS


def read(source: Source, reading: Reading) -> Trace:
    """The requests of all runs of a file."""
    rows = Rows(source, reading, "sglang_bench", in_lines=is_lines(source))
    runs = Runs(rows, option="--output-details").take_all()
    return trace_of(rows, drafting(runs, "", LENGTH, {"drafts": "", "tokens": ""}))
