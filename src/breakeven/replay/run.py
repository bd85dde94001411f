"""A drafter replayed on a log: its settings and a trace in, what it would have drafted and got accepted out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from breakeven.errors import InputError
from breakeven.replay import known_outputs, ngram, suffix, tally
from breakeven.replay.ngram import Ngram
from breakeven.replay.result import Replay
from breakeven.replay.rounds import Counts, counts
from breakeven.replay.sequences import MOST_TOKENS, Sequences, sequences
from breakeven.replay.suffix import Suffix
from breakeven.replay.tree_arrays import new_tree, room
from breakeven.trace import Ints, Trace

USUAL_KS = (1, 2, 3, 4, 5, 6, 7, 8)
MOST_DRAFTED = 64
APPROXIMATED = "trace.approximated"
"""What a reader notes where it cut text into pieces by a rule of its own instead of the model's tokenizer."""


def replay(trace: Trace, drafter: Ngram | Suffix, ks: Sequence[int] = USUAL_KS, seed: int = 0) -> Replay:
    """Every k of a drafter on a trace's logged tokens, by greedy verification: a drafted token is accepted where it is the log's next.

    Exact for text that was decoded greedily; sampled text would have accepted other tokens in other rounds.
    """
    log = sequences(trace)
    wanted = _checked(ks)
    row_of, group_of = tally.rows_of(log)
    counted = counts(len(group_of), len(wanted), max(wanted))
    if isinstance(drafter, Ngram):
        _replay_ngram(log, drafter, wanted, row_of, counted)
    else:
        _replay_suffix(trace, log, drafter, wanted, row_of, counted)
    output = log.output_tokens
    return Replay(
        method="ngram" if isinstance(drafter, Ngram) else "suffix",
        settings=asdict(drafter),
        rule=ngram.RULE if isinstance(drafter, Ngram) else suffix.RULE,
        total=tally.draftings(counted, log.requests, output, wanted, seed),
        groups=(groups := tally.by_group(counted, group_of, log, wanted, seed)),
        other_groups=len(log.group_names) - len(groups) + 1 if None in groups else 0,
        without_output=int((output < 2).sum()),
        approximate=any(note.key == APPROXIMATED for note in trace.notes),
    )


def _checked(ks: Sequence[int]) -> tuple[int, ...]:
    """Each k once, ascending; one that is no number of drafted tokens is refused."""
    bad = [k for k in ks if not 0 <= k <= MOST_DRAFTED]
    if bad or not ks:
        raise InputError("replay_k", k=bad[0] if bad else "none", most=MOST_DRAFTED)
    return tuple(sorted(set(ks)))


def _replay_ngram(log: Sequences, settings: Ngram, ks: tuple[int, ...], row_of: Ints, counted: Counts) -> None:
    ngram.check_ngram(settings)
    ngram.replay_ngram(
        log.prompt_ids,
        log.prompt_offsets,
        log.output_ids,
        log.output_offsets,
        row_of,
        np.array(ks, np.int64),
        settings.prompt_lookup_min,
        settings.prompt_lookup_max,
        settings.max_model_len or MOST_TOKENS,
        counted,
    )


def _replay_suffix(trace: Trace, log: Sequences, settings: Suffix, ks: tuple[int, ...], row_of: Ints, counted: Counts) -> None:
    suffix.check_suffix(settings)
    depth, kept = settings.suffix_decoding_max_tree_depth, settings.suffix_decoding_max_cached_requests
    acts = known_outputs.schedule(trace, log, kept)
    suffix.replay_suffix(
        (log.prompt_ids, log.prompt_offsets, log.output_ids, log.output_offsets),
        row_of,
        np.array(ks, np.int64),
        acts.kinds,
        acts.requests,
        new_tree(room(acts.most_tokens, acts.most_outputs, depth)),
        kept > 0,
        (depth, settings.suffix_decoding_max_spec_factor, settings.suffix_decoding_min_token_prob, settings.max_model_len or MOST_TOKENS),
        counted,
    )
