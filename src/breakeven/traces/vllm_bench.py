"""Results of ``vllm bench serve --save-result --save-detailed``, one or several appended; with acceptance where the server drafted."""

from __future__ import annotations

from breakeven.reading import Reading
from breakeven.reading.finish import trace_of
from breakeven.reading.records import first_table, is_lines
from breakeven.reading.rows import Rows
from breakeven.reading.runs import Runs, drafting
from breakeven.reading.source import Source
from breakeven.trace import Trace

TOTALS = {"num_prompts", "completed", "request_throughput"}
POSITIONS, LENGTH = "spec_decode_per_position_acceptance_rates", "spec_decode_acceptance_length"
"""Shares of the drafts in which a position was accepted, so cumulative; tokens a round, the bonus token included."""
DRAFTS = {"drafts": "spec_decode_num_drafts", "tokens": "spec_decode_draft_tokens"}


def sniff(head: bytes) -> bool:
    """Whether the first record has the totals that the benchmark writes."""
    return set(first_table(head)) >= TOTALS


def read(source: Source, reading: Reading) -> Trace:
    """The requests of all runs of a file, on the client's clock where it was written."""
    rows = Rows(source, reading, "vllm_bench", in_lines=is_lines(source))
    runs = Runs(rows, option="--save-detailed").take_all()
    return trace_of(rows, drafting(runs, POSITIONS, LENGTH, DRAFTS))
